/** `/here` of a service: what a look costs its link, its stream, its metric and module, and the machines of other locations. */
import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import type { HereResult } from "../../src/tools/here/result.ts";
import { GATEWAY, linkGateway, NO_ROUTE, ROUTE, startPlaces } from "../here/places.ts";
import { parseEvents, type SentEvent } from "../lab/events.ts";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { metricsUrl, seriesIn } from "../lab/metrics.ts";
import { runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { type CountingResolver, startResolver } from "../tools/check/resolver.ts";

/** Of a look: three solicitations of routers and one of the gateway, and those that the kernel itself sends meanwhile. */
const MOST_SOLICITATIONS = 20;

let resolver: CountingResolver;
let service: Service;

beforeAll(async () => {
  if (labMissing !== null) return;
  await linkGateway();
  resolver = await startResolver({});
  service = await startService({
    SIXSCOPE_METRICS_LISTEN: "[::1]:0",
    SIXSCOPE_RESOLVER_A: resolver.server,
    SIXSCOPE_RATE_KEY: "100000",
  });
});

afterAll(async () => {
  if (labMissing !== null) return;
  await service[Symbol.asyncDispose]();
  resolver[Symbol.dispose]();
});

const ask = (path: string, headers: Record<string, string> = {}, of = service) =>
  fetch(of.url + path, { headers: { "X-API-Key": of.key, ...headers } });

const look = async (query = "") => (await (await ask(`/here${query}`)).json()) as HereResult;

const EVENTS = { Accept: "text/event-stream" };

/** The solicitations of routers and of neighbours that have left this namespace's link; sysfs shows the links of another. */
const sentSolicitations = () =>
  readFileSync("/proc/net/dev_snmp6/eth0", "utf8")
    .matchAll(/^Icmp6OutType13[35]\s+(\d+)$/gm)
    .reduce((sum, [, count]) => sum + Number(count), 0);

const series = async (path: string) => {
  const response = await fetch(metricsUrl(service) + path);
  return response.status === 200 ? seriesIn(await response.text()) : response.status;
};

const hereIn = async () =>
  Object.entries(await series("/metrics")).filter(([name]) => name.startsWith("sixscope_here"));

describeWith(labMissing)("a look", () => {
  const labTest = testWith(labMissing);

  labTest("needs a key", async () => {
    expect((await fetch(`${service.url}/here`)).status).toBe(401);
    expect(await hereIn()).toEqual([]);
  });

  labTest("of 64 callers at once costs the link one look, and each has its stream", async () => {
    const before = sentSolicitations();
    const streams = await Promise.all(
      Array.from({ length: 64 }, async () =>
        parseEvents(await (await ask("/here", EVENTS)).text()),
      ),
    );
    const sent = sentSolicitations() - before;
    expect(sent).toBeGreaterThanOrEqual(4);
    expect(sent).toBeLessThan(MOST_SOLICITATIONS);
    const [first = []] = streams;
    for (const stream of streams) expect(stream).toEqual(first);
    const namesOf = (event: string) =>
      first
        .filter((each) => each.event === event)
        .map(({ data }) => (data as { name: string }).name);
    const last = first.at(-1) as SentEvent;
    expect(last.event).toBe("result");
    const { steps, details } = last.data as HereResult;
    expect(details.verdict.code).toBe("works");
    expect(namesOf("begin")).toEqual(steps.map(({ name }) => name));
    expect(new Set(namesOf("step"))).toEqual(new Set(steps.map(({ name }) => name)));
    // What was told last of a step is what the result has.
    for (const step of steps) {
      const told = first.filter(({ event, data }: SentEvent) => {
        return event === "step" && (data as { name: string }).name === step.name;
      });
      expect(told.at(-1)?.data).toEqual(step);
    }
  });

  labTest("counts as four requests", async () => {
    const remaining = async (path: string) => {
      const response = await ask(path);
      await response.text();
      return Number(response.headers.get("X-RateLimit-Remaining"));
    };
    const before = await remaining("/validate?address=::1");
    expect(before - (await remaining("/here?interface=none"))).toBe(4);
  });

  labTest("of an interface that is not there names those that are", async () => {
    const response = await ask(`/here?interface=${encodeURIComponent("../x\u0000🛰️")}`);
    const { error } = (await response.json()) as {
      error: { code: string; details: { allowed: string[] } };
    };
    expect([response.status, error.code]).toEqual([400, "INVALID_PARAMETER"]);
    expect(error.details.allowed).toContain("eth0");
  });

  labTest("is what the metric says until the next one, and what the module measures", async () => {
    expect(await hereIn()).toEqual([['sixscope_here{code="works"}', 1]]);
    await runIp([NO_ROUTE]);
    // Asked for one interface, it says nothing of the way out.
    expect((await look("?interface=eth0")).details.verdict.code).toBe("no-route");
    expect(await hereIn()).toEqual([['sixscope_here{code="works"}', 1]]);
    expect(await series("/probe?module=here6")).toEqual({
      probe_success: 0,
      probe_duration_seconds: expect.any(Number),
      'probe_here_info{code="no-route"}': 1,
    });
    expect(await hereIn()).toEqual([['sixscope_here{code="no-route"}', 1]]);
    await runIp([ROUTE]);
    expect(await series("/probe?module=here6")).toMatchObject({
      probe_success: 1,
      'probe_here_info{code="works"}': 1,
    });
    expect(await series("/probe?module=here6&interface=none")).toBe(400);
    expect(await hereIn()).toEqual([['sixscope_here{code="works"}', 1]]);
  });
});

describeWith(labMissing ?? programMissing("nats-server"))("of other locations", () => {
  const labTest = testWith(labMissing, programMissing("nats-server"));

  labTest("is taken there, and each has its verdict", async () => {
    await using places = await startPlaces({ SIXSCOPE_RATE_KEY: "100000" });
    const { service } = places;
    const one = (await (await ask("/here?from=fra", {}, service)).json()) as HereResult & {
      details: { location: string };
    };
    expect([one.details.location, one.details.verdict.code]).toEqual(["fra", "no-route"]);
    expect(one.interfaces.flatMap(({ addresses }) => addresses.map(({ ip }) => ip))).toContain(
      GATEWAY,
    );
    const events = parseEvents(await (await ask("/here?from=all", EVENTS, service)).text());
    expect(events.at(-1)).toMatchObject({
      event: "result",
      data: {
        details: {
          summary: [
            { location: "ams", verdict: "works" },
            { location: "fra", verdict: "no-route" },
          ],
        },
        locations: [{ location: "ams" }, { location: "fra" }],
      },
    });
    expect(events.at(-1)?.data).not.toHaveProperty("target");
    const stepsOf = (location: string) =>
      events.filter(
        ({ event, data }) =>
          event === "step" && (data as { location: string }).location === location,
      );
    for (const location of ["ams", "fra"]) expect(stepsOf(location).length).toBeGreaterThan(9);
    const none = await ask("/here?from=nyc", {}, service);
    expect([none.status, await none.json()]).toMatchObject([
      404,
      { error: { code: "LOCATION_NOT_FOUND" } },
    ]);
  });
});
