import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import { integerParameter } from "../http/parameters.ts";
import { atLocation, ipv6Text, once } from "../http/schemas.ts";
import type { LostSample, PingSample, Sample } from "../icmp/ping.ts";
import { SILENCE_MS } from "../icmp/prober.ts";
import { locatable } from "../locations/locatable.ts";
import {
  dns64Field,
  icmpCode,
  icmpType,
  PROBE_ERRORS,
  probeTarget,
  round,
  targetParameter,
} from "./probe.ts";

/** Echo requests per ping. */
const MAX_COUNT = 10;

/** `GET /ping/{target}`: round-trip times of echo requests to the target. */
export const ping = locatable({
  path: "/ping/{target}",
  operationId: "ping",
  summary: "Round-trip times to a target (beta)",
  description:
    "Sends ICMPv6 echo requests. The response comes as soon as each is answered or lost; `details.lost` has those without a reply and their reasons.",
  needsKey: true,
  parameters: {
    target: targetParameter,
    count: integerParameter({
      minimum: 1,
      maximum: MAX_COUNT,
      default: 4,
      description: "Echo requests to send.",
      example: 2,
    }),
  },
  response: pingResult,
  example: {
    target: "www.example.com",
    ip: "2001:db8::80",
    results: [{ seq: 1, ttl: 57, rtt: 11.204 }],
    stats: { transmitted: 2, received: 1, loss: 50, min: 11.204, avg: 11.204, max: 11.204 },
    details: {
      source: "2001:db8::1",
      timeout: 2000,
      lost: [{ seq: 2, reason: "timeout" }],
      duplicates: 0,
      late: 0,
    },
  },
  events: () => ({
    sample: z
      .union([pingSample(), lostSample()])
      .meta({ id: "Sample", description: "What became of an echo request." }),
  }),
  errors: PROBE_ERRORS,
  async handle({ target, count }, call, tools) {
    const { pingIntervalMs: intervalMs, probeTimeoutMs } = tools.config;
    const longestMs = (count - 1) * intervalMs + Math.max(probeTimeoutMs, SILENCE_MS);
    const { ip, outcome, dns64 } = await probeTarget(
      target,
      call,
      tools,
      longestMs,
      (engine, request, options) =>
        engine.ping(
          { ...request, count, intervalMs },
          { ...options, onSample: (sample) => call.onEvent?.("sample", present(sample)) },
        ),
      tools.icmp,
    );
    const { source, timeoutMs, samples, lost, duplicates } = outcome;
    const unknown = lost.filter(({ reason }) => reason === "unknown").length;
    return {
      target,
      ip,
      results: samples.map(presentAnswered),
      stats: summarize(
        samples.map(({ rttMs }) => rttMs),
        lost.length - unknown,
        count,
      ),
      details: {
        source: formatIpv6(source),
        timeout: timeoutMs,
        lost: lost.map(presentLost),
        duplicates,
        late: lost.filter(({ reason, rttMs }) => reason === "timeout" && rttMs !== undefined)
          .length,
        ...dns64,
      },
    };
  },
});

/** The result of a ping. */
export type PingResult = z.output<ReturnType<typeof pingResult>>;

/** A sample as the answer shows it. */
function present(sample: Sample) {
  return "reason" in sample ? presentLost(sample) : presentAnswered(sample);
}

function presentAnswered({ seq, hopLimit, rttMs, otherSource }: PingSample) {
  return {
    seq,
    ttl: hopLimit,
    rtt: round(rttMs, 3),
    ...(otherSource && {
      details: { reason: "other-source" as const, from: formatIpv6(otherSource) },
    }),
  };
}

function presentLost(sample: LostSample) {
  if ("errno" in sample) return sample;
  const { rttMs, ...others } = sample;
  const rtt = rttMs === undefined ? {} : { rtt: round(rttMs, 3) };
  return "from" in others
    ? { ...others, from: formatIpv6(others.from), ...rtt }
    : { ...others, ...rtt };
}

