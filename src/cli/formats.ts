import { HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES } from "../icmp/wire/packet.ts";
import type { MtrResult } from "../tools/mtr/result.ts";
import type { PingResult } from "../tools/ping/result.ts";
import { MAX_WIDTH } from "../tools/report-text.ts";
import type { ToolName } from "../tools/reports.ts";
import type { TraceResult } from "../tools/trace/result.ts";
import { mapValues } from "../util/objects.ts";
import { printable } from "../util/text.ts";

/** Makes a text as mtr prints it from a document of the API. */
export type Format = (result: unknown) => string;

/** The formats of mtr by name. */
export type Formats = Readonly<Record<"mtr-report" | "mtr-json", Format>>;

type Head = PingResult | TraceResult | MtrResult;

type Counts = "hop" | "sent" | "received" | "last" | "avg" | "min" | "max" | "stdDev";

/** A hop as mtr counts; its host is null if it is silent. */
type Row = Pick<MtrResult["hops"][number], Counts> & { readonly host: string | null };

/** The hop limit of the requests of a ping. */
const PING_HOP_LIMIT = 64;

/** A ping is one row: what `mtr -f 64 -m 64` measures. */
function pingRows({ target, results, stats, details }: PingResult): readonly Row[] {
  const { transmitted, received, avg, min, max } = stats;
  const unknown = details.lost.filter(({ reason }) => reason === "unknown").length;
  const squares = results.map(({ rtt }) => (rtt - (avg ?? 0)) ** 2);
  const variance = squares.reduce((sum, square) => sum + square, 0) / Math.max(1, squares.length);
  const last = results.at(-1)?.rtt ?? null;
  const times = { last, avg, min, max, stdDev: Math.sqrt(variance) };
  const host = received > 0 ? target : null;
  return [{ hop: PING_HOP_LIMIT, host, sent: transmitted - unknown, received, ...times }];
}

/** A trace is one round, in which each hop answered or not; an error that ends the path is no answer of a hop. */
function traceRows({ hops, details: { error, refused = [] } }: TraceResult): readonly Row[] {
  return hops.map(({ hop, ip, hostname, rtt }) => {
    const isUnsent = rtt === null && refused.some((each) => each.hop === hop);
    const isAnswered = rtt !== null && !(error && hop === hops.length);
    return {
      ...{ hop, host: rtt === null ? null : (hostname ?? ip) },
      ...{ sent: isUnsent ? 0 : 1, received: isAnswered ? 1 : 0 },
      ...{ last: rtt, avg: rtt, min: rtt, max: rtt, stdDev: rtt === null ? null : 0 },
    };
  });
}

/** The hops with their statistics. */
function mtrRows({ hops }: MtrResult): readonly Row[] {
  return hops.map((hop) => ({
    ...hop,
    host: hop.hostname ?? hop.ip,
    sent: hop.sent - hop.unknown,
  }));
}

/** The columns of both formats: loss in percent, and the standard deviation of a sample as mtr has it. */
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
 * The output of `mtr --report --report-wide`, in UTC, with the verdict below it. The host is the source
 * address of the probes, because a service elsewhere does not tell its name.
 */
function mtrReport({ details }: Head, rows: readonly Row[]): string {
  const { source, startedAt, verdict } = details;
  const longest = Math.max(source.length, ...rows.map(({ host }) => (host ?? NO_HOST).length));
  const width = Math.min(longest, MAX_WIDTH);
  const lines = rows.map((row) => {
    const { "Loss%": loss, Snt, ...times } = columnsOf(row);
    // mtr overwrites the last sign of 100.0%.
    const percent = ` ${loss.toFixed(1).padStart(4)}%`.slice(0, 6);
    const numbers = Object.values(times).map((time) => ` ${time.toFixed(1).padStart(5)}`);
    const host = (row.host ?? NO_HOST).padEnd(width);
    return ` ${String(row.hop).padStart(2)}.|-- ${host}${percent} ${String(Snt).padStart(5)} ${numbers.join("")}`;
  });
  const start = startedAt.slice(0, "2026-11-22T04:29:58".length);
  const head = [`Start: ${start}+0000`, `HOST: ${source.padEnd(width)}${TITLES}`];
  return [...head, ...lines, verdict.text].map(printable).join("\n");
}

const PACKET_BYTES = IPV6_HEADER_BYTES + HEADER_BYTES + PAYLOAD_BYTES;

/** The document that `mtr --json` prints. */
function mtrJson({ target, details }: Head, rows: readonly Row[]): object {
  return {
    report: {
      mtr: {
        src: details.source,
        dst: target,
        tos: 0,
        tests: Math.max(0, ...rows.map(({ sent }) => sent)),
        psize: String(PACKET_BYTES),
        bitpattern: "0x00",
      },
      hubs: rows.map((row) => ({
        count: row.hop,
        host: row.host ?? NO_HOST,
        ...mapValues(columnsOf(row), (value) => Number(value.toFixed(3))),
      })),
    },
  };
}

/** The formats of the tools that mtr has too. */
export const FORMATS: Readonly<Partial<Record<ToolName, Formats>>> = {
  ping: formatsOf(pingRows),
  trace: formatsOf(traceRows),
  mtr: formatsOf(mtrRows),
};

function formatsOf<Result extends Head>(rowsOf: (result: Result) => readonly Row[]): Formats {
  const format = (write: (result: Result, rows: readonly Row[]) => string): Format =>
    ((result: Result) => write(result, rowsOf(result))) as Format;
  return {
    "mtr-report": format(mtrReport),
    "mtr-json": format((result, rows) => JSON.stringify(mtrJson(result, rows), null, 4)),
  };
}
