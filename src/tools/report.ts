import type { z } from "zod";
import type { ValueOf } from "../api/schemas.ts";
import type { Translation } from "../dns/dns64.ts";
import { inWords, listText } from "../util/text.ts";
import { FAILURES } from "./check/findings.ts";
import type { portField, runDetailFields, traceError } from "./fields.ts";
import { CODES, WARNINGS } from "./here/codes.ts";
import type { MtuHop } from "./mtu/result.ts";

/** Whether a verdict, a fact or a row is good news. */
export type Tone = "good" | "warn" | "bad";

/** A host on a path; `ip` is null for a silent hop. */
export interface Host {
  readonly ip: string | null;
  readonly hostname: string | null;
}

/** The content of a column, which decides how each face prints it. */
export type Kind =
  /** A number of a row, from 1. */
  | "position"
  | "host"
  /** Milliseconds, alone in their row. */
  | "time"
  /** Milliseconds, beside others. */
  | "ms"
  | "percent"
  | "count"
  | "bytes"
  | "text"
  /** An address, a name, or other data that people copy. */
  | "value"
  /** Short texts. */
  | "notes";

export interface Column {
  /** Empty for a last column with notes on each row. */
  readonly name: string;
  readonly kind: Kind;
  /** True if the tone of a row shows here. */
  readonly isToned?: boolean;
  /** True if the column is left out first where there is too little room. */
  readonly isExtra?: boolean;
  /** True if the column is left out last. */
  readonly isDetail?: boolean;
}

/** A value of a column's kind; null if it is not known. */
export type Cell = null | string | number | Host | readonly string[];

export interface Row {
  /** In the order of the columns. */
  readonly cells: readonly Cell[];
  readonly tone?: Tone;
}

/** A name and a value; the tone is that of the value. */
export interface Fact {
  readonly name: string;
  readonly value: string;
  readonly tone?: Tone;
  /** True if the value is one that users copy. */
  readonly isValue?: boolean;
}

export interface Table {
  /** Absent if the report has one table. */
  readonly heading?: string;
  readonly columns: readonly Column[];
  readonly rows: readonly Row[];
  /** Facts below the table. */
  readonly facts?: readonly Fact[];
}

/** A document for people: terminal, page and copied text print it. */
export interface Report {
  /** The target, name or address in question. */
  readonly title: string;
  /** Null until the document has one. */
  readonly verdict: { readonly tone: Tone; readonly text: string } | null;
  readonly facts: readonly Fact[];
  readonly tables: readonly Table[];
  /** True if the question is answered. */
  readonly isAnswered: boolean;
}

/** The document of a run so far; `Known` names the fields that it has from the beginning. */
export type Draft<Result extends { details: object }, Known extends keyof Result> = Partial<
  Omit<Result, "details">
> &
  Pick<Result, Known> & { readonly details: Partial<Result["details"]> };

/** How a tool's document becomes a report. */
export interface Reporter<Document = never, Part = never> {
  /**
   * The document as far as it is known while the tool runs.
   *
   * @param subject the target, name or address as it was given
   * @param parts the data of the events until now
   */
  draft?(subject: string, parts: readonly Part[]): Document;
  /** Merges a new part into those before it, so that a long run need not keep them all. */
  merge?(known: Part | undefined, part: Part): Part;
  /** How far a run has come: what is counted, the parameter with the total, and the count by the last part. */
  readonly progress?: {
    readonly noun: string;
    readonly wanted: string;
    of(part: Part): number;
  };
  report(document: Document): Report;
  /** A document from the details of an error; undefined if they say no more than its message. */
  explain?(details: Readonly<Record<string, unknown>>): Document | undefined;
}

/** The codes of verdicts that are good or bad news; the others are a warning. */
const GOOD = ["works", "no-loss", "reached", "clear", "narrowed", "answer"];
const BAD: readonly string[] = [
  ..."loss no-reply unreachable not-sent loop prohibited black-hole below-1280".split(" "),
  ...FAILURES,
  ...CODES.filter((code) => code !== "works" && !WARNINGS.includes(code)),
];

/** The tone of the code of a verdict, or of an error, whose code is in capitals. */
export function toneOf(code: string): Tone {
  if (GOOD.includes(code)) return "good";
  return BAD.includes(code) || /^[A-Z0-9_]+$/.test(code) ? "bad" : "warn";
}

/** A verdict with its tone; null without one. */
export const tonedVerdict = (verdict: RunDetails["verdict"] | undefined): Report["verdict"] =>
  verdict ? { tone: toneOf(verdict.code), text: verdict.text } : null;

