import type { DnsResult } from "../routes/dns.ts";
import { type PingResult, summarize } from "../routes/ping.ts";
import type { TraceResult } from "../routes/traceroute.ts";
import type { Line, Part, Screen } from "./screen.ts";
import type { View } from "./tool.ts";

type Sample = PingResult["results"][number] | PingResult["details"]["lost"][number];
type Hop = TraceResult["hops"][number];
type DnsRecord = DnsResult["records"][number];

/** The answer of several locations. */
interface ResultsOfLocations {
  readonly locations: readonly {
    readonly location: string;
    readonly result?: unknown;
    readonly error?: { readonly message: string };
  }[];
}

/** Round-trip times up to 99,999.999 ms, so that they are below each other. */
const TIME_WIDTH = 9;

const milliseconds = (ms: number) => `${ms.toFixed(3).padStart(TIME_WIDTH)} ms`;
const NO_TIME = " ".repeat(TIME_WIDTH + 3);
const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** A line for each sample, and a summary like that of ping(8). */
export function pingView(target: string, screen: Screen): View {
  const samples = new Map<number, Sample>();
  screen.print([["dim", `ping ${target}`]]);
  return {
    event(data) {
      const sample = data as Sample;
      samples.set(sample.seq, sample);
      screen.print(sampleLine(sample));
    },
    end(data) {
      const result = data as PingResult | null;
      const { transmitted, received, loss, min, avg, max } = result?.stats ?? summaryOf(samples);
      const { duplicates = 0 } = result?.details ?? {};
      const where = result === null || result.ip === target ? "" : ` (${result.ip})`;
      screen.print(
        [],
        [["bold", `${target}${where}`]],
        [
          `${transmitted} sent, ${received} received, `,
          [
            received === transmitted ? "green" : received === 0 ? "red" : "yellow",
            `${loss} % lost`,
          ],
          ...(duplicates > 0 ? [`, ${plural(duplicates, "duplicate")}`] : []),
        ],
      );
      if (min !== null && avg !== null && max !== null) {
        const times = [min, avg, max].map((time) => time.toFixed(3)).join("/");
        screen.print([`rtt min/avg/max ${times} ms`]);
      }
      return received > 0;
    },
  };
}

function sampleLine(sample: Sample): Line {
  const seq: Part = ["dim", `seq ${String(sample.seq).padStart(3)}`];
  if (!("reason" in sample)) {
    const { rtt, ttl, details } = sample;
    const from = details === undefined ? "" : `  from ${details.from}`;
    return [seq, `  ${milliseconds(rtt)}`, ["dim", `  ttl ${ttl}`], from];
  }
  const { reason, rtt } = sample as { reason: string; rtt?: number };
  const why = "errno" in sample ? `${reason} (${sample.errno})` : reason;
  const from = "from" in sample ? ` from ${sample.from}` : "";
  return [seq, `  ${rtt === undefined ? NO_TIME : milliseconds(rtt)}`, ["red", `  ${why}${from}`]];
}

function summaryOf(samples: ReadonlyMap<number, Sample>) {
  const all = [...samples.values()];
  const times = all.flatMap((sample) => ("reason" in sample ? [] : [sample.rtt]));
  const unknown = all.filter((sample) => "reason" in sample && sample.reason === "unknown");
  return summarize(times, all.length - times.length - unknown.length, all.length);
}

/** A line for each hop, which changes in a terminal when more is known of the hop, and how the trace ended. */
export function traceView(target: string, screen: Screen): View {
  const hops: Hop[] = [];
  screen.print([["dim", `trace to ${target}`]]);
  return {
    event(data) {
      const hop = data as Hop;
      hops[hop.hop - 1] = hop;
      screen.show(hopLines(hops));
    },
    end(data) {
      const result = data as TraceResult | null;
      const lines = hopLines(result?.hops ?? hops);
      if (screen.isTerminal) screen.show(lines);
      else screen.print(...lines);
      const where = result === null || result.ip === target ? "" : ` (${result.ip})`;
      const isReached = result?.details.reached ?? false;
      screen.print(
        [],
        [
          ["bold", `${target}${where}`],
          " ",
          [isReached ? "green" : "yellow", result === null ? "interrupted" : endOf(result)],
        ],
      );
      return isReached;
    },
  };
}

/** The lines of a trace; a hop that is not known yet is empty. */
function hopLines(hops: readonly (Hop | undefined)[]): Line[] {
  const widthOf = (text: string | null | undefined) => text?.length ?? 0;
  const width = Math.max(0, ...Array.from(hops, (hop) => widthOf(hop?.ip)));
  return Array.from(hops, (hop, index) => {
    const number: Part = ["dim", String(index + 1).padStart(3)];
    if (hop === undefined) return [number];
    const { ip, rtt, hostname } = hop;
    if (ip === null || rtt === null) return [number, ["dim", `  ${NO_TIME}  no reply`]];
    return [
      number,
      `  ${milliseconds(rtt)}  `,
      hostname === null && notes(hop) === "" ? ip : ip.padEnd(width),
      ["bold", hostname === null ? "" : `  ${hostname}`],
      ["dim", notes(hop)],
    ];
  });
}

