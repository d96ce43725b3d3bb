import { LEAST_MTU } from "../../icmp/wire/packet.ts";
import { type Clock, pause } from "../../util/clock.ts";

/** Where packets are sent: the hop limit of a router, or the target, with echo requests or UDP. */
export type Line = number;
/** Echo requests to the target: the way there and back, since a reply is as large as its request. */
export const ECHO: Line = 256;
/** UDP packets to a closed port of the target: the way there alone, since their answers are short. */
export const UDP: Line = 257;

/** The fate of a packet: `unknown` tells nothing, `refused` that this machine's link is too small. */
export interface Fate {
  readonly kind: "passed" | "lost" | "refused" | "unknown";
  /** The MTU that a believable Packet Too Big claims. */
  readonly hintBytes?: number;
}

/** How packets are sent, and when the search must end. */
export interface SizeTrial {
  /** Sends a packet. `late` is called if the packet turns out to have passed after all. */
  send(line: Line, bytes: number, late: () => void): Promise<Fate>;
  readonly clock: Clock;
  /** Ends the search with what is known. */
  readonly signal: AbortSignal;
}

/** Why larger packets do not pass: this machine's link, a Packet Too Big, or their silence. */
export type Limit = "link" | "told" | "silence";

/** The bounds of the largest size that passes; it is exactly known where both are the same. */
export interface Bounds {
  /** The largest size that passed; 0 if none did. */
  readonly atLeast: number;
  /** The largest size that is not proven to be too large. */
  readonly atMost: number;
  /** The proof for `atMost`. */
  readonly limit: Limit;
}

/** The packets of one size on one line. */
interface Size {
  readonly line: Line;
  readonly bytes: number;
  hasPassed: boolean;
  /** True if it was tried as often as a silent size is tried. */
  isTried: boolean;
  /** The MTU of each Packet Too Big. */
  readonly claims: number[];
  /** How often it was not answered while a smaller packet right behind it was. */
  proofs: number;
}

/** The size of a packet as a trace sends it. */
export const TRACE_BYTES = 104;
/** Sizes of usual links, each with the next one that does not fit, and the packet of a trace. */
const USUAL_BYTES: readonly number[] = [
  ...[65_536, 9000, 1500, 1492].flatMap((bytes) => [bytes, bytes + 1]),
  LEAST_MTU,
  TRACE_BYTES,
];
/** The least size that needs the jumbo payload option. */
const NO_BYTES = 65_576;
/** Sizes tried at once where nothing is known; routers rate-limit their answers to more. */
const SIZES_AT_ONCE = 4;
/** How often hints decide the next sizes: more often than a path narrows, so that lies end. */
const MAX_HINTED = 4;
/** How often a silent size is tried. */
const MAX_TRIES = 3;
/** How often a size must be silent beside an answered smaller one to be too large: the chance of error is below 0.25 ** 5. */
const SILENCE_PROOF = 5;
/** The pause after two silent packets in milliseconds: hops that send one answer a second then send one. */
const LIMIT_MS = 1000;
/** How often two sizes are compared. */
const MAX_PAIRS = 12;
/** How often in a row both sizes are silent before their comparison ends. */
const MAX_QUIET = 3;

/**
 * Finds the largest sizes that pass to several lines at once; RFC 8899 section 5.3. Lines share their results: a size
 * that passes to a hop passes to the hops before it, and one that does not pass to a hop does not pass to the hops
 * behind it. A hint is tried, and the next larger size too, so that a wrong hint costs only time. Silence proves a size
 * too large only beside answers to a smaller one: hops rate-limit their answers, and packets get lost.
 */
