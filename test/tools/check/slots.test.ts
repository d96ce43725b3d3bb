/** The cost of a check: its slot, its price, the time until its first event, and what stays behind. */

import { heapStats } from "bun:jsc";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  mock,
  spyOn,
  test,
} from "bun:test";
import type { Call } from "../../../src/api/endpoint.ts";
import { readTexts } from "../../../src/api/parameters.ts";
import { parseConfig } from "../../../src/config/settings.ts";
import type { DnsClient } from "../../../src/dns/client.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { check } from "../../../src/tools/check/endpoint.ts";
import type { CheckResult } from "../../../src/tools/check/result.ts";
import { LONGEST_MS } from "../../../src/tools/check/running.ts";
import type { Services } from "../../../src/tools/services.ts";
import { readEvents } from "../../lab/events.ts";
import { describeWith, labMissing, testWith } from "../../lab/lab.ts";
import { type Service, startService } from "../../lab/service.ts";
import { type CountingResolver, startResolver } from "./resolver.ts";

const labTest = testWith(labMissing);

let resolver: CountingResolver;
let service: Service;

beforeAll(async () => {
  if (labMissing !== null) return;
  resolver = await startResolver({}, { waits: true });
  service = await startService({
    SIXSCOPE_RESOLVER_A: resolver.server,
    SIXSCOPE_RESOLVER_B: resolver.server,
    SIXSCOPE_RESOLVER_C: resolver.server,
    SIXSCOPE_MAX_PROBES: "1",
  });
});

afterAll(async () => {
  if (labMissing !== null) return;
  await service[Symbol.asyncDispose]();
  resolver[Symbol.dispose]();
});

const ask = (path: string, init: RequestInit = {}) =>
  fetch(service.url + path, { ...init, headers: { ...init.headers, "X-API-Key": service.key } });

const stream = (path: string, signal: AbortSignal) =>
  ask(path, { signal, headers: { Accept: "text/event-stream" } });

labTest("a check tells its first event before a resolver answers", async () => {
  const client = new AbortController();
  const response = await stream("/check/www.example.com", client.signal);
  const { value } = await readEvents(response).next();
  expect(value).toEqual({ event: "begin", data: { name: "names" } });
  client.abort();
});

labTest("a check counts as twelve requests", async () => {
  const left = async (path: string) => {
    const response = await ask(path);
    await response.text();
    return Number(response.headers.get("X-RateLimit-Remaining"));
  };
  const before = await left("/validate?address=::1");
  // Refused by the policy, so that it ends at once.
  expect(before - (await left("/check/::1"))).toBe(12);
});

labTest.each(["fe80::1", "fe80::1%25lo"])(
  "a check of %s, which is on one link alone, is refused",
  async (address) => {
    const response = await ask(`/check/${address}`);
    expect([response.status, await response.json()]).toEqual([
      400,
      {
        error: expect.objectContaining({
          code: "INVALID_PARAMETER",
          details: { parameter: "name", value: decodeURIComponent(address) },
          message: expect.stringContaining("ping it"),
        }),
      },
    ]);
  },
);

labTest("a check holds one slot, and gives it back when its client goes away", async () => {
  const client = new AbortController();
  const events = readEvents(await stream("/check/held.example.com", client.signal));
  await events.next();
  const ping = async () => (await ask("/ping/::1?count=1")).status;
  // Its own steps run within its slot; another run finds none.
  expect(await ping()).toBe(429);
  client.abort();
  while ((await ping()) !== 200);
});

/** A resolver that answers nothing until the question is given up. */
const deaf = {
  query: (name: string, type: string, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve) => {
      const aborted = { kind: "aborted", question: { name, type }, attempts: [], queryTimeMs: 0 };
      signal?.addEventListener("abort", () => resolve(aborted), { once: true });
    }),
} as unknown as DnsClient;

