/** The ledger of a check: all attempts, and how each ended. Every number that a check says is counted here. */
import { median, round } from "../../util/numbers.ts";
import { atLeastChance, fisherExact, type Trials } from "../../util/statistics.ts";
import { shareText } from "../../util/text.ts";
import { retransmittedFromMs } from "../ledger.ts";
import type { Finding, Kind } from "./findings.ts";
import type { Step } from "./result.ts";

/** One attempt. */
export interface Attempt extends Pick<Step, "at" | "httpStatus" | "certificate"> {
  readonly kind: Kind;
  readonly ip: string;
  /** The number of its transaction, or of its pair of probes, at this address. */
  readonly turn: number;
  /** When it began, in milliseconds since the check did. */
  readonly atMs: number;
  /** How long it took, in milliseconds. */
  readonly ms: number;
  /** Why it did not work: a finding, the name of an ICMPv6 error, or another word; null if it did. */
  readonly reason: string | null;
  /** A sentence about the outcome. */
  readonly text?: string;
  /** A fault that was found; an attempt that worked can have one too. */
  readonly finding?: Finding;
  /** True if the body of the response was read. */
  readonly isRead?: boolean;
  /** True if its transaction goes on. Without a later part, the transaction was cut. */
  readonly isOpen?: boolean;
  /** The fingerprints of the certificates that the server showed, its own first. */
  readonly chain?: readonly string[];
}

/** The known fields of an attempt. */
export type Found = Partial<Attempt>;

export const isIpv6 = (ip: string) => ip.includes(":");

/** The rows of IPv6, and those of IPv4. */
export const byFamily = <Row extends Pick<Attempt, "ip">>(rows: readonly Row[]) =>
  [rows.filter(({ ip }) => isIpv6(ip)), rows.filter(({ ip }) => !isIpv6(ip))] as const;

/** True if an attempt worked. */
export const worked = ({ reason }: Pick<Attempt, "reason">) => reason === null;

/** True if an attempt did not work. */
export const hasFailed = ({ reason }: Pick<Attempt, "reason">) => reason !== null;

/** The attempts of a kind. */
export const ofKind = (rows: readonly Attempt[], kind: Kind) =>
  rows.filter((row) => row.kind === kind);

/**
 * Marks a SYN as lost if only a retransmitted SYN-ACK answered it: the return path lost the first. If echo replies take
 * as long, the path is only slow.
 */
export function withRetransmitted(rows: readonly Attempt[]): Attempt[] {
  const groups = Map.groupBy(rows.filter(worked), ({ ip }) => ip);
  const lateMs = new Map(
    [...groups].map(([ip, all]) => {
      const msOf = (kind: Kind) => ofKind(all, kind).map(({ ms }) => ms);
      return [ip, Math.max(retransmittedFromMs(msOf("syn")), ...msOf("echo"))];
    }),
  );
  return rows.map((row) => {
    const isLate = row.kind === "syn" && worked(row) && row.ms >= (lateMs.get(row.ip) ?? Infinity);
    return isLate ? { ...row, reason: "retransmitted" } : row;
  });
}

/** The attempts of each address and kind, as documents show them. */
export function attemptsOf(rows: readonly Attempt[]) {
  const groups = Map.groupBy(rows, ({ ip, kind }) => `${ip} ${kind}`);
  return [...groups.values()].map((all) => {
    const [{ ip, kind }] = all as [Attempt];
    const times = all.filter(worked).map(({ ms }) => round(ms, 3));
    const failed: Record<string, number> = {};
    for (const { reason } of all) if (reason !== null) failed[reason] = (failed[reason] ?? 0) + 1;
    const rtt = { min: Math.min(...times), median: median(times) ?? 0, max: Math.max(...times) };
    const counts = { made: all.length, worked: times.length, failed };
    return { ip, kind, ...counts, rtt: times.length > 0 ? rtt : null };
  });
}

/** The order of texts by their characters. */
export const byText = (a: string, b: string) => (a < b ? -1 : Number(a > b));

/** The order of attempts by time; it does not depend on that of their list. */
export const byTime = (a: Attempt, b: Attempt) =>
  a.atMs - b.atMs || byText(a.ip, b.ip) || a.turn - b.turn || byText(a.kind, b.kind);

/** The attempt that stands for those that failed: the first of those with the most frequent reason. */
export function typical(failures: readonly Attempt[]): Attempt | undefined {
  const groups = Map.groupBy(failures.toSorted(byTime), ({ reason }) => `${reason}`);
  // Equally frequent reasons are ordered by name, so that the order of the rows does not matter.
  const ordered = [...groups].toSorted(([a, some], [b, others]) => {
    return others.length - some.length || byText(a, b);
  });
  return ordered[0]?.[1][0];
}

