import { formatMs } from "./numbers.ts";
import { noteOf, statsOf } from "./samples.ts";
import { TEXTS } from "./texts.ts";
import type { DnsReply, PingResult, Sample, TraceResult } from "./types.ts";

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
        /^[\d.]+$/.test(cell)
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
    address === null ? T.unanswered : hostname === null ? address : `${hostname} (${address})`,
    rtt === null ? "" : rtt.toFixed(3),
    [
      ...(told?.network ? [TEXTS.network(told.network.asn, told.network.name)] : []),
      ...(told?.mpls ?? []).map(({ label }) => T.label(label)),
    ].join(", "),
  ]);
  const head = TEXTS.report(TEXTS.tools.trace, target, ip, details.source);
  return `${head}\n${table([["", T.host, TEXTS.ms, ""], ...rows])}\n${T.reasons[details.reason]}\n`;
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
    report.summary(sent, received, String(Number(lossPercent.toFixed(1))), times.join("/")),
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
