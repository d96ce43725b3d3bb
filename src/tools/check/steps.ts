/** The steps of a check, what each can find, and the sentence that joins them. */
import { z } from "zod";
import { ipText, named, once, oneOf, text, type ValueOf, whole } from "../../api/schemas.ts";
import { listText, plural } from "../../util/text.ts";

/** The steps, in the order in which people read them. */
export const STEPS = [
  "names",
  "policy",
  "echo",
  "tcp",
  "tls",
  "http",
  "mtu",
  "mtr",
  "trace",
] as const;

/**
 * All that a step can find, the worst first. A failure means that a connection over IPv6 does not work; a
 * warning, that it works worse than it could.
 */
export const FINDINGS = {
  "no-such-name": "fail",
  "names-unknown": "fail",
  "no-ipv6": "fail",
  "not-allowed": "fail",
  "dnssec-bogus": "fail",
  "no-answer": "fail",
  "port-unreachable": "fail",
  "port-silent": "fail",
  "port-closed": "fail",
  "not-sent": "fail",
  "mtu-black-hole": "fail",
  "tls-silent": "fail",
  "not-tls": "fail",
  "certificate-expired": "fail",
  "certificate-not-yet-valid": "fail",
  "certificate-name": "fail",
  "certificate-untrusted": "fail",
  "http-silent": "fail",
  "not-http": "fail",
  "http-error": "fail",
  "redirect-without-ipv6": "fail",
  "not-public": "warn",
  "translator-only": "warn",
  loss: "warn",
  "path-loop": "warn",
  slower: "warn",
  "resolvers-differ": "warn",
  "resolver-silent": "warn",
  "certificate-expires": "warn",
  narrowed: "warn",
  "no-echo": "warn",
} as const;

export type Finding = keyof typeof FINDINGS;

/** The codes of the verdict beside the finding that decides it. */
export const VERDICTS = ["works", "partly", ...(Object.keys(FINDINGS) as Finding[])] as const;

/** The schema of a step. */
export const checkStep = once(() =>
  named("CheckStep", "A step of a check.", {
    name: oneOf(STEPS, "What was tried."),
    ip: ipText("The address that it was tried with; of IPv4 for comparison.").exactOptional(),
    status: oneOf(["ok", "warn", "fail", "skipped"], "The outcome."),
    finding: oneOf(
      Object.keys(FINDINGS) as Finding[],
      "What is not as it should be.",
    ).exactOptional(),
    text: text("One sentence: what was found."),
    ms: whole("Milliseconds that it took.", 0),
    rtt: z
      .number()
      .min(0)
      .exactOptional()
      .describe("Milliseconds to the first answer, where addresses are compared by it."),
  }),
);

/** A step of a check. */
export type Step = ValueOf<ReturnType<typeof checkStep>>;

const isIpv6 = ({ ip }: Step) => ip?.includes(":");

/** IPv6 that is as much slower is a finding: people notice a tenth of a second. */
const SLOWER_MS = 50;

const severity = ({ finding }: Step) => VERDICTS.indexOf(finding as Finding);

/** The worst of some steps; undefined if all are well. */
function worstOf(steps: readonly Step[]): Step | undefined {
  return steps.filter(({ finding }) => finding).toSorted((a, b) => severity(a) - severity(b))[0];
}

/** The time to the first answer of the fastest address of a family, by TCP. */
function fastest(steps: readonly Step[], family: (step: Step) => unknown): number | undefined {
  const times = steps
    .filter((step) => step.name === "tcp" && family(step))
    .flatMap(({ rtt }) => rtt ?? []);
  return times.length > 0 ? Math.min(...times) : undefined;
}

/** The step that compares the families, if IPv6 is much slower than IPv4. */
export function comparisonStep(steps: readonly Step[]): Step[] {
  const [six, four] = [fastest(steps, isIpv6), fastest(steps, (step) => !isIpv6(step))];
  if (six === undefined || four === undefined || six - four < SLOWER_MS) return [];
  const text = `A connection takes ${Math.round(six - four)} ms longer over IPv6 (${Math.round(six)} ms) than over IPv4 (${Math.round(four)} ms).`;
  return [{ name: "tcp", status: "warn", finding: "slower", text, ms: 0 }];
}

/** The conclusion: whether the name works over IPv6, the worst finding, and how IPv4 compares. */
export function checkVerdict(subject: string, steps: readonly Step[]) {
  const ipv6 = steps.filter(isIpv6);
  const addresses = [...new Set(ipv6.map(({ ip }) => ip))];
  const failed = addresses.map((ip) =>
    worstOf(ipv6.filter((step) => step.ip === ip && step.status === "fail")),
  );
  const broken = failed.filter((step) => step !== undefined);
  const whole = steps.filter((step) => step.ip === undefined);
  const ipv4 = steps.filter((step) => step.ip !== undefined && !isIpv6(step));
  const ipv4Fault = worstOf(ipv4.filter(({ status }) => status === "fail"));
  const beside =
    ipv4.length === 0
      ? ""
      : ipv4Fault === undefined
        ? " Over IPv4 it works."
        : " Over IPv4 it does not work either.";
  const before = whole.find(({ status }) => status === "fail");
  if (before?.finding || addresses.length === 0) {
    const text = `${subject} cannot be reached over IPv6: ${lower(before?.text ?? "nothing is known.")}${beside}`;
    return { code: before?.finding ?? "names-unknown", text } as const;
  }
  const [worst] = broken.toSorted((a, b) => severity(a) - severity(b));
  if (worst?.finding && broken.length === addresses.length) {
    const text = `${subject} does not work over IPv6: ${lower(worst.text)}${beside}`;
    return { code: worst.finding, text } as const;
  }
  if (worst) {
    const share = `${broken.length} of its ${plural(addresses.length, "address").replace(/ss$/, "sses")}`;
    const text = `${subject} works over IPv6, but not with ${share} (${listText(broken.map(({ ip }) => ip))}), so ${broken.length} in ${addresses.length} first connections wait: ${lower(worst.text)}`;
    return { code: "partly", text } as const;
  }
  const warning = worstOf(steps.filter((step) => step.ip === undefined || isIpv6(step)));
  if (warning?.finding) {
    return {
      code: warning.finding,
      text: `${subject} works over IPv6, but: ${lower(warning.text)}`,
    } as const;
  }
  return { code: "works", text: `${subject} works over IPv6.${comparedText(steps)}` } as const;
}

function comparedText(steps: readonly Step[]): string {
  const [six, four] = [fastest(steps, isIpv6), fastest(steps, (step) => !isIpv6(step))];
  if (six === undefined || four === undefined) return "";
  const ms = Math.round(Math.abs(six - four));
  return ms < 1 ? " IPv4 is as fast." : ` IPv4 is ${ms} ms ${six > four ? "faster" : "slower"}.`;
}

/** A sentence as a clause: names and addresses keep their case. */
function lower(sentence: string): string {
  return /^[A-Z][a-z]* /.test(sentence)
    ? sentence.charAt(0).toLowerCase() + sentence.slice(1)
    : sentence;
}
