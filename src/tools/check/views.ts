/** The steps of each address: views of the ledger. */
import { round } from "../../util/numbers.ts";
import { firstTrue, inWords, listText, shareText } from "../../util/text.ts";
import { FINDINGS, isFailure, NOUNS } from "./findings.ts";
import {
  type Attempt,
  areBare,
  byText,
  byTime,
  hasFailed,
  hasStopped,
  isIpv6,
  isLost,
  lossOf,
  ofKind,
  transactionsOf,
  typical,
  withRetransmitted,
  worked,
  workedText,
} from "./ledger.ts";
import type { Ended, Seen, Step } from "./result.ts";

/** The steps that are views: the kinds of attempts that each shows, and its judge, which also gets all attempts at the address. */
const VIEWS = {
  echo: { kinds: ["echo"], judge: judgeEcho },
  tcp: { kinds: ["connect", "syn"], judge: judgeTcp },
  tls: { kinds: ["handshake"], judge: judgePart },
  http: { kinds: ["request"], judge: judgeHttp },
} as const satisfies Partial<Record<Step["name"], object>>;

/** The name of a step that is a view. */
export type View = keyof typeof VIEWS;

/** A step from its outcome. */
export function stepOf(name: Step["name"], ip: string | null, seen: Ended, ms: number): Step {
  const { finding } = seen as Seen;
  const status = seen.status ?? (finding ? FINDINGS[finding].status : "ok");
  return { name, ...(ip !== null && { ip }), ...seen, status, ms: Math.round(ms) };
}

/** The steps that are views of the ledger. Each depends only on the attempts at its address. */
export function viewsOf(rows: readonly Attempt[]): Step[] {
  const byIp = Map.groupBy(withRetransmitted(rows).toSorted(byTime), ({ ip }) => ip);
  return [...byIp]
    .toSorted(([a], [b]) => byText(a, b))
    .flatMap(([ip, all]) =>
      (Object.keys(VIEWS) as View[]).flatMap((name) => {
        const { kinds, judge } = VIEWS[name];
        const shown = all.filter(({ kind }) => kinds.some((each) => each === kind));
        const [first] = shown;
        if (first === undefined) return [];
        const endMs = Math.max(...shown.map(({ atMs, ms }) => atMs + ms));
        return stepOf(name, ip, judge(shown, all), endMs - first.atMs);
      }),
    );
}

function judgeEcho(echoes: readonly Attempt[]): Seen {
  const text = `${workedText(echoes, NOUNS.echo)} were answered.`;
  if (echoes.every(({ reason }) => reason === "not-sent"))
    return { status: "skipped", text: "This machine cannot send to it." };
  return echoes.some(worked) ? { text } : { finding: "no-echo", text };
}

/** `RST`, `silence`: why attempts failed, in the words of a network. */
function reasonText({ reason, at, ip, kind }: Attempt, rows: readonly Attempt[]): string {
  const syns = ofKind(rows, "syn").filter((row) => row.ip === ip && hasFailed(row));
  // Bun calls every error of a connection a refusal; a SYN beside it shows which.
  const error =
    reason === "refused" && kind === "connect" && syns.every((row) => row.at) ? syns[0] : undefined;
  if (error) return reasonText(error, rows);
  if (reason === "refused") return ofKind(rows, "syn").length > 0 ? "RST" : "a refusal";
  if (reason === "timeout" || reason?.endsWith("-silent")) return "silence";
  const words = inWords(`${reason}`);
  return at === undefined ? words : `${words} from ${at}`;
}

/** `by RST`, `most by silence`: why attempts failed. */
export function causeText(failures: readonly Attempt[], rows: readonly Attempt[]): string {
  const failure = typical(failures) as Attempt;
  const isOneCause = failures.every(({ reason }) => reason === failure.reason);
  return `${isOneCause ? "by" : "most by"} ${reasonText(failure, rows)}`;
}

/** Judges attempts some of which have worked; null if none has failed. */
function partOf(rows: readonly Attempt[], all: readonly Attempt[], noun: string): Seen | null {
  const failures = rows.filter(hasFailed);
  const failure = typical(failures);
  if (failure === undefined) return null;
  const { text = "", at } = failure;
  const failed = `${shareText(failures.length, rows.length, noun)} failed, ${causeText(failures, all)}.`;
  // Each of the last transactions may fail in another part, while the server's kernel still answers SYNs.
  const isOver = hasStopped(rows) || hasStopped(transactionsOf(all));
  const finding = isOver ? "stopped" : "sometimes";
  return { finding, text: [failed, text].filter(Boolean).join(" "), ...(at && { at }) };
}

