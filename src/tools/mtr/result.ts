import { z } from "zod";
import {
  amount,
  flag,
  ipv6Text,
  list,
  named,
  once,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { mapValues } from "../../util/objects.ts";
import {
  flowLabelNumber,
  hopFields,
  hostname,
  ipOrNull,
  MAX_HOPS,
  portField,
  runDetailFields,
  runFields,
  traceError,
  verdictField,
} from "../fields.ts";
import { MAX_TIMES, type Times } from "./times.ts";

/** Rounds of a run for others, and of one for a user who is alone. */
export const MAX_ROUNDS = 100;

export const MAX_ROUNDS_ALONE = 100_000;

/** Addresses of each hop that are kept, and paths: answers can come from any number of addresses. */
export const MAX_LISTED = 32;

const VERDICTS = ["no-loss", "loss", "unclear", "no-reply", "unreachable", "not-sent"] as const;

/** The times of a hop by their names. */
export const TIMES: Readonly<Record<keyof Times, string>> = {
  last: "The last round-trip time",
  min: "The least round-trip time",
  avg: "The mean round-trip time",
  max: "The greatest round-trip time",
  stdDev: "The standard deviation",
  jitter: "The mean difference between successive times",
  p50: `The median of the last ${MAX_TIMES} times`,
  p95: `The time that 95 % of the last ${MAX_TIMES} did not exceed,`,
};

export const probes = (description: string) => whole(description, 0, MAX_ROUNDS_ALONE);

export const percentage = () => z.number().min(0).max(100);

/** The schemas of the numbers of probes; see `totalsOf`. */
const totalFields = () => ({
  sent: probes("Probes that left the service's machine."),
  received: probes("Probes that were answered in time, but not with an error."),
  late: probes("Probes whose answer came after the timeout."),
  errors: probes("Probes that ended with an ICMPv6 error, such as no-route."),
  unknown: probes("Probes whose answer the kernel of the service's machine may have dropped."),
  loss: percentage()
    .nullable()
    .describe("Probes lost, in percent of those whose fate is known; null without any."),
});

const mtrHop = once(() => {
  const address = named("HopAddress", "An address that answered at a hop.", {
    ip: ipv6Text("The address."),
    hostname: hostname(),
    received: probes("Probes that it answered; 0 if it sent errors alone."),
    share: percentage().describe("Its part of the hop's answers, in percent."),
  });
  const fields = {
    ip: ipOrNull("The address that answered most; null if the hop was silent."),
    ...totalFields(),
    cause: z
      .literal(["path", "replies", "unclear", null])
      .describe(
        "Why probes were lost: the target loses them too, the hop does not reply to all because the path behind it loses less, or there are too few to tell; null without loss.",
      ),
    ...mapValues(TIMES, (time) =>
      amount(`${time} in milliseconds; null without an answer.`).nullable(),
    ),
    addresses: list(address, `The most frequent first; at most ${MAX_LISTED}.`),
    others: probes("Probes that further addresses answered."),
  };
  return named("MtrHop", "The statistics of a hop.", hopFields(fields, {}));
});

/** The schema of `mtrVerdict`. */
const mtrVerdictField = () =>
  verdictField(VERDICTS).extend({
    lossAtLeast: percentage().describe("The target's loss, with 95 % confidence."),
    lossAtMost: percentage().describe("Its upper bound."),
    from: whole("The last hop before the loss; absent if unclear.", 0, MAX_HOPS).exactOptional(),
    to: whole("The hop at which the loss has begun.", 1, MAX_HOPS).exactOptional(),
  });

export function mtrRound() {
  return named("MtrRound", "What a round has changed.", {
    round: whole(
      "The number of the round; 0 is the trace before the first, whose answers have times but do not count.",
      0,
      MAX_ROUNDS_ALONE,
    ),
    length: whole("The hops that there are now; drop those behind.", 0, MAX_HOPS),
    hops: list(mtrHop(), "The hops that have changed, each with its addresses that have."),
    verdict: mtrVerdictField()
      .exactOptional()
      .describe("The conclusion so far, without ICMPv6 errors that end the path."),
  });
}

/** The data of the event after each round. */
export type MtrRound = ValueOf<ReturnType<typeof mtrRound>>;

/** The schema of the result. */
export function mtrResult() {
  const path = named("MtrPath", "A path that some rounds took.", {
    rounds: probes("Rounds that took it."),
    reached: flag("Whether the target replied at its end."),
    addresses: list(
      ipOrNull("The hop's address; null if it was silent."),
      "The hops in route order.",
    ),
  });
  return named("MtrResult", "Loss and round-trip times by hop.", {
    ...runFields(),
    rounds: whole(
      "Rounds that count: fewer than wanted if the run was cut short.",
      1,
      MAX_ROUNDS_ALONE,
    ),
    hops: list(mtrHop(), "The hops in route order."),
    details: z.strictObject({
      ...runDetailFields(VERDICTS),
      ...portField(),
      verdict: mtrVerdictField(),
      reached: flag("Whether the target ever replied."),
      toTarget: named("MtrTotals", "The last probe of each round.", {
        ...totalFields(),
        retransmitted: probes("SYNs whose SYN-ACK came again; absent for 0.").exactOptional(),
      }),
      paths: list(path, `In the order in which they were first taken; at most ${MAX_LISTED}.`),
      otherRounds: probes("Rounds over further paths.").exactOptional(),
      error: traceError().exactOptional(),
      flowLabel: flowLabelNumber(),
    }),
  });
}

/** The result of repeated probes of every hop. */
export type MtrResult = ValueOf<ReturnType<typeof mtrResult>>;

/** The statistics of a hop. */
export type MtrHop = MtrResult["hops"][number];