type TraceError = ValueOf<ReturnType<typeof traceError>>;

type IcmpError = Pick<TraceError, "name" | "type" | "code" | "from">;

export type RunDetails = ValueOf<
  z.ZodObject<ReturnType<typeof runDetailFields> & ReturnType<typeof portField>>
>;

/** The fields that the documents of all runs share. */
interface RunDocument {
  readonly target: string;
  readonly ip?: string;
  readonly details?: Partial<RunDetails> & {
    readonly flowLabel?: number;
    readonly error?: IcmpError;
  };
}

/** A name, its value if there is one, and the tone of the value, or `copied` if users copy it. */
export type FactRow = readonly [
  name: string,
  value: string | false | null | undefined,
  tone?: Tone | "copied" | false | undefined,
];

/** The facts that have a value. */
export function factsOf(...rows: readonly FactRow[]): Fact[] {
  return rows.flatMap(([name, value, about]) => {
    const more = about === "copied" ? { isValue: true } : about && { tone: about };
    return value ? [{ name, value, ...more }] : [];
  });
}

/** The report of a run of probes: its own facts, and those of every run. */
export function runReport(
  { target, ip, details = {} }: RunDocument,
  facts: readonly FactRow[],
  tables: readonly Table[],
  isAnswered: boolean,
): Report {
  const { source, flowLabel, dns64, error, location, verdict } = details;
  const { addresses = [], cutShort, port } = details;
  const label = flowLabel === undefined ? "" : `, flow label ${flowLabel}`;
  return {
    title: ip === undefined || ip === target ? target : `${target} (${ip})`,
    verdict: tonedVerdict(verdict),
    facts: factsOf(
      ...facts,
      ["Error", error && errorText(error), "bad"],
      ["Probed", ip && source && `${ip} from ${source}${label}`],
      ["Port", port && [`${port.protocol} ${port.port}`, port.state].filter(Boolean).join(", ")],
      ["Addresses", addresses.map(({ ip, use }) => `${ip} (${inWords(use)})`).join(", ")],
      ...(dns64 ? [translatorFact(dns64)] : []),
      ["Cut short", cutShort?.text, "warn"],
      ["Location", location],
    ),
    tables,
    isAnswered,
  };
}

/** An ICMPv6 error in numbers and words. */
export function errorText({ name, type, code, from }: IcmpError): string {
  return `${inWords(name)} from ${from} (ICMPv6 type ${type}, code ${code})`;
}

/** Where an address behind a translator (NAT64) leads. */
export function translatorFact({ ip, ipv4, prefix }: Translation): FactRow {
  return ["Translator", `${ip} leads to ${ipv4} through NAT64 (${prefix})`];
}

/** The parts of a run in the order of their positions; a later one replaces an earlier one. */
export function latest<Part>(parts: readonly Part[], positionOf: (part: Part) => number): Part[] {
  const found = new Map(parts.map((part) => [positionOf(part), part]));
  return [...found.values()].sort((a, b) => positionOf(a) - positionOf(b));
}

/** `hop 3 (router.example)`: a hop of a path with its name, or else its address. */
export function hopText(hops: readonly Host[], hop: number): string {
  const { ip = null, hostname = null } = hops[hop - 1] ?? {};
  return `hop ${hop}${ip === null ? "" : ` (${hostname ?? ip})`}`;
}

/** `hop 3`, `hops 3 and 4`. */
export function hopsText(hops: readonly number[]): string {
  return `hop${hops.length === 1 ? "" : "s"} ${listText(hops)}`;
}

/** The details that a hop can have in every tool; a hop of the path MTU has no others. */
type HopDetails = NonNullable<MtuHop["details"]>;

/** The name of a network, or else its number. */
export const networkName = ({
  asn,
  name,
}: Pick<NonNullable<HopDetails["network"]>, "asn" | "name">) => name ?? `AS${asn}`;

/** The number and the name of a network. */
export function networkText({ asn, name }: NonNullable<HopDetails["network"]>): string {
  return [asn !== null && `AS${asn}`, name].filter(Boolean).join(" ");
}

/** Short notes about a hop: its network, and the interface to it. */
export function hopNotes({ network, zone, nameLate }: HopDetails = {}): string[] {
  const late = nameLate && "its name came too late";
  const notes = [late, network && networkText(network), zone && `on ${zone}`];
  return notes.filter((note) => typeof note === "string");
}
