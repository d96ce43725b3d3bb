import { integerParameter } from "../../api/parameters.ts";
import { SILENCE_MS } from "../../icmp/prober/prober.ts";
import { openRun, PROBING, protocolParameters, targetParameter } from "../run.ts";
import { endpoint } from "../services.ts";
import { waitingEvent } from "../turn.ts";
import { ping as sendPings } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { MAX_COUNT, MAX_COUNT_ALONE, pingResult, type Sample, sampleSchema } from "./result.ts";

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
      maximumAlone: MAX_COUNT_ALONE,
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
  events: () => ({ waiting: waitingEvent(), sample: sampleSchema() }),
  async handle({ count, ...probed }, call, services) {
    const { target } = probed;
    const { pingIntervalMs: intervalMs, probeTimeoutMs } = services.config;
    const longestMs = (count - 1) * intervalMs + Math.max(probeTimeoutMs, SILENCE_MS);
    using run = await openRun({ ...probed, syns: count }, longestMs, call, services, true);
    const request = { ...run.request, count, intervalMs };
    const onSample = (sample: Sample) => call.onEvent?.("sample", sample);
    const outcome = await run.outcome(sendPings(run.prober, request, { ...run.options, onSample }));
    const { answers, results, stats, lost, late, duplicates, verdict } = outcome;
    const error = lost.find((sample) => "from" in sample);
    const end = { answers, error: error && { ...error, name: error.reason } };
    const known = await run.details(outcome, verdict, end);
    const details = { ...known, timeout: probeTimeoutMs, lost, duplicates, late };
    return { target, ip: run.ip, results, stats, details };
  },
});
