import { equalIpv6, type Ipv6Address } from "../addr/ipv6.ts";
import type { Response } from "./response.ts";

/**
 * The answer of each hop in one round, hop 1 first: null for silence, undefined if it does not count because
 * the probe was not sent or its answer may have been dropped by the kernel.
 */
export type Round = readonly (Response | null | undefined)[];

/** Round-trip times in milliseconds, not rounded. */
export interface Times {
  readonly last: number;
  readonly min: number;
  readonly avg: number;
  readonly max: number;
  /** The standard deviation of the population. */
  readonly stdDev: number;
  /** The mean difference between successive times. */
  readonly jitter: number;
  readonly p50: number;
  readonly p95: number;
}

/** A hop of all rounds. */
export interface MtrHop {
  /** From 1. */
  readonly hop: number;
  /** Probes that count: those of paths on which the hop never answers do not, unless it never answers at all. */
  readonly sent: number;
  readonly received: number;
  /** True if the loss does not go on behind the hop: then the hop rate-limits its errors, and the path loses nothing. */
  readonly isLimited: boolean;
  /** The addresses that answered, the most frequent first. */
  readonly addresses: readonly {
    readonly address: Ipv6Address;
    /** Index of the interface of a link-local address, 0 otherwise. */
    readonly scopeId: number;
    readonly received: number;
  }[];
  /** Null without an answer. */
  readonly times: Times | null;
}

/** A way that some rounds took. */
export interface MtrPath {
  readonly rounds: number;
  /** By hop, null where nothing answered. */
  readonly addresses: readonly (Ipv6Address | null)[];
  /** True if the target replied at its end. */
  readonly reached: boolean;
}

/** The hops and paths of all rounds. */
export interface MtrReport {
  readonly hops: readonly MtrHop[];
  /** In the order in which they were first taken. */
  readonly paths: readonly MtrPath[];
  /** True if the target ever replied. */
  readonly reached: boolean;
}

/** Standard errors between two losses that differ: one pair in a hundred is as far apart by chance. */
const SIGNIFICANT = 2.33;

interface Path {
  rounds: number;
  addresses: (Ipv6Address | null)[];
  reached: boolean;
}

/** Describes rounds up to the target, whose answers to probes that went further count as one. */
export function describeRounds(rounds: readonly Round[]): MtrReport {
  const paths: Path[] = [];
  const taken: [Round, Path][] = [];
  let current: Path | undefined;
  for (const round of rounds.map(untilReply)) {
    const known = [current, ...paths].find((path) => path !== undefined && fits(path, round));
    current = known ?? { rounds: 0, addresses: [], reached: false };
    if (known === undefined) paths.push(current);
    extend(current, round);
    taken.push([round, current]);
  }
  const length = Math.max(0, ...paths.map(({ addresses }) => addresses.length));
  const hops = Array.from({ length }, (_, at) => describeMtrHop(at, paths, taken));
  return { hops: markLimited(hops), paths, reached: paths.some(({ reached }) => reached) };
}

function extend(path: Path, round: Round): void {
  const { addresses } = path;
  const length = isReached(round) ? round.length : Math.max(addresses.length, round.length);
  path.addresses = Array.from(
    { length: path.reached ? addresses.length : length },
    (_, at) => addresses[at] ?? round[at]?.from ?? null,
  );
  path.reached ||= isReached(round);
  path.rounds++;
}

const isReached = (round: Round) => round.at(-1)?.kind === "reply";

function untilReply(round: Round): Round {
  const at = round.findIndex((answer) => answer?.kind === "reply");
  return at < 0 ? round : round.slice(0, at + 1);
}

/** True if a round can have taken a path: the same addresses, and nothing behind the target. */
function fits(path: Path, round: Round): boolean {
  if (path.reached && round.slice(path.addresses.length).some(Boolean)) return false;
  if (isReached(round) && path.addresses.slice(round.length).some(Boolean)) return false;
  return path.addresses.every((address, at) => {
    const answer = round[at];
    return address === null || !answer || equalIpv6(address, answer.from);
  });
}

function describeMtrHop(at: number, paths: readonly Path[], taken: readonly [Round, Path][]) {
  const existing = paths.filter(({ addresses }) => at < addresses.length);
  const answering = existing.filter(({ addresses }) => addresses[at] !== null);
  const counted = answering.length > 0 ? answering : existing;
  const rounds = taken.filter(([, path]) => counted.includes(path));
  const answers = rounds.map(([round]) => round[at]);
  const responses = answers.filter((answer) => answer !== null && answer !== undefined);
  const addresses: { address: Ipv6Address; scopeId: number; received: number }[] = [];
  for (const { from: address, scopeId } of responses) {
    const known = addresses.find((each) => equalIpv6(each.address, address));
    if (known === undefined) addresses.push({ address, scopeId, received: 1 });
    else known.received++;
  }
  return {
    hop: at + 1,
    sent: answers.filter((answer) => answer !== undefined).length,
    received: responses.length,
    addresses: addresses.sort((a, b) => b.received - a.received),
    times: describeTimes(responses.map(({ rttMs }) => rttMs)),
  };
}

/** From the target backward, compares the loss of each hop with that of the hops behind it that are not limited. */
function markLimited(hops: readonly Omit<MtrHop, "isLimited">[]): MtrHop[] {
  const behind = { sent: 0, lost: 0 };
  const marked: MtrHop[] = [];
  for (const hop of hops.toReversed()) {
    const { sent, received } = hop;
    const lost = sent - received;
    const isLimited = received > 0 && isLossier({ sent, lost }, behind);
    // A hop that never answers says nothing about loss.
    if (received > 0 && !isLimited) {
      behind.sent += sent;
      behind.lost += lost;
    }
    marked.unshift({ ...hop, isLimited });
  }
  return marked;
}

interface Loss {
  readonly sent: number;
  readonly lost: number;
}

/** True if the first loss is greater than the second, by more than chance. */
function isLossier(one: Loss, other: Loss): boolean {
  if (one.lost === 0 || other.sent === 0) return false;
  if (other.lost === 0) return true;
  const share = (one.lost + other.lost) / (one.sent + other.sent);
  const error = Math.sqrt(share * (1 - share) * (1 / one.sent + 1 / other.sent));
  return one.lost / one.sent - other.lost / other.sent > SIGNIFICANT * error;
}

function describeTimes(timesMs: readonly number[]): Times | null {
  const last = timesMs.at(-1);
  if (last === undefined) return null;
  const mean = (values: readonly number[]) =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const sorted = timesMs.toSorted((a, b) => a - b);
  /** The nearest rank. */
  const percentile = (percent: number) =>
    sorted[Math.ceil((percent / 100) * sorted.length) - 1] as number;
  const avg = mean(timesMs);
  return {
    last,
    min: sorted[0] as number,
    avg,
    max: sorted.at(-1) as number,
    stdDev: Math.sqrt(mean(timesMs.map((time) => (time - avg) ** 2))),
    jitter: mean(timesMs.slice(1).map((time, at) => Math.abs(time - (timesMs[at] as number)))),
    p50: percentile(50),
    p95: percentile(95),
  };
}
