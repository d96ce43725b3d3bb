/** The differences between two documents of a tool. */
import type { CheckResult } from "../tools/check/result.ts";
import { MAX_ADDRESSES } from "../tools/check/service.ts";
import type { DnsResult } from "../tools/dns/result.ts";
import type { HereResult } from "../tools/here/result.ts";
import type { MtuResult } from "../tools/mtu/result.ts";
import { inWords, listText } from "../util/text.ts";
import { pathDifferences } from "./path.ts";
import { type Difference, KINDS, type WATCH_TOOLS } from "./result.ts";

/** The fields that tell the documents of the tools apart. */
const MARKS: readonly (readonly [tool: (typeof WATCH_TOOLS)[number], field: string])[] = [
  ["here", "interfaces"],
  ["check", "steps"],
  ["dns", "records"],
  ["ping", "stats"],
  ["mtr", "rounds"],
  ["mtu", "packetTooBig"],
  ["trace", "hops"],
];

/** Codes of ping and mtr that count as one verdict, because loss is a level. */
const LOSS_CODES = ["no-loss", "unclear", "loss"];

/** The parts that the documents of several tools have. */
interface AnyDocument {
  readonly ip?: string;
  readonly error?: { readonly code: string; readonly message: string };
  readonly locations?: readonly {
    readonly location: string;
    readonly result?: AnyDocument;
    readonly error?: AnyDocument["error"];
  }[];
  readonly details?: {
    readonly verdict?: { readonly code: string; readonly text: string };
    readonly addresses?: readonly { readonly ip: string }[];
  };
}

/** The tool of a document; null for an error, which any tool can have, and for other objects. */
export function toolOf(document: object): (typeof WATCH_TOOLS)[number] | null {
  const [one] = "locations" in document ? answersOf(document).values() : [document];
  return MARKS.find(([, field]) => field in (one ?? {}))?.[0] ?? null;
}

/** True for a document of a tool, or of an error. */
export const isDocument = (value: unknown): value is object =>
  typeof value === "object" &&
  value !== null &&
  (toolOf(value) !== null || typeof Object(value).error?.code === "string");

/** The documents and errors in a document by location; without several locations, the document by an empty name. */
export function answersOf(document: object): ReadonlyMap<string, object> {
  const { locations } = document as AnyDocument;
  if (locations === undefined) return new Map([["", document]]);
  const entries = locations.map(({ location, result, error }) => [location, result ?? { error }]);
  return new Map(entries as [string, object][]);
}

/**
 * The differences between two documents of one tool, or errors about its target, in the order of `KINDS`. Parts that
 * only one of them has are not compared.
 */