/** The statistics of a ping from its round-trip times in milliseconds. */
export function summarize(times: readonly number[], lost: number, transmitted: number) {
  const loss = transmitted === 0 ? 0 : round((lost / transmitted) * 100, 2);
  const counts = { transmitted, received: times.length, loss };
  if (times.length === 0) return { ...counts, min: null, avg: null, max: null };
  const sum = times.reduce((total, time) => total + time, 0);
  return {
    ...counts,
    min: round(Math.min(...times), 3),
    avg: round(sum / times.length, 3),
    max: round(Math.max(...times), 3),
  };
}

const seq = () => z.int().min(1).max(MAX_COUNT).describe("The number of the request, from 1.");

const milliseconds = (what: string) => z.number().min(0).describe(`${what} in milliseconds.`);

/** The schema of an answered request. */
export const pingSample = once(() =>
  z
    .strictObject({
      seq: seq(),
      ttl: z.int().min(0).max(255).describe("The hop limit of the reply."),
      rtt: milliseconds("The round-trip time"),
      details: z
        .strictObject({
          reason: z.literal("other-source"),
          from: ipv6Text("The address that replied."),
        })
        .exactOptional()
        .describe("Present if the reply came from another address than the target's."),
    })
    .meta({ id: "PingSample", description: "An echo request that was answered in time." }),
);

/** The schema of a request without a reply. */
export const lostSample = once(() =>
  z
    .union([
      z.strictObject({
        seq: seq(),
        reason: z
          .enum(["timeout", "unknown"])
          .describe(
            "No reply came in time; unknown if the kernel of the service's machine dropped packets meanwhile, perhaps the reply.",
          ),
        rtt: milliseconds("The time to a reply that came too late").exactOptional(),
      }),
      z.strictObject({
        seq: seq(),
        reason: z.literal("not-sent").describe("The service's machine could not send it."),
        errno: z.string().describe("The error's name, such as EPERM."),
      }),
      z.strictObject({
        seq: seq(),
        reason: z.string().describe("The name of the ICMPv6 error, such as no-route."),
        type: icmpType(),
        code: icmpCode(),
        from: ipv6Text("The sender of the error."),
        rtt: milliseconds("The time to the error").exactOptional(),
      }),
    ])
    .meta({ id: "LostSample", description: "An echo request without a reply." }),
);

/** The schema of the result. */
export function pingResult() {
  const some = z.int().min(0).max(MAX_COUNT);
  const statistic = (which: string) =>
    z
      .number()
      .min(0)
      .nullable()
      .describe(`The ${which} round-trip time in milliseconds; null without a reply.`);
  const stats = z
    .strictObject({
      transmitted: some.describe("Requests, also those that the service's machine could not send."),
      received: some.describe("Requests that were answered in time."),
      loss: z
        .number()
        .min(0)
        .max(100)
        .describe(
          "Requests that were not answered in time, in percent; an unknown one is not lost.",
        ),
      min: statistic("least"),
      avg: statistic("mean"),
      max: statistic("greatest"),
    })
    .meta({ id: "PingStats", description: "The statistics of a ping." });
  return z
    .strictObject({
      target: z.string().describe("The target as it was sent."),
      ip: ipv6Text("The address that was pinged."),
      results: z.array(pingSample()).describe("The requests that were answered, in order."),
      stats,
      details: z.strictObject({
        ...atLocation(),
        source: ipv6Text("The source address of the requests."),
        timeout: z.int().min(1).describe("Milliseconds to wait for an answer."),
        lost: z.array(lostSample()).describe("The requests without a reply, in order."),
        duplicates: z.int().min(0).describe("Further answers to an answered request."),
        late: z.int().min(0).describe("Replies that came after the timeout."),
        ...dns64Field(),
      }),
    })
    .meta({ id: "PingResult", description: "The result of a ping." });
}
