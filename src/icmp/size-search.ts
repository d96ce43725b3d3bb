/**
 * What became of packets of one size: they passed, were not answered, or this machine's link is too small
 * for them. A router may have told which size would pass.
 */
export interface Fate {
  readonly kind: "passed" | "lost" | "refused";
  readonly hintBytes?: number;
}

/** The end of a search. */
export interface FoundSize {
  /** The largest size that passed; 0 if no size of the first ones did. */
  readonly bytes: number;
  /** What became of the next larger one. */
  readonly above: Fate;
  /** The smallest size that is too large for this machine's link, as far as it is known. */
  readonly refusedBytes: number;
  /** The largest size that was sent. */
  readonly sentBytes: number;
}

/** Sizes tried at once where nothing is known; routers limit their answers to more. */
const SIZES_AT_ONCE = 4;
/** How often hints decide what is tried next: more often than a path narrows, so that lies end. */
const MAX_HINTED = 4;
/** The most often that sizes are tried, each time several at once: seven times for 65,535 of them without hints. */
export const MAX_STEPS = 1 + MAX_HINTED + 7;

/**
 * Finds the largest size that passes; RFC 8899 section 5.3. A hint is tried, and the next larger size too,
 * so that a wrong one costs only time.
 *
 * @param first tried at once
 * @param refusedBytes a size that is too large for this machine's link
 */
export async function searchSize(
  trySize: (bytes: number) => Promise<Fate>,
  first: readonly number[],
  refusedBytes: number,
): Promise<FoundSize> {
  const fates = new Map<number, Fate>([[refusedBytes, { kind: "refused" }]]);
  const sizes = (...kinds: Fate["kind"][]) =>
    [...fates].flatMap(([bytes, { kind }]) => (kinds.includes(kind) ? bytes : []));
  const passed = () => Math.max(0, ...sizes("passed"));
  const above = () => Math.min(...sizes("lost", "refused").filter((bytes) => bytes > passed()));
  let next = first;
  for (let steps = 1; next.length > 0; steps++) {
    const tried = await Promise.all(
      [...new Set(next)].map(async (bytes) => [bytes, await trySize(bytes)] as const),
    );
    for (const [bytes, fate] of tried) fates.set(bytes, fate);
    if (passed() === 0) break;
    const open = { passed: passed(), above: above() };
    const hinted = steps <= MAX_HINTED ? hintedSizes(fates, open) : [];
    next = hinted.length > 0 ? hinted : spreadSizes(open);
  }
  return {
    bytes: passed(),
    above: fates.get(above()) as Fate,
    refusedBytes: Math.min(...sizes("refused")),
    sentBytes: Math.max(0, ...sizes("passed", "lost")),
  };
}

/** The sizes between which the largest one that passes is: it is the first, or larger. */
interface Open {
  readonly passed: number;
  readonly above: number;
}

const isOpen =
  ({ passed, above }: Open) =>
  (bytes: number) =>
    bytes > passed && bytes < above;

/** The hints, each with the next larger size. */
function hintedSizes(fates: ReadonlyMap<number, Fate>, open: Open): number[] {
  return [...fates.values()]
    .flatMap(({ hintBytes }) => (hintBytes === undefined ? [] : [hintBytes, hintBytes + 1]))
    .filter(isOpen(open));
}

/** Sizes evenly spread. */
function spreadSizes(open: Open): number[] {
  const step = Math.ceil((open.above - open.passed) / (SIZES_AT_ONCE + 1));
  return Array.from(
    { length: SIZES_AT_ONCE },
    (_, index) => open.passed + (index + 1) * step,
  ).filter(isOpen(open));
}
