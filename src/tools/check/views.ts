/** The steps of each address: views of the ledger. */
import { round } from "../../util/numbers.ts";
import { firstTrue, inWords, listText } from "../../util/text.ts";
import { FINDINGS, type Kind, NOUNS } from "./findings.ts";
import {
  type Attempt,
  areBare,
  byText,
  byTime,
  hasStopped,
  isIpv6,
  LOST,
  lossOf,
  shareText,
  tallyOf,
  typical,
  withRetransmitted,
  worked,
} from "./ledger.ts";
import type { Seen, Step } from "./result.ts";

/** The kinds of attempts that each step shows. */
const SHOWN = {
  echo: ["echo"],
  tcp: ["connect", "syn"],
  tls: ["handshake"],
  http: ["request"],
} as const satisfies Partial<Record<Step["name"], readonly Kind[]>>;

/** The steps that are views. */
export type View = keyof typeof SHOWN;

const VIEWS = Object.keys(SHOWN) as View[];

/** A step from what was found in it. */
export function stepOf(
  name: Step["name"],
  ip: string | null,
  seen: Seen | Pick<Step, "status" | "text">,
  ms: number,
): Step {
  const { finding } = seen as Seen;
  const status = seen.status ?? (finding ? FINDINGS[finding].status : "ok");
  return { name, ...(ip !== null && { ip }), ...seen, status, ms: Math.round(ms) };
}

/** The steps that are views of the ledger, each of which depends on nothing but the attempts at its address. */
export function viewsOf(rows: readonly Attempt[]): Step[] {
  const byIp = Map.groupBy(withRetransmitted(rows).toSorted(byTime), ({ ip }) => ip);
  return [...byIp]
    .toSorted(([a], [b]) => byText(a, b))
    .flatMap(([ip, all]) =>
      VIEWS.flatMap((name) => {
        const kinds: readonly Kind[] = SHOWN[name];
        const shown = all.filter(({ kind }) => kinds.includes(kind));
        if (shown.length === 0) return [];
        const endMs = Math.max(...shown.map(({ atMs, ms }) => atMs + ms));
        const judge = { echo: judgeEcho, tcp: judgeTcp, tls: judgePart, http: judgeHttp }[name];
        return [stepOf(name, ip, judge(shown, all), endMs - (shown[0] as Attempt).atMs)];
      }),
    );
}

/** `3 of 10 connections`. */
const countText = (rows: readonly Attempt[], kind: Kind) => {
  const { made, worked: count } = tallyOf(rows);
  return shareText(count, made, NOUNS[kind]);
};

const of = (rows: readonly Attempt[], kind: Kind) => rows.filter((row) => row.kind === kind);

function judgeEcho(echoes: readonly Attempt[]): Seen {
  const text = `${countText(echoes, "echo")} were answered.`;
  const isSent = echoes.some(({ reason }) => reason !== "not-sent");
  return isSent && !echoes.some(worked) ? { finding: "no-echo", text } : { text };
}

/** `RST`, `silence`: why attempts failed, in the words of a network. */
export function reasonText({ reason, at, ip, kind }: Attempt, rows: readonly Attempt[]): string {
  const syns = of(rows, "syn").filter((row) => row.ip === ip && !worked(row));
  // Bun calls every error of a connection a refusal; a SYN beside it shows which.
  const error =
    reason === "refused" && kind === "connect" && syns.every((row) => row.at) ? syns[0] : undefined;
  if (error) return reasonText(error, rows);
  if (reason === "refused") return of(rows, "syn").length > 0 ? "RST" : "a refusal";
  if (reason === "timeout" || reason?.endsWith("-silent")) return "silence";
  const words = inWords(`${reason}`);
  return at === undefined ? words : `${words} from ${at}`;
}

