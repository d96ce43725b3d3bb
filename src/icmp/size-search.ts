import { type Clock, pause } from "../util/clock.ts";

/** Where packets are sent: the hop limit of a router, or the target, with echo requests or UDP. */
export type Line = number;
/** Echo requests to the target: the way there and back, since a reply is as large as its request. */
export const ECHO: Line = 256;
/** UDP packets to a closed port of the target: the way there alone, since their answers are short. */
export const UDP: Line = 257;

/** The fate of a packet: `unknown` tells nothing, `refused` that this machine's link is too small. */
export interface Fate {
  readonly kind: "passed" | "lost" | "refused" | "unknown";
  /** The MTU that a believable Packet Too Big claims; of a packet that has passed all the same, a lie. */
  readonly hintBytes?: number;
}

/** How packets are sent, and when the search has to end. */
export interface SizeTrial {
  /** Sends a packet. `late` may be called when it turns out to have passed after all. */
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
interface Tally {
  hasPassed: boolean;
  /** Begun, or as often as a silent size is. */
  tried: "no" | "begun" | "yes";
  /** The MTU of each Packet Too Big. */
  readonly claims: number[];
  /** How often it was not answered while a smaller packet right behind it was. */
  proofs: number;
}

/** The MTU that every link of IPv6 has at least; RFC 8200 section 5. */
export const LEAST_MTU = 1280;
/** The size of a packet as a trace sends it. */
export const TRACE_BYTES = 104;
/** Sizes of usual links, each with the next one that does not fit, and the packet of a trace. */
const USUAL_BYTES: readonly number[] = [
  ...[65_536, 9000, 1500, 1492].flatMap((bytes) => [bytes, bytes + 1]),
  LEAST_MTU,
  TRACE_BYTES,
];
/** Packets of this size do not exist without the jumbo payload option. */
const NO_BYTES = 65_576;
/** Sizes tried at once where nothing is known; routers rate-limit their answers to more. */
const SIZES_AT_ONCE = 4;
/** How often hints decide what is tried next: more often than a path narrows, so that lies end. */
const MAX_HINTED = 4;
/** How often a silent size is tried. */
const MAX_TRIES = 3;
/** The pause before a silent size is tried again in milliseconds: Linux sends one error in 100 ms to one address. */
const TRY_MS = 200;
/** How many packets of at least a size have a believable Packet Too Big before it is proven. */
const TOLD_PROOF = 2;
/** How often a size is silent beside a smaller one that is answered before its size is the reason: chance is below 0.25 ** 5. */
const SILENCE_PROOF = 5;
/** The pause after two silent packets in milliseconds: hops that send one answer a second then send one. */
const LIMIT_MS = 1000;
/** How often two sizes are compared. */
const MAX_PAIRS = 12;
/** How often in a row both are silent before the comparison ends. */
const MAX_QUIET = 3;

/**
 * Finds the largest sizes that pass to several lines at once; RFC 8899 section 5.3. Lines share what they
 * know: what passes to a hop passes to those before it, and what does not pass to a hop does not pass to those
 * behind it. A hint is tried, and the next larger size too, so that a wrong one costs only time. Silence proves
 * a size too large only beside answers to a smaller one: hops rate-limit their answers, and packets get lost.
 */
export function createSizeSearch({ send, clock, signal }: SizeTrial) {
  const tallies = new Map<Line, Map<number, Tally>>();
  /** Claims about packets that have passed. */
  const lies = new Set<number>();
  let refusedBytes = NO_BYTES;

  const tallyOf = (line: Line, bytes: number): Tally => {
    const sizes = tallies.get(line) ?? new Map<number, Tally>();
    const tally = sizes.get(bytes) ?? { hasPassed: false, tried: "no", claims: [], proofs: 0 };
    tallies.set(line, sizes.set(bytes, tally));
    return tally;
  };
  const sizesOf = (line: Line) => [...(tallies.get(line) ?? [])];
  const largest = (sizes: readonly (readonly [number, Tally])[]) =>
    Math.max(0, ...sizes.map(([bytes, { hasPassed }]) => (hasPassed ? bytes : 0)));

  /** The largest size that passed. Only an echo reply shows the way back. */
  const lowOf = (line: Line) => {
    const lines = line === ECHO ? [ECHO] : [...tallies.keys()];
    return largest(lines.filter((other) => other >= Math.min(line, ECHO)).flatMap(sizesOf));
  };

  /** The proof that a size above `low` is too large on a line; null if there is none. */
  const proofOf = (line: Line, bytes: number, low: number): Limit | null => {
    const isTold = (claim: number) => claim >= low && claim < bytes && !lies.has(claim);
    const toldOf = ([sent, { claims }]: [number, Tally]) =>
      sent < bytes ? [] : claims.filter(isTold);
    const tally = tallyOf(line, bytes);
    const isEnough = sizesOf(line).flatMap(toldOf).length >= TOLD_PROOF;
    if (isEnough && tally.claims.some(isTold)) return "told";
    if (tally.proofs < SILENCE_PROOF) return null;
    return tally.claims.length > 0 ? "told" : "silence";
  };

  const boundsOf = (line: Line): Bounds => {
    const atLeast = lowOf(line);
    let [above, limit]: [number, Limit] = [refusedBytes, "link"];
    for (const other of tallies.keys()) {
      for (const [bytes] of sizesOf(other)) {
        const proof = bytes > atLeast && bytes < above ? proofOf(other, bytes, atLeast) : null;
        const isOnTheWay =
          other < ECHO ? other <= line : line >= ECHO && (other >= line || proof === "told");
        if (proof !== null && isOnTheWay) [above, limit] = [bytes, proof];
      }
    }
    return { atLeast, atMost: above - 1, limit };
  };

  const ask = async (line: Line, bytes: number): Promise<Fate> => {
    const tally = tallyOf(line, bytes);
    const late = () => {
      tally.hasPassed = true;
    };
    const fate = await send(line, bytes, late);
    if (fate.kind === "passed") tally.hasPassed = true;
    if (fate.kind === "refused") refusedBytes = Math.min(refusedBytes, bytes);
    if (fate.hintBytes !== undefined && !tally.hasPassed) tally.claims.push(fate.hintBytes);
    if (fate.hintBytes !== undefined && fate.kind === "passed") lies.add(fate.hintBytes);
    return fate;
  };

  /** Sends packets of one size until one is answered; the later ones do not wait for the answer to the earlier. */
  const trySize = async (line: Line, bytes: number): Promise<void> => {
    const tally = tallyOf(line, bytes);
    tally.tried = "begun";
    const { promise, resolve } = Promise.withResolvers<void>();
    let isOver = signal.aborted;
    let silent = 0;
    const once = async () => {
      const fate = await ask(line, bytes);
      isOver ||= !isSilent(fate) || ++silent === MAX_TRIES || signal.aborted;
      if (isOver) resolve();
    };
    for (let tries = 0; tries < MAX_TRIES && !isOver; tries++) {
      void once();
      await Promise.race([promise, pause(clock, TRY_MS, signal)]);
    }
    if (!isOver) await promise;
    tally.tried = "yes";
  };

  /**
   * Sends a size that was not answered again, with a smaller one right behind it, until its size is the
   * reason. False if neither is answered, at any pace: then silence says nothing about sizes.
   *
   * @param low a size that passes; answers to less than 1280 bytes can be larger and vanish themselves
   */
  const compare = async (line: Line, bytes: number, low: number, proofs = SILENCE_PROOF) => {
    const tally = tallyOf(line, bytes);
    const smaller = low < LEAST_MTU ? largest(sizesOf(line)) || TRACE_BYTES : low;
    let quiet = 0;
    for (let pairs = 0; pairs < MAX_PAIRS && quiet < MAX_QUIET && !signal.aborted; pairs++) {
      // The larger one arrives first: if only one answer is allowed, it gets it.
      const [large, small] = await Promise.all([ask(line, bytes), ask(line, smaller)]);
      if (large.kind === "lost" && small.kind === "passed") tally.proofs++;
      const isOver = boundsOf(line).atMost < bytes || tally.proofs >= proofs;
      if (tally.hasPassed || isOver || large.kind === "refused") return true;
      quiet = small.kind === "passed" || large.hintBytes !== undefined ? 0 : quiet + 1;
      if (quiet > 0 && quiet < MAX_QUIET) await pause(clock, LIMIT_MS, signal);
    }
    return false;
  };

  /** Narrows the bounds of a line until they meet, or nothing more can be learnt. */
  const search = async (line: Line): Promise<void> => {
    const trying = new Set<Promise<void>>();
    let hinted = 0;
    for (let isFirst = true; !signal.aborted; ) {
      const { atLeast: low, atMost } = boundsOf(line);
      const failed = sizesOf(line).flatMap(([bytes, { hasPassed, tried }]) =>
        tried === "yes" && !hasPassed && bytes > low ? bytes : [],
      );
      const above = Math.min(atMost + 1, ...failed);
      const isOpen = (bytes: number) =>
        bytes > low && bytes < above && tallies.get(line)?.get(bytes)?.tried !== "begun";
      const claims = [...tallies.keys()].flatMap(sizesOf).flatMap(([, tally]) => tally.claims);
      const hints = claims.flatMap((claim) => [claim, claim + 1]).filter(isOpen);
      const isHinted = hints.length > 0 && hinted < MAX_HINTED;
      const others = isHinted ? [] : isFirst ? USUAL_BYTES : spreadSizes(low, above);
      const ends = isFirst ? [atMost, ...(low > 0 ? [low + 1] : [])] : [];
      const next = trying.size > 0 && !isHinted ? [] : [...ends, ...others].filter(isOpen);
      if (isHinted) hinted++;
      isFirst = false;
      for (const bytes of new Set(isHinted ? [...next, ...hints] : next)) {
        const trial = trySize(line, bytes).finally(() => trying.delete(trial));
        trying.add(trial);
      }
      if (trying.size > 0) await Promise.race(trying);
      else if (above > atMost || low === 0) return;
      else {
        const most = Math.max(...failed.filter((bytes) => bytes <= atMost));
        const isMost = most > above && tallyOf(line, most).proofs === 0;
        const [bytes, proofs] = isMost ? [most, 1] : [above, SILENCE_PROOF];
        if (!(await compare(line, bytes, low, proofs))) return;
      }
    }
  };

  return {
    boundsOf,
    trySize,
    compare,
    search,
    /** Notes that a size passed. */
    pass(line: Line, bytes: number): void {
      tallyOf(line, bytes).hasPassed = true;
    },
  };
}

const isSilent = ({ kind, hintBytes }: Fate) =>
  hintBytes === undefined && (kind === "lost" || kind === "unknown");

/** Sizes evenly spread between two; none if nothing has passed. */
function spreadSizes(low: number, above: number): number[] {
  if (low === 0) return [];
  const step = Math.ceil((above - low) / (SIZES_AT_ONCE + 1));
  return Array.from({ length: SIZES_AT_ONCE }, (_, index) => low + (index + 1) * step);
}

/** When routers and UDP are asked, if the target has not said all before, in milliseconds. */
const HEAD_START_MS = 700;

/**
 * Searches on the way to a target: with echo requests to it, then to each router as soon as it is known, and
 * with UDP if the target does not answer, or answers no larger ones.
 *
 * @param onMeasured called with the hop of each router that has been measured
 */
export function searchPath(trial: SizeTrial, onMeasured: (hop: Line) => void) {
  const { clock, signal } = trial;
  const hops = new Set<Line>();
  let search = createSizeSearch(trial);
  let head: Promise<unknown> = Promise.resolve();
  let running: Promise<unknown>[] = [];

  const measure = async (hop: Line) => {
    search.pass(hop, TRACE_BYTES);
    await head;
    await search.search(hop);
    onMeasured(hop);
  };
  const askSilent = async () => {
    if (search.boundsOf(ECHO).atLeast > 0) return;
    const { atMost, limit } = search.boundsOf(UDP);
    const sizes = new Set([...(limit === "told" ? [atMost + 1] : []), atMost, LEAST_MTU]);
    await Promise.all([...sizes].map((bytes) => search.trySize(UDP, bytes)));
  };
  const begin = () => {
    search = createSizeSearch(trial);
    const echo = search.search(ECHO);
    head = Promise.race([echo, pause(clock, HEAD_START_MS, signal)]);
    running = [echo, head.then(askSilent), ...[...hops].map(measure)];
  };
  /** Waits also for what is begun meanwhile. */
  const settle = async () => {
    for (let count = 0; count < running.length; ) {
      count = running.length;
      await Promise.all(running);
    }
  };
  /** Asks whether larger echo requests vanish on the way there, unless routers have told. */
  const findWay = async () => {
    const { atLeast, atMost, limit } = search.boundsOf(ECHO);
    const way = search.boundsOf(UDP);
    const isOpen = way.atLeast <= atLeast && way.atMost > atLeast;
    if (atLeast < atMost || limit !== "silence" || !isOpen) return;
    await search.compare(UDP, Math.max(atMost + 1, LEAST_MTU), atLeast);
  };
  /** True if the target does not answer the same sizes any more. */
  const hasChanged = async () => {
    const line = search.boundsOf(ECHO).atLeast > 0 ? ECHO : UDP;
    const { atLeast, atMost, limit } = search.boundsOf(line);
    if (atLeast === 0) return false;
    const check = createSizeSearch(trial);
    const larger = limit === "link" ? [] : [check.trySize(line, atMost + 1)];
    await Promise.all([check.trySize(line, atLeast), ...larger]);
    const now = check.boundsOf(line).atLeast;
    if (now > 0) return now > atMost;
    check.pass(line, TRACE_BYTES);
    await check.compare(line, atLeast, TRACE_BYTES);
    return check.boundsOf(line).atMost < atLeast;
  };
  begin();
  return {
    boundsOf: (line: Line) => search.boundsOf(line),
    pass: (line: Line, bytes: number) => search.pass(line, bytes),
    /** Searches at a router that has answered. */
    add(hop: Line): void {
      if (hops.has(hop)) return;
      hops.add(hop);
      running.push(measure(hop));
    },
    settle,
    /** Ends what has begun, and searches again if the path has changed meanwhile. */
    async finish(): Promise<void> {
      await settle();
      await findWay();
      while (!signal.aborted && (await hasChanged())) {
        begin();
        await settle();
        await findWay();
      }
    },
  };
}