function createSizeSearch({ send, clock, signal }: SizeTrial) {
  let sizes: Size[] = [];
  let refusedBytes = NO_BYTES;

  const sizeOf = (line: Line, bytes: number): Size => {
    const known = sizes.find((size) => size.line === line && size.bytes === bytes);
    const size = known ?? { line, bytes, hasPassed: false, isTried: false, claims: [], proofs: 0 };
    if (known === undefined) sizes.push(size);
    return size;
  };
  const passedOn = (first: Line, last: Line) => {
    const isOn = ({ line }: Size) => line >= first && line <= last;
    return Math.max(0, ...sizes.map((size) => (size.hasPassed && isOn(size) ? size.bytes : 0)));
  };

  /** The proof that a size above `low` is too large on its line; null if there is none. */
  const proofOf = ({ bytes, claims, proofs }: Size, low: number): Limit | null => {
    if (claims.some((claim) => claim >= low && claim < bytes)) return "told";
    if (proofs < SILENCE_PROOF) return null;
    return claims.length > 0 ? "told" : "silence";
  };

  const boundsOf = (line: Line): Bounds => {
    // Only an echo reply shows the return path.
    const atLeast = line === ECHO ? passedOn(ECHO, ECHO) : passedOn(Math.min(line, ECHO), UDP);
    let [above, limit]: [number, Limit] = [refusedBytes, "link"];
    for (const size of sizes) {
      const proof = size.bytes > atLeast && size.bytes < above ? proofOf(size, atLeast) : null;
      const isOnTheWay =
        size.line < ECHO
          ? size.line <= line
          : line >= ECHO && (size.line >= line || proof === "told");
      if (proof !== null && isOnTheWay) [above, limit] = [size.bytes, proof];
    }
    return { atLeast, atMost: above - 1, limit };
  };

  const ask = async (size: Size): Promise<Fate> => {
    const late = () => {
      size.hasPassed = true;
    };
    const fate = await send(size.line, size.bytes, late);
    if (fate.kind === "passed") late();
    if (fate.kind === "refused") refusedBytes = Math.min(refusedBytes, size.bytes);
    if (fate.hintBytes !== undefined) size.claims.push(fate.hintBytes);
    return fate;
  };

  /** Sends packets of one size until one is answered. */
  const trySize = async (line: Line, bytes: number): Promise<void> => {
    const size = sizeOf(line, bytes);
    for (let tries = 0; tries < MAX_TRIES && !size.hasPassed && !signal.aborted; tries++) {
      if (!isSilent(await ask(size))) break;
    }
    size.isTried = true;
  };

  /**
   * Sends a silent size again, with a smaller one right behind it, until it is proven too large. Returns false if
   * neither is answered, at any pace: then silence says nothing about sizes.
   *
   * @param low a size that passes; answers to less than 1280 bytes can be larger and vanish themselves
   */
  const compare = async (line: Line, bytes: number, low: number, proofs = SILENCE_PROOF) => {
    const size = sizeOf(line, bytes);
    const smaller = sizeOf(line, low < LEAST_MTU ? passedOn(line, line) || TRACE_BYTES : low);
    let quiet = 0;
    for (let pairs = 0; pairs < MAX_PAIRS && quiet < MAX_QUIET && !signal.aborted; pairs++) {
      // The larger packet arrives first, so it gets the answer if a limit allows only one.
      const [large, small] = await Promise.all([ask(size), ask(smaller)]);
      if (large.kind === "lost" && small.kind === "passed") size.proofs++;
      const isOver = boundsOf(line).atMost < bytes || size.proofs >= proofs;
      if (size.hasPassed || isOver || large.kind === "refused") return true;
      quiet = small.kind === "passed" || large.hintBytes !== undefined ? 0 : quiet + 1;
      if (quiet > 0 && quiet < MAX_QUIET) await pause(clock, LIMIT_MS, signal);
    }
    return false;
  };

  /** Narrows the bounds of a line until they meet, or nothing more can be learnt. */
  const search = async (line: Line): Promise<void> => {
    for (let steps = 0; !signal.aborted; steps++) {
      const { atLeast: low, atMost } = boundsOf(line);
      if (low === 0 && steps > 0) return;
      const failed = sizes
        .filter((size) => size.line === line && size.isTried && !size.hasPassed)
        .flatMap(({ bytes }) => (bytes > low && bytes <= atMost ? bytes : []));
      const above = Math.min(atMost + 1, ...failed);
      const isOpen = (bytes: number) => bytes > low && bytes < above;
      const claims = steps < MAX_HINTED ? sizes.flatMap((size) => size.claims) : [];
      const hints = claims.flatMap((claim) => [claim, claim + 1]).filter(isOpen);
      const others = steps === 0 ? USUAL_BYTES : spreadSizes(low, above);
      const ends = steps === 0 ? [atMost, Math.max(low + 1, TRACE_BYTES)] : [];
      const next = [...ends, ...(hints.length > 0 ? hints : others)].filter(isOpen);
      if (next.length > 0) {
        await Promise.all([...new Set(next)].map((bytes) => trySize(line, bytes)));
        continue;
      }
      if (above > atMost) return;
      // The largest silent size shows at once whether answers are limited.
      const most = Math.max(...failed);
      const isMost = most > above && sizeOf(line, most).proofs === 0;
      const [bytes, proofs] = isMost ? [most, 1] : [above, SILENCE_PROOF];
      if (!(await compare(line, bytes, low, proofs))) return;
    }
  };

  /** Tries both bounds again. If they are no longer true, all earlier results are forgotten. */
  const hasChanged = async (line: Line): Promise<boolean> => {
    const { atLeast, atMost, limit } = boundsOf(line);
    if (atLeast === 0) return false;
    const before = sizes;
    sizes = [];
    const larger = limit === "link" ? [] : [trySize(line, atMost + 1)];
    await Promise.all([trySize(line, atLeast), ...larger]);
    if (passedOn(line, line) === 0) {
      sizeOf(line, TRACE_BYTES).hasPassed = true;
      await compare(line, atLeast, TRACE_BYTES);
    }
    const now = boundsOf(line);
    const isOther = now.atLeast > atMost || now.atMost < atLeast;
    if (!isOther) sizes = before;
    return isOther;
  };

  /** Notes that a size passed. */
  const pass = (line: Line, bytes: number) => {
    sizeOf(line, bytes).hasPassed = true;
  };
  return { boundsOf, trySize, compare, search, hasChanged, pass };
}