function setUp(client = deaf, slots = 1) {
  const services: Services = {
    config: parseConfig({ SIXSCOPE_TARGETS_ALLOW: "::1" }),
    resolvers: { resolver_a: client, resolver_b: client, resolver_c: client },
    icmp: { unavailable: "socket: EPERM" },
    gate: new Gate(),
    probeSlots: new FairSlots(slots),
    querySlots: new FairSlots(9),
  };
  const run = (name: string, signal: AbortSignal, onEvent?: Call["onEvent"], asking = "") =>
    check.handle(
      readTexts(check.parameters, { name }),
      { signal, address: null, client: asking, allowSeconds() {}, ...(onEvent && { onEvent }) },
      services,
    ) as Promise<CheckResult>;
  return { services, run };
}

/** A resolver that answers with ::1 as soon as the question is given up. */
const late = {
  query: async (name: string, type: string, options: { signal?: AbortSignal } = {}) => ({
    ...(await (deaf.query(name, type as never, options) as Promise<object>)),
    ...{ kind: "answer", rcode: "NOERROR", records: [{ owner: name, type, ttl: 1, value: "::1" }] },
    ...{
      server: "[::1]:53",
      transport: "udp",
      authenticated: false,
      extendedErrors: [],
    },
  }),
} as unknown as DnsClient;

describeWith(labMissing)("a check whose time is over", () => {
  const startTimer = setTimeout;
  let tarpit: Bun.TCPSocketListener;
  /** Ends the time of the check. */
  let end = () => {};

  beforeAll(() => {
    tarpit = Bun.listen({ hostname: "::1", port: 443, socket: { data() {} } });
    spyOn(globalThis, "setTimeout").mockImplementation(((run: () => void, ms: number) => {
      if (ms === LONGEST_MS) end = run;
      return startTimer(run, ms);
    }) as typeof setTimeout);
  });

  afterAll(() => {
    mock.restore();
    tarpit.stop(true);
  });

  const cut = { status: "skipped", text: "Not finished in time." };

  test.each([
    ["in a step", deaf, "::1", "tls", "tls"],
    ["before a resolver answers", deaf, "www.example.com", "names", "names"],
    ["before a step begins", late, "www.example.com", "names", "tcp"],
  ])("%s finds no fault in it", async (_, client, name, last, step) => {
    const onEvent = (event: string, data: { readonly name?: string }) => {
      if (event === "begin" && data.name === last) startTimer(end, 0);
    };
    const { steps, details } = await setUp(client).run(name, new AbortController().signal, onEvent);
    expect(steps.find((each) => each.name === step)).toMatchObject(cut);
    expect(details.verdict.code).toBe("unknown");
  });
});

labTest("checks that have ended, or were given up, leave no signals and timers", async () => {
  const { services, run } = setUp();
  const kept = async (most: number) => {
    for (let count = 0; count < 100; count++) {
      const client = new AbortController();
      const given = run("www.example.com", client.signal);
      await Bun.sleep(0);
      client.abort();
      await expect(given).rejects.toMatchObject({ name: "AbortError" });
      expect(services.probeSlots.running).toBe(0);
    }
    // Its ten connections are some time apart.
    const { details } = await run("::1", new AbortController().signal);
    expect(details.verdict.code).toBe("not-opened");
    expect(services.probeSlots.running).toBe(0);
    let left = Infinity;
    // Some are collected after a while only; one for each check would be 100.
    for (let turn = 0; turn < 200 && left > most; turn++) {
      await Bun.sleep(5);
      Bun.gc(true);
      const { AbortSignal: signals = 0, Timeout: timers = 0 } = heapStats().objectTypeCounts;
      left = signals + timers;
    }
    return left;
  };
  const most = (await kept(100)) + 50;
  expect(await kept(most)).toBeLessThanOrEqual(most);
});

test("the first event comes within the turn in which a check gets its slot", async () => {
  const { run } = setUp();
  const client = new AbortController();
  const events: object[] = [];
  const given = run("www.example.com", client.signal, (name, data) => events.push({ name, data }));
  for (let turn = 0; turn < 3; turn++) await Promise.resolve();
  expect(events).toEqual(["names", "zone"].map((name) => ({ name: "begin", data: { name } })));
  client.abort();
  await expect(given).rejects.toMatchObject({ name: "AbortError" });
});

