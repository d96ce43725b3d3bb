import { z } from "zod";
import {
  amount,
  flag,
  formed,
  ipText,
  ipv6Text,
  list,
  measured,
  named,
  oneOf,
  record,
  shape,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { hopFields, MAX_HOPS, verdictField, waitedMs } from "../fields.ts";
import { STEPS as HERE_STEPS } from "../here/codes.ts";
import { STATUSES } from "../steps.ts";
import { ANSWERS, CODES, FAULTS, type Finding, KINDS, STEPS, VERDICTS } from "./findings.ts";

/** The schema of the result. */
export function checkResult() {
  return named("CheckResult", "Whether a name works over IPv6, and if not, why.", {
    name: text("The name or address as it was sent."),
    port: whole("The TCP port.", 1, 65_535),
    steps: list(checkStep(), "The steps, in the order in which people read them."),
    details: z.strictObject({
      ...measured(),
      verdict: verdictField(VERDICTS).extend({
        answer: oneOf(ANSWERS, "Whether it works over IPv6."),
        headline: text("The conclusion in one sentence, which can be passed on."),
        evidence: text(
          "What it rests on, in one or two sentences; null if the headline says it.",
        ).nullable(),
        advice: text("What the one at fault can do; null if there is nothing.").nullable(),
        fault: z
          .literal([...FAULTS, null])
          .describe("Whose fault it is; null if nothing is wrong."),
        at: ipText("The address of the router or resolver at fault.").exactOptional(),
      }),
      attempts: list(attempts(), "What was tried, by address and kind."),
      path: checkPath()
        .exactOptional()
        .describe("The way to one of its IPv6 addresses; absent if none was measured."),
      here: list(
        nearStep(),
        "The steps of `/here` that had ended, if it was asked.",
      ).exactOptional(),
      waitedMs: waitedMs(),
    }),
  });
}

const nearStep = shape("CheckHere", "A step of `/here`, without what it found.", () => ({
  name: oneOf(HERE_STEPS, "The step."),
  status: oneOf(STATUSES, "The outcome."),
}));

const attempts = shape("CheckAttempts", "The attempts of one kind at one address.", () => ({
  ip: ipText("The address."),
  kind: oneOf(KINDS, "What was tried."),
  made: whole("How often it was tried.", 0),
  worked: whole("How often it worked.", 0),
  failed: z
    .object({})
    .catchall(whole("How often.", 0))
    .describe("Why the others did not, by reason."),
  rtt: record("Milliseconds of those that worked; null without any.", {
    min: amount("The least."),
    median: amount("The median."),
    max: amount("The greatest."),
  }).nullable(),
}));

const pathHop = shape("CheckHop", "A hop of the way to an address.", () =>
  hopFields(
    { rtt: amount("The round-trip time to it in milliseconds; null if it was silent.").nullable() },
    {},
  ),
);

/** The schema of the way to an address. */
export const checkPath = shape("CheckPath", "The way to an address as far as it is known.", () => ({
  ip: ipv6Text("The address."),
  reached: flag("Whether it answered at the end of the way."),
  hops: list(pathHop(), "The hops in route order."),
  brokenAfter: whole(
    "The last hop before what is wrong; absent if nothing is, or it is not known where.",
    1,
    MAX_HOPS,
  ).exactOptional(),
}));

/** The way to an address as far as it is known. */
export type CheckPath = ValueOf<ReturnType<typeof checkPath>>;

/** The result of a check. */
export type CheckResult = ValueOf<ReturnType<typeof checkResult>>;

/** The conclusion of a check. */
export type Verdict = CheckResult["details"]["verdict"];

/** The schema of a step that begins. */
export const checkBegin = shape("CheckBegin", "A step of a check that begins.", () => ({
  name: oneOf(STEPS, "What is tried."),
  ip: ipText("The address that it is tried with.").exactOptional(),
}));

/** The schema of a step. */
export const checkStep = shape("CheckStep", "A step of a check.", () => ({
  name: oneOf(STEPS, "What was tried."),
  ip: ipText("The address that it was tried with, of IPv4 for comparison.").exactOptional(),
  status: oneOf(STATUSES, "The outcome."),
  finding: oneOf(CODES, "What is not as it should be.").exactOptional(),
  text: text("What was found, in a few sentences."),
  ms: whole("Milliseconds that it took.", 0),
  rtt: amount("Milliseconds to open a connection, the least of all.").exactOptional(),
  rttMost: amount("The same, the most of them.").exactOptional(),
  at: ipText("The address of the router that says so, or where the path ends.").exactOptional(),
  httpStatus: whole("The status of the HTTP response.", 100, 999).exactOptional(),
  certificate: record("The server's certificate.", {
    sha256: formed(/^[0-9a-f]{64}$/, "Its SHA-256 fingerprint."),
    notAfter: z.iso.datetime().describe("When it expires, in UTC."),
    issuer: text("The common name of its issuer; empty if it has none."),
  }).exactOptional(),
}));

/** A step that begins. */
export type StepBegin = ValueOf<ReturnType<typeof checkBegin>>;

/** A step of a check. */
export type Step = ValueOf<ReturnType<typeof checkStep>>;

/** How a step has ended: by what it has seen, or by the outcome of another tool. */
export type Ended = Seen | Pick<Step, "status" | "text">;

/** What a step has seen, before it is one: a warning or a failure has a finding. */
export type Seen = Omit<Step, "name" | "ip" | "status" | "ms" | "finding"> &
  (
    | { readonly finding: Finding; readonly status?: never }
    | { readonly finding?: never; readonly status?: "skipped" }
  );
