import { type FactRow, factsOf, type Table, type Tone } from "../report.ts";
import type { DnssecDetails } from "./result.ts";

type Link = DnssecDetails["chain"][number];

const TONES: Readonly<Record<DnssecDetails["verdict"], Tone>> = {
  secure: "good",
  insecure: "warn",
  indeterminate: "warn",
  bogus: "bad",
};

const CLAIMS: Readonly<Record<DnssecDetails["resolver"]["claim"], string>> = {
  secure: "secure (AD)",
  none: "nothing (no AD)",
  bogus: "bogus, by failing",
  "no-answer": "nothing, as it does not answer",
};

/** Our own DNSSEC verdict, what the resolver claims, and notes for the owner of the zone. */
export function dnssecFacts({ verdict, text, notes, resolver }: DnssecDetails): FactRow[] {
  const { claim, validates } = resolver;
  const does = validates ? "validates" : "does not validate";
  const how = validates === null ? "" : `; it ${does} this name`;
  return [
    ["DNSSEC", `${verdict}. ${text}`, TONES[verdict]],
    ["Resolver claims", `${CLAIMS[claim]}${how}`],
    // The text of a secure answer says when it expires.
    ...notes
      .filter(({ code }) => code !== "expires")
      .map((note): FactRow => ["Note", note.text, "warn"]),
  ];
}

/** The chain of trust: the record sets that were checked in each zone. */
export function chainTable({ chain }: DnssecDetails, where = ""): Table {
  return {
    heading: `Chain of trust${where}`,
    columns: [
      { name: "zone", kind: "value", isExtra: true },
      { name: "records", kind: "value" },
      { name: "key", kind: "text", isDetail: true },
      { name: "from", kind: "text", isExtra: true },
      { name: "until", kind: "text", isDetail: true },
      { name: "days left", kind: "text" },
      { name: "", kind: "text", isToned: true },
    ],
    rows: chain.flatMap(({ zone, sets }) =>
      sets.map(({ name, type, signature, proof, fault }) => ({
        cells: [
          ...[zone, `${name} ${type}`, signature ? keyText(signature) : null],
          ...[signature?.inception ?? null, signature?.expires ?? null],
          ...[signature?.daysLeft.toFixed(1) ?? null, fault ?? (proof ? "proof" : null)],
        ],
        ...(fault !== undefined && { tone: "bad" as const }),
      })),
    ),
    facts: factsOf(...chain.flatMap(zoneFacts)),
  };
}

function zoneFacts({ zone, status, fault, ds, keys, sets }: Link): FactRow[] {
  const digests = ds.map((each) => `${keyText(each)} ${each.digest}`).join(", ");
  const own = keys.map((key) => `${keyText(key)}${key.trusted ? " (trusted)" : ""}`).join(", ");
  const proofs = sets.flatMap(({ proof = [] }) => proof);
  return [
    [`DS of ${zone}`, digests],
    [`Keys of ${zone}`, own],
    [`Fault of ${zone}`, fault && `${status}: ${fault}`, TONES[status]],
    ...proofs.map(({ record, proves }): FactRow => ["Proof", `${proves}: ${record}`]),
  ];
}

function keyText({ keyTag, algorithm }: { readonly keyTag: number; readonly algorithm: string }) {
  return `${keyTag} ${algorithm}`;
}