/** Judges handshakes or requests. */
function judgePart(rows: readonly Attempt[], all: readonly Attempt[]): Seen {
  const [{ kind }] = rows as [Attempt];
  const { certificate } = rows.find((row) => row.certificate) ?? {};
  const httpStatus = Math.max(...rows.map((row) => row.httpStatus ?? 0));
  const facts = { ...(httpStatus > 0 && { httpStatus }), ...(certificate && { certificate }) };
  const good = rows.filter(worked);
  const part = good.length > 0 ? partOf(rows, all, NOUNS[kind]) : null;
  if (part) return { ...part, ...facts };
  const shown = good.find((row) => row.finding) ?? good[0] ?? (typical(rows) as Attempt);
  const { text = "", finding } = shown;
  const alike = rows.filter((row) => row.finding === finding).length;
  const counted = shareText(alike, rows.length, NOUNS[kind]);
  // For example, one of several servers redirects to a page that does not work.
  if (isFailure(finding) && alike < rows.length)
    return { finding: "sometimes", text: `${counted}: ${text}`, ...facts };
  const ended = good.length > 0 ? `${workedText(rows, NOUNS[kind])} worked.` : `${counted} failed.`;
  const refused = good.filter(
    (row) => (row.httpStatus ?? 0) >= 400 && row.httpStatus !== shown.httpStatus,
  );
  const statuses = listText([...new Set(refused.map((row) => `${row.httpStatus}`))].toSorted());
  const others =
    refused.length > 0 &&
    `${shareText(refused.length, rows.length, NOUNS[kind])} were answered with status ${statuses}.`;
  const whole = [text, others, ended].filter(Boolean).join(" ");
  return { text: whole, ...facts, ...(finding && { finding }) } as Seen;
}

function judgeHttp(requests: readonly Attempt[], all: readonly Attempt[]): Seen {
  const read = requests.filter(({ isRead }) => isRead);
  // Requests that ended after the head say nothing of bodies.
  const isCut = read.length > 0 && read.every(({ reason }) => reason === "response-incomplete");
  return judgePart(isCut ? read : requests, all);
}

/** The names of ICMPv6 errors that mean a routing loop, or that a router refuses the packet. */
const [LOOP, REFUSALS] = ["hop-limit-exceeded", ["prohibited", "source-policy", "reject-route"]];

/** The outcome where this machine has no IPv4, which says nothing of the name. */
const NO_IPV4 = { status: "skipped", text: "Not tested: this server has no IPv4." } as const;

/** Judges why no connection came about. */
function judgeClosed(all: readonly Attempt[]): Seen {
  const connects = ofKind(all, "connect");
  const syns = ofKind(all, "syn");
  const echoes = ofKind(all, "echo");
  const has = (reason: string) => [...connects, ...syns].some((row) => row.reason === reason);
  if (has("not-sent") && connects.every((row) => !isIpv6(row.ip))) return NO_IPV4;
  const isReset = syns.some(({ reason }) => reason === "refused");
  const error = isReset ? undefined : typical(syns.filter(({ at }) => at !== undefined));
  const { reason = isReset ? "refused" : null, at, ip } = error ?? {};
  const answered = syns.filter((row) => row.reason === reason && row.at === at).length;
  const whose = isReset ? " by RST" : error ? ` by ${at} with ${inWords(`${reason}`)}` : "";
  const counts = [
    connects.length > 0 && `${workedText(connects, NOUNS.connect)} opened`,
    syns.length > 0 && `${shareText(answered, syns.length, NOUNS.syn)} were answered${whose}`,
    // The target answers them, not the router that answers SYNs.
    echoes.length > 0 && `${workedText(echoes, NOUNS.echo)} were${whose && " answered"}`,
  ];
  const isAlive = echoes.some(worked);
  const finding = firstTrue({
    "port-closed": isReset || (error !== undefined && at === ip),
    "path-loop": reason === LOOP,
    rejected: error !== undefined && (isAlive || REFUSALS.includes(reason ?? "")),
    unreachable: error !== undefined,
    "not-sent": has("not-sent"),
    "not-opened": has("refused"),
    "port-silent": isAlive || syns.length === 0 || syns.some(worked),
    "no-answer": true,
  });
  const isRouter = at !== undefined && at !== ip;
  return { finding, text: `${listText(counts.filter(Boolean))}.`, ...(isRouter && { at }) };
}

function judgeTcp(rows: readonly Attempt[], all: readonly Attempt[]): Seen {
  const [connects, syns] = [ofKind(rows, "connect"), ofKind(rows, "syn")];
  const opened = connects.filter(worked).map(({ ms }) => round(ms, 3));
  // Before a connection has ended, an address counts as silent only if no SYN and no echo request is answered.
  const echoes = ofKind(all, "echo");
  const isSilent = echoes.length > 0 && [...syns, ...echoes].every(isLost);
  if (opened.length === 0 && (connects.length > 0 || isSilent)) return judgeClosed(all);
  const rtt = opened.length > 0 && { rtt: Math.min(...opened), rttMost: Math.max(...opened) };
  const isBare = areBare(syns, connects);
  const known = isBare ? connects : rows.filter(({ reason }) => reason !== "unknown");
  // SYNs without an answer are judged as loss, unless the service has stopped.
  const isLostSyn = (row: Attempt) => row.kind === "syn" && isLost(row);
  const counted = hasStopped(known) ? known : known.filter((row) => !isLostSyn(row));
  const part = partOf(counted, all, "connection attempt");
  const loss = lossOf(all);
  const isLimit =
    loss?.finding === "unknown" &&
    connects.every(({ reason }) => reason === null || reason === "timeout");
  if (part && (part.finding === "stopped" || !isLimit)) return { ...part, ...rtt };
  if (loss) return { ...loss, ...rtt };
  const parts = [
    opened.length > 0 && `${workedText(connects, NOUNS.connect)} opened`,
    syns.length > 0 && `${workedText(syns, NOUNS.syn)} were answered`,
  ];
  const bare = isBare ? " A firewall drops bare SYNs, as probes are, and no connections." : "";
  return { ...rtt, text: `${listText(parts.filter(Boolean))}.${bare}` };
}
