/** How pings and traces are answered without a raw socket. */
import { describe, expect, test } from "bun:test";
import type { Call } from "../../src/api/endpoint.ts";
import { ApiError } from "../../src/api/errors.ts";
import { parseConfig } from "../../src/config/settings.ts";
import type { DnsClient } from "../../src/dns/client.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import { ping as sendPings } from "../../src/tools/ping/engine.ts";
import { openRun } from "../../src/tools/run.ts";
import type { Services } from "../../src/tools/services.ts";

const CALL: Call = {
  signal: new AbortController().signal,
  address: null,
  client: "",
  allowSeconds: () => {},
};

/** No test may ask for a name. */
const noDns = {
  query: () => Promise.reject(new Error("asked the DNS")),
} as unknown as DnsClient;

/** Pings a target; the answer's code and details, or the text of another error. */
function start(icmp: Services["icmp"]) {
  const tools: Services = {
    config: parseConfig({ SIXSCOPE_PROBE_TIMEOUT_MS: "1000" }),
    resolvers: { resolver_a: noDns, resolver_b: noDns, resolver_c: noDns },
    icmp,
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
  };
  return async (target: string): Promise<unknown> => {
    try {
      using run = await openRun({ target: decodeURIComponent(target) }, 1000, CALL, tools);
      const ping = sendPings(run.prober, { ...run.request, count: 1, intervalMs: 200 });
      return await run.outcome(ping);
    } catch (error) {
      return error instanceof ApiError
        ? [error.status, error.code, error.message, error.details]
        : String(error);
    }
  };
}

describe("without a raw socket", () => {
  const ping = start({ unavailable: "socket: EPERM" });

  test.each([
    ["1.2.3.4", 400, "INVALID_ADDRESS"],
    ["2001:db8::g", 400, "INVALID_ADDRESS"],
    ["a..test", 400, "INVALID_HOSTNAME"],
    ["a_b%20c", 400, "INVALID_HOSTNAME"],
    ["::1", 500, "ICMP_UNAVAILABLE"],
    ["fe80::1%25eth0", 500, "ICMP_UNAVAILABLE"],
    ["www.example.test", 500, "ICMP_UNAVAILABLE"],
  ])("a ping of %s is answered %i %s", async (target, status, code) => {
    expect(await ping(target)).toMatchObject([status, code, expect.any(String), {}]);
  });

  test("the message gives the reason and what to do", async () => {
    expect(await ping("::1")).toEqual([
      500,
      "ICMP_UNAVAILABLE",
      "This service has no raw socket (socket: EPERM); the operator must grant CAP_NET_RAW.",
      { reason: "socket: EPERM" },
    ]);
  });
});
