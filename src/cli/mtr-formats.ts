import { IPV6_HEADER_BYTES, PAYLOAD_BYTES } from "../icmp/message.ts";
import type { MtrResult } from "../routes/mtr.ts";
import type { PingResult } from "../routes/ping.ts";
import type { TraceResult } from "../routes/traceroute.ts";
import { printable } from "../util/text.ts";

/** What the results of all tools have. */
export interface Head {
  readonly target: string;
  readonly ip: string;
  readonly details: { readonly source: string };
}

/** A hop as mtr counts; times in milliseconds, null without an answer. */
export interface Row {
  readonly hop: number;
  /** Null for a silent hop. */
  readonly host: string | null;
  readonly sent: number;
  readonly received: number;
  readonly last: number | null;
  readonly avg: number | null;
  readonly min: number | null;
  readonly max: number | null;
  /** The standard deviation of the population. */
  readonly stdDev: number | null;
}

/** The hop limit of the requests of a ping. */
const PING_HOP_LIMIT = 64;

/** A ping is one row: what `mtr -f 64 -m 64` measures. */
export function pingRows({ target, results, stats, details }: PingResult): readonly Row[] {
  const unknown = details.lost.filter(({ reason }) => reason === "unknown").length;
  const { received, avg, min, max } = stats;
  const squares = results.map(({ rtt }) => (rtt - (avg ?? 0)) ** 2);
  const variance = squares.reduce((sum, square) => sum + square, 0) / Math.max(1, squares.length);
  const last = results.at(-1)?.rtt ?? null;
  const times = { last, avg, min, max, stdDev: Math.sqrt(variance) };
  const host = received > 0 ? target : null;
  return [{ hop: PING_HOP_LIMIT, host, sent: stats.transmitted - unknown, received, ...times }];
}

/** A trace is one round, in which each hop answered or not. */
export function traceRows({ hops }: TraceResult): readonly Row[] {
  return hops.map(({ hop, ip, hostname, rtt }) => ({
    ...{ hop, host: hostname ?? ip, sent: 1, received: rtt === null ? 0 : 1 },
    ...{ last: rtt, avg: rtt, min: rtt, max: rtt, stdDev: rtt === null ? null : 0 },
  }));
}

/** The hops with their statistics. */
export function mtrRows({ hops }: MtrResult): readonly Row[] {
  return hops.map(({ ip, hostname, ...hop }) => ({ ...hop, host: hostname ?? ip }));
}

/** What both formats show of a row: loss in percent, and the standard deviation of a sample as mtr has it. */
function columnsOf({ sent, received, last, avg, min, max, stdDev }: Row) {
  const factor = received > 1 ? Math.sqrt(received / (received - 1)) : 0;
  return {
    "Loss%": sent === 0 ? 0 : ((sent - received) / sent) * 100,
    Snt: sent,
    Last: last ?? 0,
    Avg: avg ?? 0,
    Best: min ?? 0,
    Wrst: max ?? 0,
    StDev: (stdDev ?? 0) * factor,
  };
}

const NO_HOST = "???";
const TITLES = " Loss%   Snt   Last   Avg  Best  Wrst StDev";

/**
 * What `mtr --report --report-wide` prints, in UTC. The host is the source address of the probes, because
 * a service somewhere else does not tell its name.
 */
export function mtrReport(
  { details: { source } }: Head,
  rows: readonly Row[],
  startMs: number,
): string {
  const width = Math.max(source.length, ...rows.map(({ host }) => (host ?? NO_HOST).length));
  const lines = rows.map((row) => {
    const { "Loss%": loss, Snt, ...times } = columnsOf(row);
    // mtr overwrites the last sign of 100.0%.
    const percent = ` ${loss.toFixed(1).padStart(4)}%`.slice(0, 6);
    const numbers = Object.values(times).map((time) => ` ${time.toFixed(1).padStart(5)}`);
    const host = (row.host ?? NO_HOST).padEnd(width);
    return ` ${String(row.hop).padStart(2)}.|-- ${host}${percent} ${String(Snt).padStart(5)} ${numbers.join("")}`;
  });
  const start = new Date(startMs).toISOString().slice(0, "2026-11-22T04:29:58".length);
  const all = [`Start: ${start}+0000`, `HOST: ${source.padEnd(width)}${TITLES}`, ...lines];
  return all.map(printable).join("\n");
}

/** The document that `mtr --json` prints. */
export function mtrJson({ target, details }: Head, rows: readonly Row[]): object {
  const ECHO_HEADER_BYTES = 8;
  const packetBytes = IPV6_HEADER_BYTES + ECHO_HEADER_BYTES + PAYLOAD_BYTES;
  return {
    report: {
      mtr: {
        src: details.source,
        dst: target,
        tos: 0,
        tests: Math.max(0, ...rows.map(({ sent }) => sent)),
        psize: String(packetBytes),
        bitpattern: "0x00",
      },
      hubs: rows.map((row) => ({
        count: row.hop,
        host: row.host ?? NO_HOST,
        ...Object.fromEntries(
          Object.entries(columnsOf(row)).map(([name, value]) => [name, Number(value.toFixed(3))]),
        ),
      })),
    },
  };
}
