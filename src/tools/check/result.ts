import { z } from "zod";
import {
  amount,
  ipText,
  list,
  measured,
  named,
  oneOf,
  shape,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { verdictField, waitedMs } from "../fields.ts";
import { STATUSES } from "../steps.ts";
import { CODES, FAULTS, STEPS, VERDICTS } from "./findings.ts";

/** The schema of the result. */
export function checkResult() {
  return named("CheckResult", "Whether a name works over IPv6, and if not, why.", {
    name: text("The name or address as it was sent."),
    port: whole("The TCP port.", 1, 65_535),
    steps: list(checkStep(), "The steps, in the order in which people read them."),
    details: z.strictObject({
      ...measured(),
      verdict: verdictField(VERDICTS).extend({
        fault: oneOf(
          FAULTS,
          "What is at fault, if that is known: this machine or its network, the resolvers, or the path behind the gateway.",
        ).exactOptional(),
      }),
      waitedMs: waitedMs(),
    }),
  });
}

/** The result of a check. */
export type CheckResult = ValueOf<ReturnType<typeof checkResult>>;

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
  rtt: amount("Milliseconds to open a connection, the least of five.").exactOptional(),
  rttMost: amount("The same, the most of them.").exactOptional(),
  httpStatus: whole("The status of the HTTP response.", 100, 999).exactOptional(),
}));

/** A step that begins. */
export type StepBegin = ValueOf<ReturnType<typeof checkBegin>>;

/** A step of a check. */
export type Step = ValueOf<ReturnType<typeof checkStep>>;