/** What else a hop said. */
function notes({ ip, details = {} }: Hop): string {
  const { zone, addresses = [], mpls = [], mtu, network } = details;
  const others = addresses.filter((address) => address !== ip);
  const asn = network?.asn ? `AS${network.asn}` : null;
  return [
    ...[asn, network?.name].filter((each) => typeof each === "string"),
    ...(zone === undefined ? [] : [`on ${zone}`]),
    ...(others.length === 0 ? [] : [`also ${others.join(" ")}`]),
    ...(mpls.length === 0 ? [] : [`MPLS ${mpls.map(({ label }) => label).join(" ")}`]),
    ...(mtu === undefined ? [] : [`MTU ${mtu}`]),
  ]
    .map((note) => `  ${note}`)
    .join("");
}

function endOf({ hops, details: { reason, error, otherSource } }: TraceResult): string {
  if (error !== undefined) return `not reached: ${error.name} from ${error.from}`;
  if (reason !== "reached") return `not reached: ${reason}`;
  const other = otherSource === undefined ? "" : `, which replied as ${otherSource}`;
  return `reached in ${plural(hops.length, "hop")}${other}`;
}

/** The records below each other, and which server said so. */
export function dnsView(screen: Screen): View {
  return {
    end(data) {
      if (data === null) return false;
      const { records, queryTime, details } = data as DnsResult;
      const { question, resolvers, dnssec } = details;
      if (resolvers === undefined) {
        screen.print(...recordLines(records, question.type));
        screen.print([], [["dim", whence(queryTime, details)]]);
      }
      for (const reply of resolvers ?? []) {
        screen.print([["bold", reply.resolver]], ...recordLines(reply.records, question.type));
        screen.print([["dim", whence(reply.queryTime, reply)]], []);
      }
      if (resolvers !== undefined) screen.print([agreement(details)]);
      if (dnssec !== undefined) screen.print([`DNSSEC: ${dnssec.verdict}`]);
      return records.some(({ type }) => type === question.type);
    },
  };
}

function recordLines(records: readonly DnsRecord[], asked: string): Line[] {
  const width = (texts: readonly string[]) => Math.max(0, ...texts.map(({ length }) => length));
  const types = width(records.map(({ type }) => type));
  const ttls = width(records.map(({ ttl }) => String(ttl)));
  const lines = records.map(
    ({ type, ttl, value }): Line => [
      ["green", type.padEnd(types)],
      ["dim", `  ${String(ttl).padStart(ttls)}`],
      `  ${value}`,
    ],
  );
  const isThere = records.some(({ type }) => type === asked);
  return isThere ? lines : [...lines, [["yellow", `no ${asked} record`]]];
}

function whence(queryTime: number, { server, transport, rcode }: Partial<DnsResult["details"]>) {
  const from = server === undefined ? "no server" : `${server} over ${transport}, ${rcode}`;
  return `${from}, ${queryTime} ms`;
}

function agreement({ agree, differences = [] }: DnsResult["details"]): string {
  return agree ? "the resolvers agree" : `the resolvers differ in ${differences.join(", ")}`;
}

/** One line for each value, with its name in the API's document. */
export function fieldsView(screen: Screen): View {
  return {
    end(data) {
      if (data === null) return false;
      const rows = [...fieldsOf(data as object)];
      const width = Math.max(...rows.map(([name]) => name.length));
      screen.print(
        ...rows.map(([name, value]): Line => [["dim", name.padEnd(width)], `  ${value}`]),
      );
      return true;
    },
  };
}

/** The values in a document with their paths; those of `details` are shown as if they were outside. */
function* fieldsOf(data: object, path = ""): Generator<[name: string, value: string]> {
  for (const [key, value] of Object.entries(data)) {
    const name = key === "details" ? path : [path, key].filter(Boolean).join(".");
    if (Array.isArray(value)) yield [name, value.map(String).join(", ")];
    else if (typeof value === "object" && value !== null) yield* fieldsOf(value, name);
    else yield [name, String(value)];
  }
}

/** The caller's address alone, for a script. */
export function addressView(screen: Screen): View {
  return {
    end(data) {
      if (data === null) return false;
      screen.print([(data as { ip: string }).ip]);
      return true;
    },
  };
}

/** The results of several locations below each other, each as the view shows one. */
export function locationsView(screen: Screen, makeView: (screen: Screen) => View): View {
  return {
    end(data) {
      const { locations = [] } = (data ?? {}) as Partial<ResultsOfLocations>;
      const areAnswered = locations.map(({ location, result, error }) => {
        screen.print([["bold", location]]);
        const isAnswered = result !== undefined && makeView(screen).end(result);
        if (error !== undefined) screen.print([["red", error.message]]);
        screen.print([]);
        return isAnswered;
      });
      return areAnswered.length > 0 && areAnswered.every(Boolean);
    },
  };
}
