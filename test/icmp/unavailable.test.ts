/** What is answered to pings and traces where no ICMPv6 can be had: from the start, or since the receiver has failed. */
import { describe, expect, test } from "bun:test";
import { Hono } from "hono";
import type { DnsClient } from "../../src/dns/client.ts";
import type { AppEnv, Facts } from "../../src/http/context.ts";
import { ApiError } from "../../src/http/errors.ts";
import { openIcmp } from "../../src/icmp/engine.ts";
import { ProbeSlots } from "../../src/limits/probe-slots.ts";
import { type ProbeDependencies, probeTarget } from "../../src/routes/probe.ts";
import { countingRandom, FakeSocket, VirtualClock } from "./fake.ts";

const FACTS: Facts = {
  requestId: "",
  caller: { address: null, secure: true, viaTrustedProxy: false, untrustedForwarding: false },
  key: null,
  headers: {},
};

/** No name is to be asked for. */
const noDns = {
  resolve: () => Promise.reject(new Error("asked the DNS")),
} as unknown as DnsClient;

/** Pings a target through the route; the answer's code and details, or what else was thrown. */
function start(icmp: ProbeDependencies["icmp"]) {
  const dependencies: ProbeDependencies = {
    config: {
      targets: { mode: "any", allow: [], deny: [] },
      targetResolver: "resolver_a",
      pingIntervalMs: 200,
      probeTimeoutMs: 1000,
    },
    resolvers: { resolver_a: noDns, resolver_b: noDns, resolver_c: noDns },
    icmp,
    probeSlots: new ProbeSlots(1),
  };
  const app = new Hono<AppEnv>();
  app.get("/:target", async (context) => {
    context.set("facts", FACTS);
    const outcome = await probeTarget(
      context.req.param("target"),
      context,
      dependencies,
      1000,
      (engine, { address: target, scopeId }, signal) =>
        engine.ping({ target, scopeId, count: 1, intervalMs: 200, timeoutMs: 1000, signal }),
    );
    return context.json(outcome);
  });
  app.onError((error, context) =>
    error instanceof ApiError
      ? context.json([error.status, error.code, error.message, error.details])
      : context.text(String(error)),
  );
  return async (target: string): Promise<unknown> => {
    const response = await app.request(`/${target}`, {}, { allowSeconds: () => {} });
    return response.headers.get("content-type") === "application/json"
      ? await response.json()
      : await response.text();
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

  test("the reason and what to do are told", async () => {
    expect(await ping("::1")).toEqual([
      500,
      "ICMP_UNAVAILABLE",
      "This service has no raw socket (socket: EPERM); the operator must grant CAP_NET_RAW.",
      { reason: "socket: EPERM" },
    ]);
  });
});

describe("a receiver that has failed", () => {
  const failed = [
    500,
    "ICMP_UNAVAILABLE",
    "This service cannot receive ICMPv6 any more (its thread has ended); the operator must restart it.",
    { reason: "its thread has ended" },
  ];

  function startOnFake() {
    const sent = Promise.withResolvers<void>();
    const clock = new VirtualClock();
    const socket = new FakeSocket(clock, () => {
      sent.resolve();
      return [];
    });
    const icmp = openIcmp({ openSocket: socket.open, clock, random: countingRandom() });
    return { ping: start(icmp), socket, sent: sent.promise };
  }

  test("ends the running ping and all later ones with the reason, and is no unforeseen error", async () => {
    const { ping, socket, sent } = startOnFake();
    const running = ping("::1");
    await sent;
    socket.fail(new Error("its thread has ended"));
    expect(await running).toEqual(failed);
    expect(await ping("::1")).toEqual(failed);
    expect(await ping("www.example.test")).toEqual(failed);
    expect(await ping("1.2.3.4")).toMatchObject([
      400,
      "INVALID_ADDRESS",
      expect.any(String),
      { address: "1.2.3.4" },
    ]);
  });

  test("hides no other error", async () => {
    const { ping, socket } = startOnFake();
    socket.sourceFor = () => {
      throw new Error("out of file descriptors");
    };
    expect(await ping("::1")).toBe("Error: out of file descriptors");
  });
});
