import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import type { Response } from "../../icmp/prober/response.ts";
import { round } from "../../util/numbers.ts";
import { mapValues } from "../../util/objects.ts";
import { zoneOf } from "../engine.ts";
import { type Fate, type Ledger, ledgerOf, lostOf, percent, totalsOf } from "../ledger.ts";
import { endOf } from "../trace/responses.ts";
import { explainLoss, isLossOfPath, type LossCause, PathTrials } from "./loss-cause.ts";
import { MAX_LISTED, type MtrHop, TIMES } from "./result.ts";
import { TimeStatistics } from "./times.ts";

/** How a probe ended: its answer, or why it has none. */
export type Outcome = Response | Exclude<Fate, "reply" | "hop" | "error">;

/** The outcome of each probe of a round, hop 1 first; `late` can replace another outcome without an answer. */
export type Round = Outcome[];

/** The hops and paths of all rounds. */
export type MtrReport = ReturnType<MtrRounds["report"]>;

/** A path that some rounds took; see `mtrResult`. */
interface Path {
  rounds: number;
  reached: boolean;
  addresses: (string | null)[];
  /** The probes of its rounds. */
  readonly trials: PathTrials;
}

function fateOf(outcome: Outcome): Fate {
  if (typeof outcome === "string") return outcome;
  if (outcome.kind === "reply") return "reply";
  return endOf(outcome) === null ? "hop" : "error";
}

/**
 * Counts rounds as they end. A hop counts every probe that was sent to it, except in rounds whose target replied to a
 * nearer probe: such a round took a shorter path without that hop.
 */
export class MtrRounds {
  readonly #rows: Row[] = [];
  readonly #toTarget = ledgerOf();
  readonly #paths: Path[] = [];
  readonly #counted = new WeakSet<Round>();
  readonly #trials = new PathTrials();
  #current: Path | undefined;
  #otherRounds = 0;
  #reached = false;

  /** Counts a round that has ended. */
  count(round: Round): void {
    this.#counted.add(round);
    const within = untilReply(round);
    const arrived = within.map((outcome, at) => {
      this.#rows[at] ??= new Row();
      return this.#rows[at].count(outcome);
    });
    const fate = fateToTarget(round);
    this.#toTarget[fate]++;
    const hasReplied = isUnknown(fate) ? undefined : fate === "reply";
    this.#trials.count(arrived, hasReplied);
    this.#reached ||= isReached(within);
    this.#follow(within)?.trials.count(arrived, hasReplied);
  }

