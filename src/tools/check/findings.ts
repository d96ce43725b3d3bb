/** The steps of a check, and all that they can find. */
import { capitalized } from "../../util/text.ts";
import findings from "./findings.json" with { type: "json" };

/** The steps, in the order in which people read them. */
export const STEPS = [
  "here",
  "names",
  "zone",
  "policy",
  "echo",
  "tcp",
  "tls",
  "http",
  "compare",
  "mtu",
  "mtr",
  "trace",
] as const;

/** The kinds of attempts: the parts of a transaction, and the probes beside them. */
export const KINDS = ["connect", "handshake", "request", "syn", "echo"] as const;

export type Kind = (typeof KINDS)[number];

/** What people call an attempt of a kind. */
export const NOUNS: Readonly<Record<Kind, string>> = {
  connect: "connection",
  handshake: "TLS handshake",
  request: "HTTP request",
  syn: "SYN",
  echo: "echo request",
};

type StepName = (typeof STEPS)[number];

/** Steps that are taken with each address. */
export const WITH_ADDRESS: readonly StepName[] = ["policy", "echo", "tcp", "tls", "http"];

type Placed = { readonly name: StepName; readonly ip?: string | undefined };

/** Steps in the order in which people read them: those of an address together, IPv4 behind IPv6. */
export function inOrder<Step extends Placed>(steps: readonly Step[]): Step[] {
  const isIpv4 = (ip: string) => Number(!ip.includes(":"));
  const found = new Set(steps.flatMap(({ ip }) => ip ?? []));
  const ips = [...found].toSorted().toSorted((a, b) => isIpv4(a) - isIpv4(b));
  // From the place of `policy` on, all steps of one address come before those of the next.
  const placeOf = ({ name, ip = "" }: Step) =>
    WITH_ADDRESS.includes(name)
      ? STEPS.indexOf("policy") + ips.indexOf(ip) / ips.length
      : STEPS.indexOf(name);
  return steps
    .toSorted((a, b) => STEPS.indexOf(a.name) - STEPS.indexOf(b.name))
    .toSorted((a, b) => placeOf(a) - placeOf(b));
}

export type Finding = keyof typeof findings;

/** What a finding means. */
interface FindingRow {
  /** A failure if no connection over IPv6 comes about, or a browser shows an error; a warning if it works worse than it could. */
  readonly status: "fail" | "warn";
  /** Follow the name or the address in a sentence. */
  readonly words: string;
  /** The usual way to mend it, for the one at fault; absent where the evidence says it, or there are many. */
  readonly advice?: string;
  /** Whose fault it is, if not that of the site. */
  readonly fault?: Exclude<(typeof FAULTS)[number], "site">;
  /** The answer, if it is not no for a failure and yes for a warning. */
  readonly answer?: (typeof ANSWERS)[number];
}

/** All that a step can find, the worst first. */
export const FINDINGS = findings as Readonly<Record<Finding, FindingRow>>;

export const CODES = Object.keys(FINDINGS) as Finding[];

/** True for a finding that is a failure, not a warning. */
export const isFailure = (finding?: Finding): finding is Finding =>
  finding !== undefined && FINDINGS[finding].status === "fail";

/** The findings that are failures. */
export const FAILURES = CODES.filter(isFailure);

/** Whose fault it can be: `site` for the operator of the name, `dns` for resolvers and name servers, `here` for the machine that checks. */
export const FAULTS = ["site", "dns", "path", "here", "unknown"] as const;

/** Whether a name works over IPv6. */
export const ANSWERS = ["yes", "no", "partly", "sometimes", "not-from-here", "not-known"] as const;

/** What a finding says, as a text of its own. */
export function wordsOf(finding: Finding, port: number): string {
  return capitalized(FINDINGS[finding].words.replace("{port}", `${port}`));
}

/** The codes of the verdict: the worst finding, or `works` without any. */
export const VERDICTS = ["works", ...CODES] as const;
