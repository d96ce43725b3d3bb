import type { Handler } from "hono";
import { formatIpv6 } from "../addr/format.ts";
import type { AppEnv } from "../http/environment.ts";
import { integerParameter, readParameters } from "../http/parameters.ts";
import type { PingSample } from "../icmp/ping.ts";
import { type ProbeDependencies, probeTarget, requireDone, round } from "./probe.ts";

/** The query parameters of `/ping/{target}`. */
const parameters = { count: integerParameter({ minimum: 1, maximum: 10, default: 4 }) };

/** `GET /ping/{target}`: echo requests to the target and their round-trip times. */
export function pingRoute(dependencies: ProbeDependencies): Handler<AppEnv> {
  const { pingIntervalMs: intervalMs, probeTimeoutMs: timeoutMs } = dependencies.config;

  return async (context) => {
    const { count } = readParameters(context, parameters);
    context.env.allowSeconds(((count - 1) * intervalMs + timeoutMs) / 1000);
    return await probeTarget(context, dependencies, async (engine, target, address, signal) => {
      const outcome = requireDone(
        await engine.ping({ target: address, count, intervalMs, timeoutMs, signal }),
        target,
        address,
      );
      const { samples, transmitted } = outcome;
      return context.json({
        target,
        ip: formatIpv6(address),
        results: samples.map(({ seq, hopLimit, rttMs }) => ({
          seq,
          ttl: hopLimit,
          rtt: round(rttMs, 3),
        })),
        stats: {
          transmitted,
          received: samples.length,
          loss: round((1 - samples.length / transmitted) * 100, 2),
          ...summarize(samples),
        },
        details: {
          source: formatIpv6(outcome.source),
          timeout: outcome.timeoutMs,
          lost: outcome.lost.map((sample) =>
            "from" in sample ? { ...sample, from: formatIpv6(sample.from) } : sample,
          ),
          duplicates: outcome.duplicates,
          late: outcome.late,
        },
      });
    });
  };
}

/** Least, mean and greatest round-trip time in milliseconds; null without a single reply. */
function summarize(samples: readonly PingSample[]) {
  if (samples.length === 0) return { min: null, avg: null, max: null };
  const times = samples.map(({ rttMs }) => rttMs);
  const sum = times.reduce((total, time) => total + time, 0);
  return {
    min: round(Math.min(...times), 3),
    avg: round(sum / times.length, 3),
    max: round(Math.max(...times), 3),
  };
}