describe("checks of one name and port", () => {
  /** A resolver that answers when the test says so, and how often it was asked for IPv4 addresses of the name. */
  const waitingResolver = () => {
    const { promise: released, resolve } = Promise.withResolvers<void>();
    const release = () => {
      isStopped = false;
      resolve();
    };
    let asked = 0;
    const query = async (name: string, type: string) => {
      if (name === NAME && type === "A") asked++;
      await released;
      const value = type === "A" ? "127.0.0.1" : "::1";
      const records = [{ owner: name, type, ttl: 1, value }];
      const more = { server: "[::1]:53", transport: "udp", authenticated: false };
      const question = { name, type };
      return { kind: "answer", question, rcode: "NOERROR", records, extendedErrors: [], ...more };
    };
    return { client: { query } as unknown as DnsClient, asked: () => asked, release };
  };
  const NAME = "www.example.com";
  const RESOLVERS = 3;
  const staying = new AbortController().signal;
  let lateMs = 0;
  /** True until a resolver answers. */
  let isStopped = true;

  beforeEach(() => {
    [lateMs, isStopped] = [0, true];
    const { now } = performance;
    const startMs = performance.now();
    spyOn(performance, "now").mockImplementation(
      () => (isStopped ? startMs : now.call(performance)) + lateMs,
    );
  });

  afterEach(() => mock.restore());

  test("share one measurement: all are told all, and one that leaves takes nothing from the others", async () => {
    const { client, asked, release } = waitingResolver();
    const { services, run } = setUp(client, 64);
    const leaving = new AbortController();
    const first = run(NAME, leaving.signal, undefined, "first");
    await Bun.sleep(0);
    lateMs = 4900;
    const told: string[][] = [[], []];
    const others = told.map((events, at) =>
      run(NAME, staying, (event, data) => void events.push(event + JSON.stringify(data)), `${at}`),
    );
    await Bun.sleep(0);
    leaving.abort();
    await expect(first).rejects.toMatchObject({ name: "AbortError" });
    release();
    const [one, other] = await Promise.all(others);
    expect(asked()).toBe(RESOLVERS);
    expect(one).toEqual(other as CheckResult);
    expect(one?.steps.map(({ name }) => name)).toContain("policy");
    expect(told[0]).toEqual(told[1] as string[]);
    expect(told[0]?.filter((event) => event.startsWith("step"))).toHaveLength(
      one?.steps.length as number,
    );
    expect(services.probeSlots.running).toBe(0);
  });

  test("measure again after five seconds", async () => {
    const { client, asked, release } = waitingResolver();
    const { run } = setUp(client, 64);
    const both = [run(NAME, staying, undefined, "first")];
    await Bun.sleep(0);
    // The difference of two times is not exact.
    lateMs = 5001;
    both.push(run(NAME, staying, undefined, "second"));
    await Bun.sleep(0);
    release();
    await Promise.all(both);
    expect(asked()).toBe(2 * RESOLVERS);
  });

  test("measure again where the first waited for its turn, so that nobody waits for what its client sends", async () => {
    const { client, asked, release } = waitingResolver();
    const { services, run } = setUp(client, 3);
    const leaves = ["a", "b", "c"].map((each) => services.probeSlots.tryTake(each));
    const first = run(NAME, staying, undefined, "first");
    await Bun.sleep(0);
    lateMs = 1500;
    for (const leave of leaves) leave?.();
    await Bun.sleep(0);
    const second = run(NAME, staying, undefined, "second");
    await Bun.sleep(0);
    release();
    const { waitedMs = 0 } = (await first).details;
    expect(waitedMs).toBeWithin(1500, 60_000);
    // Its connections take turns with those of the first, and that is all.
    expect((await second).details.waitedMs ?? 0).toBeLessThan(waitedMs);
    expect(asked()).toBe(2 * RESOLVERS);
  });
});
