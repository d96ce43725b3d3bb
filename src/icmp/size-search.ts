/**
 * The fate of packets of one size: they passed, were not answered, or this machine's link is too small
 * for them. A router may have told which size would pass.
 */
export interface Fate {
  readonly kind: "passed" | "lost" | "refused";
  readonly hintBytes?: number;
}

/** How packets are tried. */
export interface SizeTrial {
  /** Tries one size a few times; others are tried meanwhile. */
  try(bytes: number): Promise<Fate>;
  /**
   * Tries a size that was not answered once more, and a smaller one right behind it. Null if neither is
   * answered, at any pace: then silence says nothing about sizes.
   */
  compare(bytes: number, smallerBytes: number): Promise<Fate | null>;
  /** True if there is no time left. */
  isOver(): boolean;
}

/** The end of a search. */
export interface FoundSize {
  /** The largest size that passed; 0 if no size of the first ones did. */
  readonly bytes: number;
  /** The fate of the next larger one. */
  readonly above: Fate;
  /** True if larger ones are not answered because of their size. */
  readonly isCertain: boolean;
  /** The smallest size that is too large for this machine's link, as far as it is known. */
  readonly refusedBytes: number;
  /** The largest size that was sent. */
  readonly sentBytes: number;
}

/** Sizes tried at once where nothing is known; routers rate-limit their answers to more. */
const SIZES_AT_ONCE = 4;
/** How often hints decide what is tried next: more often than a path narrows, so that lies end. */
const MAX_HINTED = 4;

/**
 * Finds the largest size that passes; RFC 8899 section 5.3. A hint is tried, and the next larger size too,
 * so that a wrong one costs only time. Hops rate-limit their answers, so at the end silence is tried again.
 *
 * @param first tried at once; the smallest one passes if any does
 * @param refusedBytes a size that is too large for this machine's link
 */
export async function searchSize(
  trial: SizeTrial,
  first: readonly number[],
  refusedBytes: number,
): Promise<FoundSize> {
  const fates = new Map<number, Fate>([[refusedBytes, { kind: "refused" }]]);
  const compared = new Set<number>();
  const sizes = (...kinds: Fate["kind"][]) =>
    [...fates].flatMap(([bytes, { kind }]) => (kinds.includes(kind) ? bytes : []));
  const passed = () => Math.max(0, ...sizes("passed"));
  const above = () => Math.min(...sizes("lost", "refused").filter((bytes) => bytes > passed()));
  /** The largest silent size, then the one above what passed. */
  const silent = () => {
    const lost = sizes("lost").filter((bytes) => bytes > passed() && !fates.get(bytes)?.hintBytes);
    return [Math.max(...lost), above()].find(
      (bytes) => lost.includes(bytes) && !compared.has(bytes),
    );
  };
  let isCertain = true;
  let next = first;
  for (let steps = 1; isCertain; steps++) {
    await Promise.all(
      [...new Set(next)].map(async (size) => fates.set(size, await trial.try(size))),
    );
    const open = { passed: passed(), above: above() };
    const hinted = steps <= MAX_HINTED ? hintedSizes(fates, open) : [];
    next = hinted.length > 0 ? hinted : spreadSizes(open);
    const size = next.length === 0 || open.passed === 0 ? silent() : undefined;
    if (size !== undefined) {
      compared.add(size);
      const smaller = open.passed || Math.min(...first);
      const fate = size > smaller ? await trial.compare(size, smaller) : null;
      isCertain = fate !== null;
      if (fate) fates.set(smaller, { kind: "passed" }).set(size, fate);
      next = [];
    } else if (next.length === 0) break;
    isCertain &&= !trial.isOver();
  }
  return {
    bytes: passed(),
    above: fates.get(above()) as Fate,
    isCertain,
    refusedBytes: Math.min(...sizes("refused")),
    sentBytes: Math.max(0, ...sizes("passed", "lost")),
  };
}

/** The largest size that passes is the first, or between the two. */
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