/** The transactions that have ended, by time: of each, the first part, with the fields of the part that failed. */
export function transactionsOf(rows: readonly Attempt[]) {
  const parts = rows.filter(({ kind }) => kind !== "syn" && kind !== "echo");
  return [...Map.groupBy(parts, ({ ip, turn }) => `${ip} ${turn}`).values()]
    .filter((all) => !all.every(({ isOpen }) => isOpen))
    .map((all) => ({ ...(all[0] as Attempt), reason: null, ...all.find(hasFailed) }))
    .toSorted(byTime);
}

/** The level of significance: an outcome that is less likely is not called chance. */
const SIGNIFICANT = 0.01;

/** The fewest failures at the end for which a service counts as stopped. */
const MIN_STOPPED = 3;

/**
 * True if something worked, and then at least three attempts failed in a row up to the end. If some had failed before,
 * the row must be more than chance.
 *
 * @param rows attempts at one address that test the same
 */
export function hasStopped(rows: readonly Attempt[]): boolean {
  const all = rows.toSorted(byTime);
  // A retransmitted SYN-ACK is an answer.
  const isAnswered = ({ reason }: Attempt) => reason === null || reason === "retransmitted";
  const atEnd = all.length - 1 - all.findLastIndex(isAnswered);
  if (atEnd === all.length || atEnd < MIN_STOPPED) return false;
  const failed = all.filter((row) => !isAnswered(row)).length - atEnd;
  const before = { count: all.length - atEnd, failed };
  return failed === 0 || fisherExact({ count: atEnd, failed: atEnd }, before) < SIGNIFICANT;
}

const LOST: readonly (string | null)[] = ["timeout", "retransmitted"];

/** True if a packet was lost: any answer, even an error, shows that the packet arrived. */
export const isLost = ({ reason }: Attempt) => LOST.includes(reason);

/** The share of packets that ordinary paths lose. */
const USUAL_LOSS = 0.01;

const trialsOf = (rows: readonly Attempt[]): Trials => {
  const failed = rows.filter(isLost).length;
  return { count: failed + rows.filter(worked).length, failed };
};

/** `17 of 20 SYNs`: how many have worked. */
export const workedText = (rows: readonly Attempt[], noun: string) =>
  shareText(rows.filter(worked).length, rows.length, noun);

/** True if a firewall drops bare SYNs, which no kernel sends: none was answered, though every connection opened. */
export const areBare = (syns: readonly Attempt[], connects: readonly Attempt[]) =>
  syns.length > 0 && syns.every(isLost) && connects.length > 0 && connects.every(worked);

/**
 * The loss at an address, by SYNs and the echo requests beside them; null if no SYN was lost. A limit of new connections
 * drops SYNs alone; a path loses both.
 */
export function lossOf(rows: readonly Attempt[]): { finding: Finding; text: string } | null {
  const [syns, echoes] = [ofKind(rows, "syn"), ofKind(rows, "echo")];
  const [syn, echo] = [trialsOf(syns), trialsOf(echoes)];
  if (syn.failed === 0 || areBare(syns, ofKind(rows, "connect"))) return null;
  const late = syns.filter(({ reason }) => reason === "retransmitted").length;
  const isEchoSilent = echo.failed === echo.count;
  const counted = `${shareText(syn.failed, syn.count, "SYN")} and ${shareText(echo.failed, echo.count, "echo request")} were lost`;
  const unanswered = { ...syn, failed: syn.failed - late };
  if (!isEchoSilent && fisherExact(unanswered, echo) < SIGNIFICANT) {
    const text = `${counted}: the server or a firewall may limit new connections.`;
    return { finding: "unknown", text };
  }
  // A target may limit its echo replies too.
  const isEchoLimited = isEchoSilent || fisherExact(echo, syn) < SIGNIFICANT;
  const counting = trialsOf(isEchoLimited ? syns : [...syns, ...echoes]);
  const isLoss = atLeastChance(counting, USUAL_LOSS) < SIGNIFICANT;
  const where =
    late === syn.failed
      ? `; the SYN-ACK of each came a second late, so it was lost on the return path`
      : late > 0
        ? `; ${shareText(late, syn.failed, "SYN-ACK")} came a second late, so both directions lose packets`
        : isLoss
          ? "; no SYN-ACK came late, so they were lost on the way there, or the target limits them"
          : ", which can be chance";
  // A path loses both kinds. Where only SYNs are lost, and few of them, a limit looks the same.
  const isSure = isLoss && (late > 0 || (!isEchoLimited && echo.failed > 0));
  return { finding: isSure ? "path-loss" : "path-doubtful", text: `${counted}${where}.` };
}
