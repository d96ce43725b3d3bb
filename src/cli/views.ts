import type { DnsResult } from "../routes/dns.ts";
import { type PingResult, summarize } from "../routes/ping.ts";
import type { Line, Part, Screen } from "./screen.ts";
import type { View } from "./tool.ts";

type Sample = PingResult["results"][number] | PingResult["details"]["lost"][number];
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

/** A round-trip time with its unit. */
export const milliseconds = (ms: number) => `${ms.toFixed(3).padStart(TIME_WIDTH)} ms`;
/** As wide as a time. */
export const NO_TIME = " ".repeat(TIME_WIDTH + 3);
/** A count with its noun, which takes an s. */
export const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Where a target leads that lies behind a translator (NAT64). */
export function translatorLines({ dns64 }: Pick<PingResult["details"], "dns64">): Line[] {
  if (dns64 === undefined) return [];
  return [[["dim", `leads to ${dns64.ipv4} through a translator (${dns64.prefix})`]]];
}

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
      screen.print(...translatorLines(result?.details ?? {}));
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
