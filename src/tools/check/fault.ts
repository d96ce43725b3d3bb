/** The failure of an address, among the steps that were taken with it. */
import { CODES, type Finding } from "./findings.ts";
import { byText, isIpv6 } from "./ledger.ts";
import { isOffInternet } from "./policy.ts";
import type { Step } from "./result.ts";

/** True for a step with an IPv4 address. */
export const isOfIpv4 = ({ ip }: Step) => ip !== undefined && !isIpv6(ip);

/** A step that has found something. */
export type Finder = Step & { readonly finding: Finding };

/** True for a step that has found something. */
export const hasFound = (step: Step): step is Finder => step.finding !== undefined;

const rankOf = ({ finding }: Finder) => CODES.indexOf(finding);

/** The worst of some steps; undefined if all are well. */
export const worstOf = (steps: readonly Step[]): Finder | undefined =>
  steps
    .filter(hasFound)
    .toSorted((a, b) => rankOf(a) - rankOf(b) || byText(a.ip ?? "", b.ip ?? ""))[0];

/** True for a step that has failed. */
export const isFailed = ({ status }: Step) => status === "fail";

/** Makes a function that tells whether a step has one of some findings. */
export const isOneOf =
  (...findings: Finding[]) =>
  ({ finding }: Pick<Step, "finding">) =>
    finding !== undefined && findings.includes(finding);

/** Nothing answers at the port. */
export const isSilent = isOneOf("port-silent", "no-answer");

const isUnreached = isOneOf("not-sent", "unreachable", "rejected", "path-loop", "no-answer");

/** Some attempts worked. */
export const isUnsteady = isOneOf("stopped", "sometimes");

/** Clients learn at once that they are refused. */
export const isRefused = isOneOf("port-closed", "not-opened", "rejected", "unreachable");

/** True for a reason that is a finding about a certificate. */
export const isOfCertificate = (reason: string): reason is Finding =>
  reason.startsWith("certificate-");

/** The fault is where a redirect leads. */
export const isRedirected = isOneOf("redirect-broken", "redirect-loop", "redirect-without-ipv6");

/** A connection opens, and then the server falls silent. */
export const isHung = isOneOf("tls-silent", "http-silent", "response-incomplete");

/** Where no router answers, the site or the network of this machine may be at fault. */
const OWN_WAY = " Nothing on the way answers, so the network of this machine may be at fault.";

/** The failure of an address, with what explains it; undefined if it has none. */
export function faultOf(steps: readonly Step[], isPathHeard: boolean): Finder | undefined {
  const of = (name: Step["name"]) => steps.find((step) => step.name === name);
  // A trace over another protocol may take another path than the connections.
  const isClosed = of("tcp")?.status === "fail";
  const failed = steps.filter(
    ({ name, status }) => status === "fail" && (name !== "trace" || isClosed),
  );
  const fault = worstOf(failed.filter(({ finding }) => finding !== "stopped"));
  if (fault === undefined) return undefined;
  const [policy, mtu, trace] = [of("policy"), of("mtu"), of("trace")];
  if (policy?.finding && isUnreached(fault)) {
    const isOff = fault.ip !== undefined && isOffInternet(fault.ip);
    return { ...fault, text: policy.text, ...(isOff && { finding: "not-public" }) };
  }
  if (isHung(fault) && mtu && mtu.ms > 0) {
    return mtu.finding === "large-packets"
      ? { ...fault, finding: "mtu-black-hole", text: mtu.text }
      : { ...fault, text: `${fault.text} ${mtu.text}` };
  }
  // For a silent port, the trace says how far probes come. For a closed one, it says who may have answered.
  const explains = isSilent(fault) ? "skipped" : fault.finding === "port-closed" ? "ok" : null;
  if (trace?.status !== explains) return fault;
  const own = isSilent(fault) && !isPathHeard ? OWN_WAY : "";
  return { ...fault, text: `${fault.text} ${trace.text}${own}` };
}