  /** Notes that an answer came after the timeout, which can be after the round was counted. */
  late(round: Round, at: number): void {
    const before = round[at];
    if (typeof before !== "string") return;
    round[at] = "late";
    if (!this.#counted.has(round)) return;
    const correct = (ledger: Ledger | undefined) => {
      if (ledger === undefined) return;
      ledger[before]--;
      ledger.late++;
    };
    if (at < untilReply(round).length) correct(this.#rows[at]?.ledger);
    if (at === round.length - 1) correct(this.#toTarget);
  }

  /** The statistics of the rounds until now. */
  report() {
    // Up to the last hop that answered, if the target ever replied.
    const last = this.#rows.findLastIndex((row) => row.hasArrived);
    const rows = this.#reached ? this.#rows.slice(0, last + 1) : this.#rows;
    const toTarget = totalsOf(this.#toTarget);
    // A router that answers errors alone has not lost the probes; the path has.
    const cause = lostOf(toTarget) > 0 ? "path" : "unclear";
    const [lossy] = this.#paths.toSorted((a, b) => b.trials.target.failed - a.trials.target.failed);
    const isOfPath = lossy !== undefined && isLossOfPath(lossy.trials, this.#trials);
    const trials = isOfPath ? lossy.trials : this.#trials;
    const { causes, ...explained } = explainLoss(this.#trials, rows.length, trials);
    const hops = rows.map((row, at) => row.describe(at + 1, causes[at] ?? cause));
    return {
      hops,
      /** In the order in which they were first taken; at most `MAX_LISTED`. */
      paths: this.#paths.map(({ trials: _, ...path }) => path),
      /** The addresses of the path on which most probes of the target were lost. */
      lossPath: lossy?.addresses ?? [],
      /** Rounds over further paths. */
      otherRounds: this.#otherRounds,
      /** True if the target ever replied. */
      reached: this.#reached,
      /** The last probe of each round, which goes to the target; all that is received are its replies. */
      toTarget,
      ...explained,
    };
  }

  /** Counts a round for its path, and returns the path unless it is one too many. */
  #follow(round: Round): Path | undefined {
    const addresses = addressesOf(round);
    const reached = isReached(round);
    const known = [this.#current, ...this.#paths].find(
      (path) => path && fits(path, addresses, reached),
    );
    if (known === undefined && this.#paths.length === MAX_LISTED) {
      this.#otherRounds++;
      return undefined;
    }
    const path = known ?? { rounds: 0, reached: false, addresses: [], trials: new PathTrials() };
    if (known === undefined) this.#paths.push(path);
    extend(path, addresses, reached);
    this.#current = path;
    return path;
  }
}

/** The fate of a round's last probe; if a router answered it, the target did not. */
function fateToTarget(round: Round): Fate {
  const fate = fateOf(round.at(-1) ?? "not-sent");
  return fate === "hop" ? "silent" : fate;
}

const isReached = (round: Round) => fateOf(round.at(-1) ?? "silent") === "reply";

function untilReply(round: Round): Round {
  const at = round.findIndex((outcome) => fateOf(outcome) === "reply");
  return at < 0 ? round : round.slice(0, at + 1);
}

/** The addresses that answered. A router whose errors also answer farther probes is listed once, at its nearest hop. */
function addressesOf(round: Round): (string | null)[] {
  const addresses: (string | null)[] = [];
  for (const outcome of round) {
    const from = typeof outcome === "string" ? null : formatIpv6(outcome.from);
    const isRepeated = fateOf(outcome) === "error" && addresses.includes(from);
    addresses.push(isRepeated ? null : from);
  }
  return addresses;
}

/** True if a round can have taken a path: the same addresses, and nothing behind the target. */
function fits(path: Path, addresses: Path["addresses"], reached: boolean): boolean {
  if (path.reached && addresses.slice(path.addresses.length).some(Boolean)) return false;
  if (reached && path.addresses.slice(addresses.length).some(Boolean)) return false;
  return path.addresses.every((address, at) => {
    const answered = addresses[at];
    return !address || !answered || address === answered;
  });
}

function extend(path: Path, addresses: Path["addresses"], reached: boolean): void {
  const length = reached ? addresses.length : Math.max(path.addresses.length, addresses.length);
  path.addresses = Array.from(
    { length: path.reached ? path.addresses.length : length },
    (_, at) => path.addresses[at] ?? addresses[at] ?? null,
  );
  path.reached ||= reached;
  path.rounds++;
}

/** True if it is not known whether the probe arrived. */
const isUnknown = (fate: Fate) => fate === "unknown" || fate === "not-sent";

/** Counts the probes of a hop. */
export class Row {
  readonly ledger: Ledger = ledgerOf();
  readonly times = new TimeStatistics();
  /** The addresses that answered; `received` is 0 if all answers were errors. */
  readonly #addresses: { from: Ipv6Address; scopeId: number; received: number }[] = [];
  #others = 0;
  /** True if a probe is known to have come as far as the hop. */
  hasArrived = false;

  /** Returns whether the probe has come as far as the hop; undefined if that is not known. */
  count(outcome: Outcome): boolean | undefined {
    const fate = fateOf(outcome);
    this.ledger[fate]++;
    if (typeof outcome === "string") return isUnknown(fate) ? undefined : false;
    const { from, scopeId, rttMs } = outcome;
    let known = this.#addresses.find((each) => equalIpv6(each.from, from));
    // An error from a new address may come from a nearer router.
    if (fate === "error" && known === undefined && this.#addresses.length > 0) return false;
    if (known === undefined && this.#addresses.length < MAX_LISTED) {
      known = { from, scopeId, received: 0 };
      this.#addresses.push(known);
    }
    this.hasArrived = true;
    if (fate === "error") return true;
    this.times.add(rttMs);
    if (known === undefined) this.#others++;
    else known.received++;
    return true;
  }

  /** The row without names. */
  describe(hop: number, cause: LossCause): MtrHop {
    const { retransmitted: _, ...totals } = totalsOf(this.ledger);
    const sorted = this.#addresses.toSorted((a, b) => b.received - a.received);
    const [first] = sorted;
    const times = this.times.get();
    const details = zoneOf(first?.scopeId ?? 0);
    return {
      hop,
      ip: first ? formatIpv6(first.from) : null,
      hostname: null,
      ...totals,
      cause: lostOf(totals) === 0 ? null : cause,
      ...mapValues(TIMES, (_, name) => times && round(times[name], 3)),
      addresses: sorted.map((each) => ({
        ip: formatIpv6(each.from),
        hostname: null,
        received: each.received,
        share: percent(each.received / Math.max(1, totals.received)),
      })),
      others: this.#others,
      ...(details.zone && { details }),
    };
  }
}