const isSilent = ({ kind, hintBytes }: Fate) =>
  hintBytes === undefined && (kind === "lost" || kind === "unknown");

/** Sizes evenly spread between two. */
function spreadSizes(low: number, above: number): number[] {
  const step = Math.ceil((above - low) / (SIZES_AT_ONCE + 1));
  return Array.from({ length: SIZES_AT_ONCE }, (_, index) => low + (index + 1) * step);
}

/** Milliseconds after which routers are asked, if the target is not measured before. */
const HEAD_START_MS = 500;

/**
 * Searches on the way to a target: with echo requests to it, then to each router as soon as it is known, and
 * with UDP if the target does not answer, or answers no larger ones.
 *
 * @param onMeasured called with the hop of each router that has been measured
 */
export function searchPath(trial: SizeTrial, onMeasured: (hop: Line) => void) {
  const { clock, signal } = trial;
  const search = createSizeSearch(trial);
  const { boundsOf } = search;
  const hops = new Set<Line>();
  let head: Promise<unknown> = Promise.resolve();
  let running: Promise<unknown>[] = [];

  const measure = async (hop: Line) => {
    search.pass(hop, TRACE_BYTES);
    await head;
    await search.search(hop);
    onMeasured(hop);
  };
  const measureTarget = async () => {
    await search.search(ECHO);
    if (boundsOf(ECHO).atLeast > 0) return;
    const { atMost, limit } = boundsOf(UDP);
    const sizes = new Set([...(limit === "told" ? [atMost + 1] : []), atMost, LEAST_MTU]);
    await Promise.all([...sizes].map((bytes) => search.trySize(UDP, bytes)));
    if (boundsOf(UDP).atLeast > 0) await search.search(UDP);
  };
  const begin = () => {
    const target = measureTarget();
    head = Promise.race([target, pause(clock, HEAD_START_MS, signal)]);
    running = [target, ...[...hops].map(measure)];
  };
  /** Waits for all measurements, also those that begin meanwhile. */
  const settle = async () => {
    for (let count = 0; count < running.length; ) {
      count = running.length;
      await Promise.all(running);
    }
  };
  /** Finds whether larger echo requests vanish on the way there, unless routers have said so. */
  const findWay = async () => {
    const { atLeast, atMost, limit } = boundsOf(ECHO);
    const way = boundsOf(UDP);
    const isOpen = way.atLeast <= atLeast && way.atMost > atLeast;
    if (atLeast < atMost || limit !== "silence" || !isOpen) return;
    await search.trySize(UDP, way.atMost);
    if (boundsOf(UDP).atLeast > atLeast) return;
    await search.compare(UDP, Math.max(atMost + 1, LEAST_MTU), atLeast);
  };
  begin();
  return {
    boundsOf,
    pass: search.pass,
    /** Searches at a router that has answered. */
    add(hop: Line): void {
      if (hops.has(hop)) return;
      hops.add(hop);
      running.push(measure(hop));
    },
    settle,
    /** Waits for all measurements, and searches again if the path has changed meanwhile. */
    async finish(): Promise<void> {
      for (;;) {
        await settle();
        await findWay();
        const line = boundsOf(ECHO).atLeast > 0 ? ECHO : UDP;
        if (signal.aborted || !(await search.hasChanged(line))) return;
        begin();
      }
    },
  };
}
