import { mtrVerdict } from "./mtr-verdict.ts";
import { mtuNotes, mtuVerdict } from "./mtu-verdict.ts";
import { formatMs, formatPercent } from "./numbers.ts";
import { noteOf, statsOf } from "./samples.ts";
import { TEXTS } from "./texts.ts";
import type {
  DnsReply,
  MtrResult,
  MtuResult,
  PathDetails,
  PingResult,
  Sample,
  TracePath,
  TraceResult,
} from "./types.ts";
import { whoText } from "./who.tsx";

const T = TEXTS.trace;
const { report } = TEXTS.ping;

/** A table as text: columns as wide as their widest cell; numbers at the right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        /^[\d.]+%?$/.test(cell)
          ? cell.padStart(widths[column] ?? 0)
          : cell.padEnd(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd();
  return rows.map(line).join("\n");
}

/** A trace as text, like a report of mtr. */
export function traceText({ target, ip, hops, details }: TraceResult): string {
  const rows = hops.map(({ hop, ip: address, hostname, rtt, details: told }) => [
    `${hop}.`,
    whoText({ ip: address, hostname }),
    rtt === null ? "" : rtt.toFixed(3),
    [
      ...(told?.network ? [TEXTS.network(told.network.asn, told.network.name)] : []),
      ...(told?.mpls ?? []).map(({ label }) => T.label(label)),
    ].join(", "),
  ]);
  const head = TEXTS.report(TEXTS.tools.trace, target, ip, details.source);
  const { paths = [] } = details satisfies PathDetails;
  return [
    head,
    table([["", T.host, TEXTS.ms, ""], ...rows]),
    T.reasons[details.reason],
    ...(paths.length > 1 ? paths.map(pathText) : []),
    "",
  ].join("\n");
}

function pathText({ flowLabel, labels, reason, addresses }: TracePath, index: number): string {
  const hops = addresses.map((ip) => `  ${ip ?? T.unanswered}`);
  const head = TEXTS.paths.report(index + 1, flowLabel, labels);
  return ["", head, ...hops, `  ${T.reasons[reason]}`].join("\n");
}

/** Statistics as text, in the columns of mtr's report. */
export function mtrText(result: MtrResult): string {
  const { target, ip, hops, details } = result;
  const time = (ms: number | null) => (ms ?? 0).toFixed(1);
  const rows = hops.map(({ hop, ip, hostname, loss, sent, last, avg, min, max, stdDev }) => [
    `${hop}.|-- ${whoText({ ip, hostname })}`,
    ...[`${(loss ?? 0).toFixed(1)}%`, String(sent)],
    ...[last, avg, min, max, stdDev].map(time),
  ]);
  return [
    TEXTS.report(TEXTS.tools.mtr, target, ip, details.source),
    table([TEXTS.mtr.report, ...rows]),
    `${mtrVerdict(result).text}\n`,
  ].join("\n");
}

/** A path MTU as text. */
export function mtuText(result: MtuResult): string {
  const { target, ip, mtu, hops, details } = result;
  const rows = hops.map((hop) => [`${hop.hop}.`, whoText(hop), String(hop.mtu ?? "")]);
  return [
    TEXTS.report(TEXTS.tools.mtu, target, ip, details.source),
    table([["", T.host, TEXTS.mtu.unit], ...rows]),
    [mtu !== null && TEXTS.mtu.bytes(mtu), mtuVerdict(result).text].filter(Boolean).join(". "),
    ...mtuNotes(result).map(({ from, text }) => `${from}: ${text}`),
    "",
  ].join("\n");
}

/** A ping as text, like a report of ping. */
export function pingText({ target, ip, details }: PingResult, samples: readonly Sample[]): string {
  const { sent, received, lossPercent, min, mean, max } = statsOf(samples);
  const lines = samples.map((sample) =>
    "reason" in sample
      ? report.lost(sample.seq, noteOf(sample, details.timeout))
      : report.reply(sample.seq, sample.ttl, sample.rtt.toFixed(3), noteOf(sample, null)),
  );
  const times = [min, mean, max].map((ms) => (ms === null ? TEXTS.none : formatMs(ms)));
  return [
    TEXTS.report(TEXTS.tools.ping, target, ip, details.source),
    ...lines,
    report.summary(sent, received, formatPercent(lossPercent), times.join("/")),
    "",
  ].join("\n");
}

/** The replies of the resolvers as text. */
export function dnsText(name: string, replies: readonly DnsReply[]): string {
  const blocks = replies.map(({ resolver, records, server, queryTime, rcode, outcome }) =>
    [
      `; ${TEXTS.dns.resolvers[resolver]} ${server ?? ""} ${rcode ?? outcome}, ${queryTime} ${TEXTS.ms}`,
      table(records.map(({ type, value, ttl }) => [String(ttl), type, value])),
    ]
      .filter((line) => line !== "")
      .join("\n"),
  );
  return `; ${name}\n${blocks.join("\n\n")}\n`;
}
