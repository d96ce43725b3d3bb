/** Instances and agents over a real NATS server: many places, one answer. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { Glob } from "bun";
import { startKnot } from "../lab/dns-server.ts";
import { readEvents, type SentEvent } from "../lab/events.ts";
import { startKernelChain } from "../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { type NatsServer, startAgent, startNats } from "../lab/nats.ts";
import { type Service, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("nats-server");
const dnsTest = testWith(missing ?? programMissing("knotd"));

/** An answer about one or several locations. */
interface Document {
  readonly target?: string;
  readonly hops?: readonly { readonly ip: string | null }[];
  readonly details?: Readonly<Record<string, unknown>>;
  readonly records?: readonly { readonly value: string }[];
  readonly error?: Failure;
  readonly locations?: readonly {
    readonly location: string;
    readonly result?: Document;
    readonly error?: Failure;
  }[];
}

interface Failure {
  readonly code: string;
  readonly message?: string;
  readonly details: Readonly<Record<string, unknown>>;
}

async function ask({ url, key }: Service, path: string): Promise<Document & { status: number }> {
  const response = await fetch(url + path, { headers: { "X-API-Key": key } });
  return { status: response.status, ...((await response.json()) as Document) };
}

function stream({ url, key }: Service, path: string, signal?: AbortSignal) {
  const headers = { "X-API-Key": key, Accept: "text/event-stream" };
  return fetch(url + path, { headers, ...(signal && { signal }) });
}

async function whoIsThere(service: Service): Promise<string[]> {
  const { locations = [] } = await ask(service, "/locations");
  return locations.map(({ location }) => location);
}

/** Waits until these are there; one that was killed may be there for a while. */
async function waitFor(service: Service, names: readonly string[]): Promise<void> {
  const isThere = async () => new Set(names).isSubsetOf(new Set(await whoIsThere(service)));
  while (!(await isThere())) await Bun.sleep(20);
}

/** The settings of an instance without keys to count, and without resolvers outside. */
const SETTINGS = { SIXSCOPE_RESOLVER_A: "[::1]:1", SIXSCOPE_RATE_KEY: "100000" };

describeWith(missing)("three agents in three namespaces", () => {
  let stop: () => Promise<void>;
  let service: Service;
  let hops: readonly string[];
  let target: string;

  beforeAll(async () => {
    const chain = await startKernelChain({ routers: 4 });
    const nats = await startNats();
    ({ hops, target } = chain);
    service = await startService({ ...SETTINGS, SIXSCOPE_NATS_URL: nats.url });
    const url = `nats://[${chain.source}]:${nats.port}`;
    const agents = await Promise.all(
      ["ams", "fra", "zrh"].map((location, index) =>
        startAgent(
          { ...SETTINGS, SIXSCOPE_NATS_URL: url, SIXSCOPE_LOCATION: location },
          chain.inside(index + 1, []),
        ),
      ),
    );
    stop = async () => {
      for (const each of [service, ...agents, nats, chain]) await each[Symbol.asyncDispose]();
    };
    await waitFor(service, ["ams", "fra", "zrh"]);
  });

  afterAll(() => stop());

  test("give three different traces in one answer, in the order asked", async () => {
    const { locations, ...rest } = await ask(service, `/traceroute/${target}?from=zrh,ams,fra`);

    expect(rest).toEqual({ status: 200, target });
    const traces = locations?.map(({ location, result }) => [
      location,
      result?.details?.["location"],
      result?.hops?.map(({ ip }) => ip),
    ]);
    expect(traces).toEqual([
      ["zrh", "zrh", hops.slice(3)],
      ["ams", "ams", hops.slice(1)],
      ["fra", "fra", hops.slice(2)],
    ]);
  });

  test("give the endpoint's own document if one is asked", async () => {
    const here = await ask(service, `/traceroute/${target}?names=no&maxHops=8`);
    const there = await ask(service, `/traceroute/${target}?from=ams&names=no&maxHops=8`);
    expect(Object.keys(there)).toEqual(Object.keys(here));
    expect(there.details).toMatchObject({ location: "ams", reached: true });
    expect(there.hops?.map(({ ip }) => ip)).toEqual(hops.slice(1));
    expect(here.hops?.map(({ ip }) => ip)).toEqual([...hops]);
  });

  test("list themselves with version, families and start", async () => {
    const { locations } = await ask(service, "/locations");
    for (const each of locations ?? []) {
      expect(each).toEqual({
        location: expect.any(String),
        version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
        families: [6],
        since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      } as never);
    }
    expect(locations?.length).toBe(3);
  });

  test.each([
    ["/ping/TARGET?count=2", "sample", 2],
    ["/traceroute/TARGET?names=no", "hop", 4],
    ["/mtr/TARGET?rounds=2&names=no&intervalMs=100", "round", 2],
    ["/mtu/TARGET?names=no", "hop", 4],
  ] as const)("%s streams events with their location", async (path, name, atLeast) => {
    const address = path.replace("TARGET", target);
    const events = await Array.fromAsync(readEvents(await stream(service, `${address}&from=all`)));

    const parts = events.filter(({ event }) => event === name) as Located[];
    const countOf = (location: string) =>
      parts.filter(({ data }) => data.location === location).length;
    expect(countOf("ams")).toBeGreaterThanOrEqual(atLeast);
    expect(countOf("ams") + countOf("fra") + countOf("zrh")).toBe(parts.length);
    const ended = events.filter(({ event }) => event === "location").map(({ data }) => data);
    const result = events.at(-1);
    expect(result?.event).toBe("result");
    const { locations } = (result?.data ?? {}) as Document;
    expect(locations?.map(({ location }) => location)).toEqual(["ams", "fra", "zrh"]);
    expect(ended.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)))).toEqual(
      locations as object[],
    );
  });

  test("stream the result of one as the plain answer has it", async () => {
    const events = await Array.fromAsync(
      readEvents(await stream(service, `/ping/${target}?count=1&from=fra`)),
    );
    expect(events.map(({ event }) => event)).toEqual(["sample", "result"]);
    expect(nameOf(events[0]?.data)).toBe("fra");
    expect((events[1]?.data as Document | undefined)?.details).toMatchObject({ location: "fra" });
  });
});

