import { z } from "zod";
import {
  amount,
  ipv6Text,
  list,
  named,
  once,
  oneOf,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { icmpCode, icmpType, portField, runDetailFields, runFields } from "../fields.ts";

/** Echo requests per ping. */
export const MAX_COUNT = 10;

/** Echo requests per ping of a command without a service; documents of both have one schema. */
export const MAX_COUNT_ALONE = 100_000;

const VERDICTS = ["no-loss", "loss", "no-reply", "unreachable", "not-sent"] as const;

export const seq = () => whole("The number of the request, from 1.", 1, MAX_COUNT_ALONE);

const milliseconds = (what: string) => amount(`${what} in milliseconds.`);

/** The schema of an answered request. */
const pingSample = once(() =>
  named("PingSample", "An echo request that was answered in time.", {
    seq: seq(),
    ttl: whole("The hop limit of the reply.", 0, 255),
    rtt: milliseconds("The round-trip time"),
    details: z
      .strictObject({
        reason: z.literal("other-source"),
        from: ipv6Text("The address that replied."),
      })
      .exactOptional()
      .describe("Present if the reply came from another address than the target's."),
  }),
);

/** The schema of a request without a reply. */
const lostSample = once(() =>
  z
    .union([
      z.strictObject({
        seq: seq(),
        reason: oneOf(
          ["timeout", "retransmitted", "unknown"],
          "No reply came in time; retransmitted if the SYN-ACK was not the first one, which was lost; unknown if the kernel of the service's machine dropped packets meanwhile, perhaps the reply.",
        ),
        rtt: milliseconds("The time to a reply that came too late, or again").exactOptional(),
      }),
      z.strictObject({
        seq: seq(),
        reason: z.literal("not-sent").describe("The service's machine could not send it."),
        errno: text("The error's name, such as EPERM."),
      }),
      z.strictObject({
        seq: seq(),
        reason: text("The name of the ICMPv6 error, such as no-route."),
        type: icmpType(),
        code: icmpCode(),
        from: ipv6Text("The sender of the error."),
        rtt: milliseconds("The time to the error").exactOptional(),
      }),
    ])
    .meta({ id: "LostSample", description: "An echo request without a reply." }),
);

/** The schema of a request and its outcome. */
export const sampleSchema = () =>
  z
    .union([pingSample(), lostSample()])
    .meta({ id: "Sample", description: "The outcome of an echo request." });

/** An echo request that was answered in time. */
export type PingSample = ValueOf<ReturnType<typeof pingSample>>;

/** An echo request without a reply in time. */
export type LostSample = ValueOf<ReturnType<typeof lostSample>>;

/** An echo request and its outcome. */
export type Sample = PingSample | LostSample;

/** The schema of the result. */
export function pingResult() {
  const statistic = (which: string) =>
    amount(`The ${which} round-trip time in milliseconds; null without a reply.`).nullable();
  const stats = named("PingStats", "The statistics of a ping.", {
    transmitted: whole("Requests that left the service's machine.", 0, MAX_COUNT_ALONE),
    received: whole("Requests that were answered in time.", 0, MAX_COUNT_ALONE),
    loss: amount(
      "Requests that were not answered in time, in percent of those whose fate is known.",
      100,
    ),
    min: statistic("least"),
    avg: statistic("mean"),
    max: statistic("greatest"),
  });
  return named("PingResult", "The result of a ping.", {
    ...runFields(),
    results: list(pingSample(), "The requests that were answered, in order."),
    stats,
    details: z.strictObject({
      ...runDetailFields(VERDICTS),
      ...portField(),
      timeout: whole("Milliseconds to wait for an answer.", 1),
      lost: list(lostSample(), "The requests without a reply, in order."),
      duplicates: whole("Further answers to an answered request.", 0),
      late: whole("Replies that came after the timeout.", 0),
    }),
  });
}

/** The result of a ping. */
export type PingResult = ValueOf<ReturnType<typeof pingResult>>;