/** What is said of attempts of which some have worked; null if none has failed. */
function partOf(rows: readonly Attempt[], all: readonly Attempt[], noun: string): Seen | null {
  const failure = typical(rows.filter((row) => !worked(row)));
  if (failure === undefined) return null;
  const { made, worked: count } = tallyOf(rows);
  const { text = "", at } = failure;
  const failed = `${shareText(made - count, made, noun)} failed, most by ${reasonText(failure, all)}.`;
  const finding = hasStopped(rows) ? "stopped" : "sometimes";
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
  const alike = shareText(
    rows.filter((row) => row.finding === finding).length,
    rows.length,
    NOUNS[kind],
  );
  // As where one of several servers redirects to what does not work.
  const isPart =
    finding && FINDINGS[finding].status === "fail" && rows.some((row) => row.finding !== finding);
  if (isPart) return { finding: "sometimes", text: `${alike}: ${text}`, ...facts };
  const counted = good.length > 0 ? `${countText(rows, kind)} worked.` : `${alike} failed.`;
  return { text: `${text} ${counted}`, ...facts, ...(finding && { finding }) } as Seen;
}

function judgeHttp(requests: readonly Attempt[], all: readonly Attempt[]): Seen {
  const read = requests.filter(({ isRead, reason }) => isRead || reason === "response-incomplete");
  // The others have ended behind the head, and say nothing of bodies.
  const isCut = read.length > 0 && read.every(({ reason }) => reason === "response-incomplete");
  return judgePart(isCut ? read : requests, all);
}

/** Names of ICMPv6 errors by which a router loses a packet in a circle, or does not want it. */
const [LOOP, REFUSALS] = ["hop-limit-exceeded", ["prohibited", "source-policy", "reject-route"]];

/** Of a machine without a way over IPv4, which says nothing of the name. */
const NO_IPV4 = { status: "skipped", text: "Not tested: this server has no IPv4." } as const;

/** Judges why no connection came about. */
function judgeClosed(
  connects: readonly Attempt[],
  syns: readonly Attempt[],
  echoes: readonly Attempt[],
): Seen {
  const has = (reason: string) => [...connects, ...syns].some((row) => row.reason === reason);
  if (has("not-sent") && connects.every((row) => !isIpv6(row.ip))) return NO_IPV4;
  const isReset = syns.some(({ reason }) => reason === "refused");
  const error = isReset ? undefined : typical(syns.filter(({ at }) => at !== undefined));
  const { reason = isReset ? "refused" : null, at, ip } = error ?? {};
  const answered = syns.filter((row) => row.reason === reason && row.at === at).length;
  const whose = isReset ? " by RST" : error ? ` by ${at} with ${inWords(`${reason}`)}` : "";
  const counts = [
    `${countText(connects, "connect")} opened`,
    syns.length > 0 && `${shareText(answered, syns.length, "SYN")} were answered${whose}`,
    // Another one answers these.
    echoes.length > 0 && `${countText(echoes, "echo")} were${whose && " answered"}`,
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
  const [connects, syns, echoes] = [of(rows, "connect"), of(rows, "syn"), of(all, "echo")];
  const opened = connects.filter(worked).map(({ ms }) => round(ms, 3));
  if (connects.length > 0 && opened.length === 0) return judgeClosed(connects, syns, echoes);
  const rtt = opened.length > 0 && { rtt: Math.min(...opened), rttMost: Math.max(...opened) };
  const isBare = areBare(syns, connects);
  const known = isBare ? connects : rows.filter(({ reason }) => reason !== "unknown");
  // SYNs without an answer are judged as loss, unless nothing comes any more.
  const isLost = ({ kind, reason }: Attempt) => kind === "syn" && LOST.includes(reason);
  const counted = hasStopped(known) ? known : known.filter((row) => !isLost(row));
  const part = partOf(counted, all, "connection attempt");
  const loss = lossOf(all);
  const isLimit =
    loss?.finding === "unknown" &&
    connects.every(({ reason }) => reason === null || reason === "timeout");
  if (part && (part.finding === "stopped" || !isLimit)) return { ...part, ...rtt };
  if (loss) return { ...loss, ...rtt };
  const parts = [
    opened.length > 0 && `${countText(connects, "connect")} opened`,
    syns.length > 0 && `${countText(syns, "syn")} were answered`,
  ];
  const bare = isBare ? " A firewall drops bare SYNs, as probes are, and no connections." : "";
  return { ...rtt, text: `${listText(parts.filter(Boolean))}.${bare}` };
}