type Located = SentEvent & { readonly data: { readonly location: string } };

function nameOf(data: unknown): string {
  return (data as Located["data"]).location;
}

describeWith(missing)("agents and an instance with a location", () => {
  let nats: NatsServer;
  let service: Service;
  const settings = (location: string) => ({
    ...SETTINGS,
    SIXSCOPE_NATS_URL: nats.url,
    SIXSCOPE_LOCATION: location,
  });

  beforeAll(async () => {
    nats = await startNats();
    service = await startService(settings("here"));
    await service.says("connected to NATS");
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
  });

  test("an instance is an agent for another one too", async () => {
    await using other = await startService(settings("other"));
    await waitFor(service, ["here", "other"]);
    const there = await ask(service, "/ping/::1?count=1&from=other");
    const own = await ask(other, "/ping/::1?count=1&from=other");
    expect([there.details?.["location"], own.details?.["location"]]).toEqual(["other", "other"]);
    await other.says("msg=ask endpoint=ping outcome=result");
    expect(other.stderr().match(/msg=ask /g)?.length).toBe(1);
  });

  test("many roll calls at once are answered together", async () => {
    const foreign = await connect({ servers: [nats.url] });
    let announcements = 0;
    foreign.subscribe("sixscope.here.here", {
      callback() {
        announcements += 1;
      },
    });
    for (let call = 0; call < 20; call++) foreign.publish("sixscope.rollcall");
    await foreign.flush();
    while (announcements === 0) await Bun.sleep(20);
    // The answer to a request shows that the instance has read all of them.
    await ask(service, "/ping/::1?count=1&from=gone");
    await foreign.flush();
    expect(announcements).toBeLessThan(5);
    await foreign.close();
  });

  test("a location without an agent is known at once, and the others' results stand", async () => {
    expect(await ask(service, "/ping/::1?from=gone")).toMatchObject({
      status: 404,
      error: { code: "LOCATION_NOT_FOUND", details: { location: "gone" } },
    });
    const { status, locations } = await ask(service, "/ping/::1?count=1&from=gone,here");
    expect(status).toBe(200);
    expect(locations?.map(({ location, error }) => [location, error?.code])).toEqual([
      ["gone", "LOCATION_NOT_FOUND"],
      ["here", undefined],
    ]);
    const response = await stream(service, "/ping/::1?from=gone");
    expect(response.status).toBe(404);
  });

  test.each([
    ["capitals", "AMS"],
    ["nothing", ""],
    ["nothing behind a comma", "here,"],
    ["a wildcard", "*"],
    ["a subject", "here.ask"],
    ["all beside a name", "all,here"],
    ["33 names", Array.from({ length: 33 }, (_, index) => `a${index}`).join()],
  ])("from with %s is not valid", async (_, from) => {
    expect(await ask(service, `/ping/::1?from=${from}`)).toMatchObject({
      status: 400,
      error: { code: "INVALID_PARAMETER", details: { parameter: "from" } },
    });
  });

  test("a location that is named twice is asked once", async () => {
    const { locations } = await ask(service, "/ping/::1?count=1&from=here,here");
    expect(locations?.map(({ location }) => location)).toEqual(["here"]);
  });

  test("an agent applies its own target policy, and checks parameters again", async () => {
    await using _agent = await startAgent({ ...settings("ams"), SIXSCOPE_TARGETS_DENY: "::1/128" });
    expect(await ask(service, "/ping/::1?from=ams")).toMatchObject({
      status: 400,
      error: { code: "TARGET_NOT_ALLOWED", details: { target: "::1" } },
    });
    expect((await ask(service, "/ping/::1?count=1&from=here")).status).toBe(200);
    expect(await ask(service, "/ping/::1?from=ams&count=11")).toMatchObject({ status: 400 });
    expect((await ask(service, "/ping/fe80::1%25nowhere?from=ams")).error).toMatchObject({
      code: "INVALID_PARAMETER",
      details: { parameter: "target" },
    });
  });

  dnsTest("an agent asks its own resolver", async () => {
    await using knot = await startKnot({
      zones: {
        "example.test": "@ 60 SOA ns a 1 2 3 4 5\n@ NS ns\nns AAAA ::1\nwww AAAA 2001:db8::5",
      },
    });
    const resolver = `[::1]:${knot.endpoint.port}`;
    await using _agent = await startAgent({ ...settings("ams"), SIXSCOPE_RESOLVER_A: resolver });
    const { target, locations } = await ask(service, "/dns/www.example.test?from=ams,here");
    expect(target).toBe("www.example.test");
    expect(locations?.[0]?.result?.records?.map(({ value }) => value)).toEqual(["2001:db8::5"]);
    expect(locations?.[1]?.error?.code).toBe("RESOLVER_FAILURE");
  });

  test("a caller who leaves ends the work there, and its slot is free", async () => {
    await using agent = await startAgent({ ...settings("ams"), SIXSCOPE_MAX_PROBES: "1" });
    const leave = new AbortController();
    const path = "/mtr/::1?rounds=100&intervalMs=1000&from=ams";
    const response = await stream(service, path, leave.signal);
    const { value: first } = await readEvents(response).next();
    expect((first as SentEvent).event).toBe("round");
    expect((await ask(service, "/ping/::1?from=ams")).error?.code).toBe("TOO_MANY_PROBES");

    leave.abort();
    await agent.says("endpoint=mtr outcome=aborted");
    expect((await ask(service, "/ping/::1?count=1&from=ams")).status).toBe(200);
  });

  test("a frozen agent ends with LOCATION_TIMEOUT, and the others' results stand", async () => {
    await using agent = await startAgent(settings("ams"));
    agent.signal("SIGSTOP");
    const { status, locations } = await ask(service, "/ping/::1?count=1&from=ams,here");
    agent.signal("SIGCONT");
    expect(status).toBe(200);
    expect(
      locations?.map(({ error, result }) => error?.code ?? result?.details?.["location"]),
    ).toEqual(["LOCATION_TIMEOUT", "here"]);
    // It does not answer what nobody waits for any more, and goes on to answer.
    expect((await ask(service, "/ping/::1?count=1&from=ams")).status).toBe(200);
  });

  test("an agent that stops finishes its work, and is gone at once", async () => {
    await using agent = await startAgent(settings("ams"));
    const response = await stream(service, "/ping/::1?count=3&from=ams");
    agent.signal("SIGTERM");
    const events = await Array.fromAsync(readEvents(response));
    expect(events.map(({ event }) => event)).toEqual(["sample", "sample", "sample", "result"]);
    expect(await agent.exited).toBe(0);
    expect(await whoIsThere(service)).not.toContain("ams");
    expect((await ask(service, "/ping/::1?from=ams")).status).toBe(404);
  });

  test("two agents with one location share the work", async () => {
    await using one = await startAgent(settings("ams"));
    await using two = await startAgent(settings("ams"));
    await waitFor(service, ["ams", "here"]);
    const asked = 30;
    for (let index = 0; index < asked; index++) await ask(service, "/ping/::1?count=1&from=ams");
    const done = () =>
      [one, two].map((agent) => agent.stderr().match(/outcome=result/g)?.length ?? 0);
    while (done().reduce((a, b) => a + b) < asked) await Bun.sleep(20);
    expect(Math.min(...done())).toBeGreaterThan(0);
    expect(done().reduce((a, b) => a + b)).toBe(asked);
  });

  test("a server that is killed cuts a stream with an error, and comes back", async () => {
    await using agent = await startAgent(settings("ams"));
    await waitFor(service, ["ams", "here"]);
    const path = "/mtr/::1?rounds=100&intervalMs=1000&from=ams";
    const events: SentEvent[] = [];
    for await (const event of readEvents(await stream(service, path))) {
      if (events.push(event) === 1) await nats.kill();
    }
    expect(events.at(-1)).toMatchObject({
      event: "error",
      data: { error: { code: "LOCATION_UNAVAILABLE", details: { location: "ams" } } },
    });
    // The agent, too, does not work for what cannot be delivered.
    await agent.says("endpoint=mtr outcome=aborted");

    for (const from of ["ams", "all"]) {
      expect(await ask(service, `/ping/::1?from=${from}`)).toMatchObject({
        status: 500,
        error: { code: "LOCATION_UNAVAILABLE", details: { location: from } },
      });
    }
    expect((await ask(service, "/ping/::1?count=1")).status).toBe(200);
    expect((await ask(service, "/ping/::1?count=1&from=here")).status).toBe(200);
    expect(await whoIsThere(service)).toEqual(["here"]);
    expect((await fetch(new URL("/readyz", service.url))).status).toBe(200);

    await nats.start();
    await waitFor(service, ["ams", "here"]);
    expect((await ask(service, "/ping/::1?count=1&from=ams")).status).toBe(200);
    for (const text of [service.stderr(), agent.stderr()]) {
      expect(text.match(/msg="no connection to NATS/g)?.length).toBe(1);
      expect(text.match(/msg="connected to NATS"/g)?.length).toBe(2);
    }
  });

  test("a frozen server is a silent location", async () => {
    await using _agent = await startAgent(settings("ams"));
    await waitFor(service, ["ams", "here"]);
    nats.signal("SIGSTOP");
    const { locations } = await ask(service, "/ping/::1?count=1&from=ams,here");
    nats.signal("SIGCONT");
    expect(locations?.map(({ error }) => error?.code)).toEqual(["LOCATION_TIMEOUT", undefined]);
    while ((await ask(service, "/ping/::1?count=1&from=ams")).status !== 200) await Bun.sleep(20);
  });

  describe("foreign agents", () => {
    let foreign: NatsConnection;
    let cancelled: string[];

    beforeAll(async () => {
      foreign = await connect({ servers: [nats.url] });
      foreign.subscribe("sixscope.cancel.*", {
        callback(_, message) {
          cancelled.push(message.string());
        },
      });
    });

    afterAll(() => foreign.close());

    const say = (message: Msg, ...values: readonly unknown[]) => {
      for (const value of values) message.respond(JSON.stringify(value));
    };
    const ANSWER = { target: "::1", ip: "::1", results: [], stats: {}, details: {} };
    const failure = (code: string, details: object) => ({
      error: { code, message: "It failed.", details },
    });

    test.each<[what: string, answer: (message: Msg) => void, code: string]>([
      [
        "an older one that refuses",
        (m) => say(m, { refused: "sixscope 0.0.9 has no ping" }),
        "LOCATION_UNAVAILABLE",
      ],
      ["text that is not JSON", (m) => m.respond("hello"), "LOCATION_UNAVAILABLE"],
      ["no data", (m) => m.respond(""), "LOCATION_UNAVAILABLE"],
      ["an unknown message", (m) => say(m, { reboot: true }), "LOCATION_UNAVAILABLE"],
      ["a result of another shape", (m) => say(m, { result: ANSWER }), "LOCATION_UNAVAILABLE"],
      [
        "an event of another shape",
        (m) => say(m, { event: "sample", data: { seq: 0 } }),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an event that the endpoint has not",
        (m) => say(m, { event: "result", data: {} }),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an event with a name that all objects have",
        (m) => say(m, { event: "constructor", data: {} }),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an error code that is not known",
        (m) => say(m, failure("NO_COFFEE", {})),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an error that the endpoint has not",
        (m) => say(m, failure("UNAUTHORIZED", {})),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an error with other details",
        (m) => say(m, failure("ICMP_UNAVAILABLE", { a: 1 })),
        "LOCATION_UNAVAILABLE",
      ],
      [
        "an error",
        (m) => say(m, failure("ICMP_UNAVAILABLE", { reason: "EPERM" })),
        "ICMP_UNAVAILABLE",
      ],
      [
        "a flood",
        (m) => {
          for (let i = 0; i < 20; i++)
            m.respond(JSON.stringify({ allowSeconds: 9, ...{} }).padEnd(900_000));
        },
        "LOCATION_UNAVAILABLE",
      ],
      ["silence after a promise", (m) => say(m, { allowSeconds: 0.2 }), "LOCATION_TIMEOUT"],
    ])("%s", async (_, answer, code) => {
      cancelled = [];
      let inbox: string | undefined;
      const subscription = foreign.subscribe("sixscope.ask.odd", {
        callback(_, message) {
          inbox = message.reply;
          answer(message);
        },
      });
      await foreign.flush();
      const events = await Array.fromAsync(
        readEvents(await stream(service, "/ping/::1?count=1&from=odd,here")),
      );
      subscription.unsubscribe();
      const { locations } = (events.at(-1)?.data ?? {}) as Document;
      expect(locations?.[0]).toMatchObject({ location: "odd", error: { code } });
      // An error about "this service" or "this machine" means the agent's.
      expect(locations?.[0]?.error?.message).toContain("odd");
      expect(locations?.[1]?.result).toBeDefined();
      // It is told to stop.
      await foreign.flush();
      while (cancelled.length === 0) await Bun.sleep(10);
      expect(cancelled).toEqual([inbox ?? ""]);
    });

    test("an agent that knows fewer parameters answers what it knows", async () => {
      const { status, details, ...rest } = await ask(service, "/ping/::1?count=1");
      const asked: unknown[] = [];
      const subscription = foreign.subscribe("sixscope.ask.old", {
        callback(_, message) {
          asked.push(message.json());
          say(message, { result: { ...rest, details: { ...details, location: "fra" } } });
        },
      });
      await foreign.flush();
      const answer = await ask(service, "/ping/::1?count=4&from=old");
      await ask(service, "/ping/::1?count=3&from=old");
      subscription.unsubscribe();
      // The service names the location that it asked, whatever the agent says.
      expect(answer).toEqual({ status, ...rest, details: { ...details, location: "old" } });
      const [withDefault, other] = asked as { owner: string }[];
      expect(withDefault).toEqual({
        version: 1,
        endpoint: "ping",
        parameters: { target: "::1" },
        owner: expect.stringMatching(/^[0-9a-f]{16}$/),
        events: false,
      } as never);
      expect(other).toMatchObject({ parameters: { target: "::1", count: "3" } });
      expect(other?.owner).toBe(withDefault?.owner as string);
    });

    test.each([
      [
        "an older version",
        { version: 0, endpoint: "ping", parameters: {}, owner: "", events: false },
        "version 1",
      ],
      ["another shape", { version: 1, endpoint: "ping" }, "does not understand"],
      [
        "an unknown endpoint",
        { version: 1, endpoint: "whois", parameters: {}, owner: "", events: false },
        "has no whois",
      ],
      [
        "an endpoint that is not for others",
        { version: 1, endpoint: "getMyIp", parameters: {}, owner: "", events: false },
        "has no getMyIp",
      ],
      [
        "an unknown parameter",
        {
          version: 1,
          endpoint: "ping",
          parameters: { target: "::1", paths: "8" },
          owner: "",
          events: false,
        },
        "parameter paths",
      ],
      [
        "too many bytes",
        {
          version: 1,
          endpoint: "ping",
          parameters: { target: "x".repeat(20_000) },
          owner: "",
          events: false,
        },
        "does not understand",
      ],
    ])("an agent refuses a question with %s by name", async (_, value, reason) => {
      const reply = await foreign.request("sixscope.ask.here", JSON.stringify(value), {
        timeout: 30_000,
      });
      expect(reply.json()).toEqual({ refused: expect.stringContaining(reason) });
    });

    test("an agent cannot be made to ask others", async () => {
      const parameters = { target: "::1", from: "odd" };
      const value = { version: 1, endpoint: "ping", parameters, owner: "", events: false };
      const reply = await foreign.request("sixscope.ask.here", JSON.stringify(value), {
        timeout: 30_000,
      });
      expect(reply.json()).toMatchObject({ error: { code: "LOCATION_NOT_FOUND" } });
    });

    test("an agent answers one question for each inbox, so that each can be counted and ended", async () => {
      const parameters = { target: "::1", count: "1" };
      const value = { version: 1, endpoint: "ping", parameters, owner: "", events: false };
      const results: string[] = [];
      const { promise, resolve } = Promise.withResolvers<void>();
      const subscription = foreign.subscribe("_INBOX.twice.*", {
        callback(_, message) {
          if (!("result" in message.json<object>())) return;
          results.push(message.subject);
          if (message.subject.endsWith("last")) resolve();
        },
      });
      for (const inbox of ["same", "same", "same", "last"]) {
        foreign.publish("sixscope.ask.here", JSON.stringify(value), {
          reply: `_INBOX.twice.${inbox}`,
        });
      }
      await promise;
      subscription.unsubscribe();
      expect(results.toSorted()).toEqual(["_INBOX.twice.last", "_INBOX.twice.same"]);
    });

    test("announcements that are not valid, or too many, are not listed", async () => {
      const valid = { version: "9", families: [6], since: "2026-01-31T12:00:00Z" };
      foreign.publish("sixscope.here.one", JSON.stringify({ ...valid, families: [5] }));
      foreign.publish("sixscope.here.two", "no JSON");
      for (let index = 0; index < 1500; index++) {
        foreign.publish(`sixscope.here.n${index}`, JSON.stringify(valid));
      }
      await foreign.flush();
      while ((await whoIsThere(service)).length < 1024) await Bun.sleep(20);
      expect(await whoIsThere(service)).not.toContain("one");
      expect((await ask(service, "/ping/::1?from=all")).error?.code).toBe("INVALID_PARAMETER");
      for (let index = 0; index < 1500; index++) foreign.publish(`sixscope.here.n${index}`);
      await foreign.flush();
      while ((await whoIsThere(service)).includes("n0")) await Bun.sleep(20);
    });
  });
});

dnsTest("an answer that the server's max_payload forbids is refused by name", async () => {
  const records = Array.from({ length: 100 }, (_, index) => `t TXT ${"x".repeat(180)}${index}`);
  await using knot = await startKnot({
    zones: { "example.test": `$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\n${records.join("\n")}\n` },
  });
  await using nats = await startNats("max_payload: 16384");
  const settings = {
    ...SETTINGS,
    SIXSCOPE_NATS_URL: nats.url,
    SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
  };
  await using service = await startService(settings);
  await using _agent = await startAgent({ ...settings, SIXSCOPE_LOCATION: "ams" });
  await waitFor(service, ["ams"]);
  expect((await ask(service, "/dns/example.test?type=NS&from=ams")).status).toBe(200);
  expect((await ask(service, "/dns/t.example.test?type=TXT")).records).toHaveLength(100);
  expect(await ask(service, "/dns/t.example.test?type=TXT&from=ams")).toMatchObject({
    status: 500,
    error: {
      code: "LOCATION_UNAVAILABLE",
      details: { reason: expect.stringContaining("max_payload") },
    },
  });
});

testWith(missing)(
  "a server whose max_payload is too small for a question is not used",
  async () => {
    await using nats = await startNats("max_payload: 100");
    await using service = await startService({ ...SETTINGS, SIXSCOPE_NATS_URL: nats.url });
    await service.says("max_payload of the server is less than 16384 bytes");
    expect((await ask(service, "/ping/::1?from=ams")).error?.code).toBe("LOCATION_UNAVAILABLE");
  },
);

test("only one file loads the client of NATS, when it connects", async () => {
  const importers: string[] = [];
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  for (const file of new Glob("src/**/*.ts").scanSync(".")) {
    for (const { path, kind } of transpiler.scanImports(await Bun.file(file).text())) {
      if (path.startsWith("@nats-io/")) importers.push(`${file} ${kind}`);
    }
  }
  expect([...new Set(importers)]).toEqual(["src/locations/link.ts dynamic-import"]);
});
