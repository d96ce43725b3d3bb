import { HEADER_BYTES, IPV6_HEADER_BYTES, PAYLOAD_BYTES } from "../icmp/wire/packet.ts";
import type { MtrResult } from "../tools/mtr/result.ts";
import { MAX_WIDTH } from "../tools/report-text.ts";
import { mapValues } from "../util/objects.ts";
import { printable } from "../util/text.ts";

type Hop = MtrResult["hops"][number];

/** The columns of both formats: loss in percent, and the standard deviation of a sample, as in mtr. */
function columnsOf({ sent, unknown, received, last, avg, min, max, stdDev }: Hop) {
  const counted = sent - unknown;
  const factor = received > 1 ? Math.sqrt(received / (received - 1)) : 0;
  return {
    "Loss%": counted === 0 ? 0 : ((counted - received) / counted) * 100,
    Snt: counted,
    Last: last ?? 0,
    Avg: avg ?? 0,
    Best: min ?? 0,
    Wrst: max ?? 0,
    StDev: (stdDev ?? 0) * factor,
  };
}

const hostOf = ({ hostname, ip }: Hop) => hostname ?? ip ?? "???";
const TITLES = " Loss%   Snt   Last   Avg  Best  Wrst StDev";

/**
 * The output of `mtr --report --report-wide`, in UTC, with the verdict below it. The host is the source
 * address of the probes, because a service elsewhere does not tell its name.
 */
function mtrReport({ hops, details }: MtrResult): string {
  const { source, startedAt, verdict } = details;
  const longest = Math.max(source.length, ...hops.map((hop) => hostOf(hop).length));
  const width = Math.min(longest, MAX_WIDTH);
  const lines = hops.map((hop) => {
    const { "Loss%": loss, Snt, ...times } = columnsOf(hop);
    // mtr cuts the last character of 100.0%.
    const percent = ` ${loss.toFixed(1).padStart(4)}%`.slice(0, 6);
    const numbers = Object.values(times).map((time) => ` ${time.toFixed(1).padStart(5)}`);
    const host = hostOf(hop).padEnd(width);
    return ` ${String(hop.hop).padStart(2)}.|-- ${host}${percent} ${String(Snt).padStart(5)} ${numbers.join("")}`;
  });
  const start = startedAt.slice(0, "2026-11-22T04:29:58".length);
  const head = [`Start: ${start}+0000`, `HOST: ${source.padEnd(width)}${TITLES}`];
  return [...head, ...lines, verdict.text].map(printable).join("\n");
}

const PACKET_BYTES = IPV6_HEADER_BYTES + HEADER_BYTES + PAYLOAD_BYTES;

/** The document that `mtr --json` prints. */
function mtrJson({ target, hops, details }: MtrResult): string {
  const hubs = hops.map((hop) => ({
    count: hop.hop,
    host: hostOf(hop),
    ...mapValues(columnsOf(hop), (value) => Number(value.toFixed(3))),
  }));
  const mtr = {
    src: details.source,
    dst: target,
    tos: 0,
    tests: Math.max(0, ...hops.map(({ sent, unknown }) => sent - unknown)),
    psize: String(PACKET_BYTES),
    bitpattern: "0x00",
  };
  return JSON.stringify({ report: { mtr, hubs } }, null, 4);
}

/** The functions that print a document of `/mtr` as mtr does, by the name of the format. */
export const FORMATS = { "mtr-report": mtrReport, "mtr-json": mtrJson } as const;