export function diff(before: object, after: object): Difference[] {
  const earlier = answersOf(before);
  const found = [...answersOf(after)].flatMap(([location, now]) => {
    const then = earlier.get(location);
    const differences = then ? compare(then as AnyDocument, now as AnyDocument) : [];
    const at = location && `${location}: `;
    return differences.map((each) => ({ ...each, text: at + each.text }));
  });
  return found.toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

function compare(before: AnyDocument, after: AnyDocument): Difference[] {
  const [old, now] = [verdictOf(before), verdictOf(after)];
  const ofVerdict = verdicts(
    old,
    now,
    `The verdict was ${inWords(old.code)} and is ${inWords(now.code)}:`,
  );
  const tool = toolOf(before);
  if (tool === null || tool !== toolOf(after)) return ofVerdict;
  const both = <Document>(compareThem: (before: Document, after: Document) => Difference[]) =>
    compareThem(before as Document, after as Document);
  const own = {
    here: () => both(compareHere),
    check: () => both(compareChecks),
    dns: () => both(compareDns),
    ping: () => [],
    mtr: () => both(pathDifferences),
    mtu: () => [...both(pathDifferences), ...both(compareMtu)],
    trace: () => both(pathDifferences),
  }[tool]();
  const ofAddresses = sets("addresses", "addresses", addressesOf(before), addressesOf(after));
  return [...ofVerdict, ...ofAddresses, ...own];
}

/** The verdict of a document, or its error instead; `key` is the code that is compared. */
export function verdictOf({ error, details }: AnyDocument) {
  const verdict = error ? { code: error.code, text: error.message } : details?.verdict;
  const { code, text } = verdict ?? { code: "", text: "" };
  return { key: LOSS_CODES.includes(code) ? "no-loss" : code, code, text };
}

/** A difference of two verdicts, if both have a code. */
function verdicts(
  before: ReturnType<typeof verdictOf>,
  after: typeof before,
  text: string,
): Difference[] {
  if (before.key === after.key || !before.key || !after.key) return [];
  return [
    { kind: "verdict", text: `${text} ${after.text}`, before: before.code, after: after.code },
  ];
}

/** The addresses of the target of a run. */
const addressesOf = ({ ip, details }: AnyDocument) =>
  details?.addresses?.map((each) => each.ip) ?? (ip === undefined ? [] : [ip]);

/** A difference of two sets of values, if both have some. */
function sets(
  kind: Difference["kind"],
  what: string,
  before: readonly string[],
  after: readonly string[],
): Difference[] {
  const gone = [...new Set(before)].filter((each) => !after.includes(each));
  const come = [...new Set(after)].filter((each) => !before.includes(each));
  if (before.length === 0 || after.length === 0 || gone.length + come.length === 0) return [];
  const parts = [
    come.length > 0 ? `${listText(come)} new` : [],
    gone.length > 0 ? `${listText(gone)} gone` : [],
  ];
  const text = `The ${what} changed: ${parts.flat().join(", ")}.`;
  return [{ kind, text, before: [...before], after: [...after] }];
}

/** Findings that are new or gone, by step. */
function findings(
  before: readonly { readonly name: string; readonly finding?: string }[],
  after: typeof before,
): Difference[] {
  const foundBy = (steps: typeof before) =>
    new Set(steps.flatMap(({ name, finding }) => (finding ? `${name} ${finding}` : [])));
  const [old, now] = [foundBy(before), foundBy(after)];
  return [...old.symmetricDifference(now)].map((each) => {
    const [step = "", finding = ""] = each.split(" ");
    const isNew = now.has(each);
    const text = `The step ${step} ${isNew ? "finds" : "does not find any more"}: ${inWords(finding)}.`;
    const [before, after] = isNew ? [null, finding] : [finding, null];
    return { kind: "finding", text, before, after, step };
  });
}

/** The certificate of a server, as the step `tls` has it. */
interface Certificate {
  readonly sha256: string;
  readonly notAfter: string;
  readonly issuer: string;
}

function compareChecks(before: CheckResult, after: CheckResult): Difference[] {
  const ipsOf = ({ steps }: CheckResult) => [
    ...new Set(steps.flatMap(({ ip }) => (ip?.includes(":") ? ip : []))),
  ];
  const certificatesOf = ({ steps }: CheckResult) =>
    steps.flatMap((step) => (step as { certificate?: Certificate }).certificate ?? []);
  const [old, now] = [ipsOf(before), ipsOf(after)];
  // If a name has more addresses, the resolver chooses which are tried.
  const areCut = old.length >= MAX_ADDRESSES && now.length >= MAX_ADDRESSES;
  const [held, shown] = [certificatesOf(before), certificatesOf(after)];
  const fresh = shown.find(({ sha256 }) => !held.some((each) => each.sha256 === sha256));
  const certificates: Difference[] =
    fresh && held[0]
      ? [
          {
            kind: "certificate",
            text: `Another certificate, from ${fresh.issuer}, which ends on ${fresh.notAfter.slice(0, 10)}.`,
            ...{ before: held[0], after: fresh, step: "tls" },
          },
        ]
      : [];
  return [
    ...(areCut ? [] : sets("addresses", "addresses", old, now)),
    ...certificates,
    ...findings(before.steps, after.steps),
  ];
}

function compareDns(before: DnsResult, after: DnsResult): Difference[] {
  const valuesOf = ({ records }: DnsResult) => records.map(({ type, value }) => `${type} ${value}`);
  const [old, now] = [valuesOf(before), valuesOf(after)];
  const repliesOf = ({ details }: DnsResult) =>
    (details.resolvers ?? []).map(({ resolver, outcome }) => `${resolver} ${inWords(outcome)}`);
  const security = ({ details: { dnssec } }: DnsResult) => {
    const { verdict: code = "", text = "" } = dnssec ?? {};
    return { key: code, code, text };
  };
  const [was, is] = [security(before), security(after)];
  return [
    ...verdicts(was, is, `DNSSEC was ${inWords(was.code)} and is ${inWords(is.code)}:`),
    ...sets("addresses", "records", old, now),
    ...sets("resolvers", "resolvers", repliesOf(before), repliesOf(after)),
  ];
}

function compareHere(before: HereResult, after: HereResult): Difference[] {
  const ofInterfaces = (
    { interfaces }: HereResult,
    list: (row: HereResult["interfaces"][number]) => readonly (string | number | null)[],
  ) =>
    interfaces.flatMap((row) =>
      list(row).flatMap((value) => (value === null ? [] : `${row.name} ${value}`)),
    );
  const compareLists = (
    kind: Difference["kind"],
    what: string,
    list: Parameters<typeof ofInterfaces>[1],
  ) => sets(kind, what, ofInterfaces(before, list), ofInterfaces(after, list));
  const gatewaysOf = ({ routes }: HereResult) =>
    routes.flatMap((row) =>
      row.prefix === "::/0" && row.via ? `${row.interface} ${row.via}` : [],
    );
  return [
    // Temporary addresses come and go by themselves, RFC 8981.
    ...compareLists("addresses", "addresses", ({ addresses }) =>
      addresses.flatMap(({ ip, origin }) => (origin === "temporary" ? [] : ip)),
    ),
    ...sets("path", "gateways", gatewaysOf(before), gatewaysOf(after)),
    ...compareLists("mtu", "MTU", ({ mtu }) => [mtu]),
    ...compareLists("resolvers", "resolvers", ({ routers }) =>
      routers.flatMap(({ resolvers }) => resolvers.map(({ ip }) => ip)),
    ),
    ...findings(before.steps, after.steps),
  ];
}

function compareMtu(before: MtuResult, after: MtuResult): Difference[] {
  const below = (a: MtuResult, b: MtuResult) =>
    a.atMost !== null && b.mtu !== null && a.atMost < b.mtu;
  if (!below(before, after) && !below(after, before)) return [];
  const sizes = [before.mtu ?? `at most ${before.atMost}`, after.mtu ?? `at most ${after.atMost}`];
  const text = `The path MTU was ${sizes[0]} bytes and is ${sizes[1]}.`;
  return [{ kind: "mtu", text, before: before.mtu, after: after.mtu }];
}
