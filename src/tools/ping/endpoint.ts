import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import { integerParameter } from "../../api/parameters.ts";
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
import { SILENCE_MS } from "../../icmp/prober/prober.ts";
import { round } from "../../util/numbers.ts";
import {
  icmpCode,
  icmpType,
  openRun,
  PROBING,
  portField,
  protocolParameters,
  runDetailFields,
  runFields,
  targetParameter,
} from "../run.ts";
import { endpoint } from "../services.ts";
import type { LostSample, PingSample, Sample } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { pingStatistics, pingTotals, pingVerdict } from "./statistics.ts";

/** Echo requests per ping. */
const MAX_COUNT = 10;

const VERDICTS = ["no-loss", "loss", "no-reply", "unreachable", "not-sent"] as const;

/** `GET /ping/{target}`: round-trip times of echo requests to the target. */
export const ping = endpoint({
  path: "/ping/{target}",
  operationId: "ping",
  summary: "Round-trip times to a target (beta)",
  description:
    "Sends ICMPv6 echo requests. The response comes as soon as each is answered or lost; `details.lost` has those without a reply and their reasons.",
  ...PROBING,
  parameters: {
    target: targetParameter,
    count: integerParameter({
      minimum: 1,
      maximum: MAX_COUNT,
      maximumAlone: 100_000,
      default: 4,
      description: "Echo requests to send.",
      example: 2,
      option: { flags: "-c, --count" },
      label: "Requests",
    }),
    ...protocolParameters,
  },
  response: pingResult,
  example,
  events: () => ({
    sample: z
      .union([pingSample(), lostSample()])
      .meta({ id: "Sample", description: "The outcome of an echo request." }),
  }),
  async handle({ count, ...probed }, call, services) {
    const { target } = probed;
    const { pingIntervalMs: intervalMs, probeTimeoutMs } = services.config;
    const longestMs = (count - 1) * intervalMs + Math.max(probeTimeoutMs, SILENCE_MS);
    using run = await openRun(probed, longestMs, call, services, services.icmp);
    const request = { ...run.request, count, intervalMs };
    const onSample = (sample: Sample) => call.onEvent?.("sample", present(sample));
    const outcome = await run.outcome(run.engine.ping(request, { ...run.options, onSample }));
    const { timeoutMs: timeout, samples, duplicates } = outcome;
    const lost = outcome.lost.map(presentLost);
    const results = samples.map(presentAnswered);
    const times = samples.map(({ rttMs }) => rttMs);
    const { late } = pingTotals(lost);
    const error = lost.find((sample) => "from" in sample);
    const end = {
      state: samples.findLast((sample) => sample.state)?.state,
      error: error && { ...error, name: error.reason },
    };
    const known = await run.details(outcome, pingVerdict(results.length, lost), end);
    const stats = pingStatistics([...results, ...lost], times);
    const details = { ...known, timeout, lost, duplicates, late };
    return { target, ip: run.ip, results, stats, details };
  },
});

/** The result of a ping. */
export type PingResult = ValueOf<ReturnType<typeof pingResult>>;

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

const seq = () => whole("The number of the request, from 1.", 1, MAX_COUNT);

const milliseconds = (what: string) => amount(`${what} in milliseconds.`);

/** The schema of an answered request. */
export const pingSample = once(() =>
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
export const lostSample = once(() =>
  z
    .union([
      z.strictObject({
        seq: seq(),
        reason: oneOf(
          ["timeout", "unknown"],
          "No reply came in time; unknown if the kernel of the service's machine dropped packets meanwhile, perhaps the reply.",
        ),
        rtt: milliseconds("The time to a reply that came too late").exactOptional(),
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

/** The schema of the result. */
export function pingResult() {
  const statistic = (which: string) =>
    amount(`The ${which} round-trip time in milliseconds; null without a reply.`).nullable();
  const stats = named("PingStats", "The statistics of a ping.", {
    transmitted: whole("Requests that left the service's machine.", 0, MAX_COUNT),
    received: whole("Requests that were answered in time.", 0, MAX_COUNT),
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
