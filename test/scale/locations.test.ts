/** Instances and agents over a real NATS server: many places, one answer. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer } from "node:net";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { Glob } from "bun";
import { startKnot } from "../lab/dns-server.ts";
import { readEvents, type SentEvent } from "../lab/events.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { startKernelChain } from "../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { requireGoodMetrics, value } from "../lab/metrics.ts";
import { type NatsServer, startAgent, startNats } from "../lab/nats.ts";
import { freePort } from "../lab/port.ts";
import { type Service, startService } from "../lab/service.ts";
import { DATED } from "../tools/documents.ts";

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
  return locations.flatMap((row) =>
    (row as object as { state: string }).state === "up" ? row.location : [],
  );
}

/** The row of a location in `/locations`. */
async function rowOf(service: Service, name: string) {
  const { locations = [] } = await ask(service, "/locations");
  const rows = locations as readonly {
    readonly location: string;
    readonly state?: string;
    readonly agents?: number;
  }[];
  return rows.find(({ location }) => location === name);
}

/** Waits until these are there; one that was killed may be there for a while. */
async function waitFor(service: Service, names: readonly string[]): Promise<void> {
  const isThere = async () => new Set(names).isSubsetOf(new Set(await whoIsThere(service)));
  while (!(await isThere())) await Bun.sleep(100);
}

/** Starts an agent that the service has not heard of, and waits until it has. */
async function startListed(
  service: Service,
  settings: Readonly<Record<string, string>>,
): ReturnType<typeof startAgent> {
  const came = () =>
    service.stderr().split(`"agent came" location=${settings["SIXSCOPE_LOCATION"]}`);
  const before = came().length;
  const agent = await startAgent(settings);
  while (came().length === before) await Bun.sleep(20);
  return agent;
}

/** Passes connections on to a port of the loopback address, and what comes back in pieces, with a pause after each. */
async function narrowPipe(port: number, pieceBytes: number, pauseMs: number) {
  const pipe = createServer((client) => {
    const server = createConnection(port, "::1");
    client.pipe(server);
    void (async () => {
      for await (const chunk of server as AsyncIterable<Buffer>) {
        for (let at = 0; at < chunk.length; at += pieceBytes) {
          client.write(chunk.subarray(at, at + pieceBytes));
          await Bun.sleep((pauseMs * Math.min(chunk.length, pieceBytes)) / pieceBytes);
        }
      }
    })().catch(() => {});
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("close", () => server.destroy());
  }).listen(0, "::1");
  await once(pipe, "listening");
  const url = `nats://[::1]:${(pipe.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => void pipe.close() };
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
          {
            ...SETTINGS,
            SIXSCOPE_NATS_URL: url,
            SIXSCOPE_LOCATION: location,
            SIXSCOPE_LOCATION_TAGS: `eu,${location === "ams" ? "nl" : "far"}`,
          },
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
    const { locations, details, ...rest } = await ask(
      service,
      `/traceroute/${target}?from=zrh,ams,fra`,
    );
    expect(details?.["matching"]).toBe(3);

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

  test("list themselves with version, families, tags and start", async () => {
    const { locations } = await ask(service, "/locations");
    for (const each of locations ?? []) {
      expect(each).toEqual({
        location: expect.any(String),
        state: "up",
        agents: 1,
        versions: [expect.stringMatching(/^\d+\.\d+\.\d+$/)],
        families: [6],
        since: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        tags: [each.location === "ams" ? "nl" : "far", "eu"].sort(),
      } as never);
    }
    expect(locations?.length).toBe(3);
  });

  test("are chosen by a tag, up to the limit, and compared first", async () => {
    const path = `/traceroute/${target}?names=no&from=far`;
    const answer = await ask(service, path);
    expect(Object.keys(answer).slice(1)).toEqual(["target", "details", "locations"]);
    const row = { verdict: "reached", error: null, loss: null, median: expect.any(Number) };
    expect(answer.details).toEqual({
      summary: [
        { ...row, location: "fra", hops: 3, mtu: null },
        { ...row, location: "zrh", hops: 2, mtu: null },
      ],
      matching: 2,
    });
    const one = await ask(service, `${path}&limit=1`);
    expect([one.locations?.length, one.details?.["matching"]]).toEqual([1, 2]);
    const both = await ask(service, `/traceroute/${target}?names=no&from=nl,far&limit=2`);
    expect(both.locations?.map(({ location }) => location)).toContain("ams");
    expect((await ask(service, `${path}&limit=33`)).error?.code).toBe("INVALID_PARAMETER");
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
    const summaries = events.filter(({ event }) => event === "summary").map(({ data }) => data);
    expect(summaries[0]).toMatchObject({
      matching: 3,
      summary: [{ location: "ams", verdict: null }, {}, {}],
    });
    const result = events.at(-1);
    expect(result?.event).toBe("result");
    const { locations, details } = (result?.data ?? {}) as Document;
    expect(summaries.at(-1)).toEqual(details as object);
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
    nats = await startNats("max_payload: 2MB");
    const policy = { SIXSCOPE_TARGETS_DENY: "2001:db8:bad::/48,192.0.2.0/24" };
    const watched = {
      SIXSCOPE_LOCATIONS_EXPECTED: "bru,here",
      SIXSCOPE_METRICS_LISTEN: "[::1]:0",
    };
    service = await startService({ ...settings("here"), ...policy, ...watched });
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

  test("the log of an agent has the id of the request, and the target if the operator wants it", async () => {
    const environment = { ...settings("logs"), SIXSCOPE_LOG_TARGETS: "yes" };
    await using agent = await startService(environment);
    await waitFor(service, ["here", "logs"]);
    const headers = { "X-API-Key": service.key };
    const url = `${service.url}/ping/::1?count=1&from=logs`;
    const { headers: answered } = await fetch(url, { headers });
    await agent.says(`requestId=${answered.get("x-request-id")} target=::1 ip=::1\n`);
    expect(service.stderr()).not.toContain("target=");
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
    await using _agent = await startListed(service, {
      ...settings("ams"),
      SIXSCOPE_TARGETS_DENY: "::1/128",
    });
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

  dnsTest(
    "a service's target policy goes with its question, also for what a name resolves to",
    async () => {
      const zone = "@ 60 SOA ns a 1 2 3 4 5\n@ NS ns\nns AAAA ::1\nbad AAAA 2001:db8:bad::1";
      await using knot = await startKnot({ zones: { "example.test": zone } });
      const resolver = `[::1]:${knot.endpoint.port}`;
      await using _agent = await startListed(service, {
        ...settings("ams"),
        SIXSCOPE_RESOLVER_A: resolver,
      });
      for (const target of ["2001:db8:bad::1", "bad.example.test", "64:ff9b::c000:201"]) {
        expect(await ask(service, `/ping/${target}?count=1&from=ams`)).toMatchObject({
          status: 400,
          error: { code: "TARGET_NOT_ALLOWED", details: { target } },
        });
      }
    },
  );

  dnsTest("an agent asks its own resolver", async () => {
    await using knot = await startKnot({
      zones: {
        "example.test": "@ 60 SOA ns a 1 2 3 4 5\n@ NS ns\nns AAAA ::1\nwww AAAA 2001:db8::5",
      },
    });
    const resolver = `[::1]:${knot.endpoint.port}`;
    await using _agent = await startListed(service, {
      ...settings("ams"),
      SIXSCOPE_RESOLVER_A: resolver,
    });
    const { target, locations } = await ask(service, "/dns/www.example.test?from=ams,here");
    expect(target).toBe("www.example.test");
    expect(locations?.[0]?.result?.records?.map(({ value }) => value)).toEqual(["2001:db8::5"]);
    expect(locations?.[1]?.error?.code).toBe("RESOLVER_FAILURE");
  });

  test("a caller who leaves ends the work there, and its slot is free", async () => {
    await using agent = await startListed(service, {
      ...settings("ams"),
      SIXSCOPE_MAX_PROBES: "1",
    });
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
    await using agent = await startListed(service, settings("ams"));
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
    // Those of other tests were killed, and are known for a while.
    await using agent = await startListed(service, settings("bru"));
    await using other = await startListed(service, settings("bru"));
    const agents = async () => (await rowOf(service, "bru"))?.agents;
    expect(await agents()).toBe(2);
    other.signal("SIGTERM");
    await other.exited;
    while ((await agents()) !== 1) await Bun.sleep(20);
    expect((await rowOf(service, "bru"))?.state).toBe("up");
    const response = await stream(service, "/ping/::1?count=3&from=bru");
    agent.signal("SIGTERM");
    const events = await Array.fromAsync(readEvents(response));
    expect(events.map(({ event }) => event)).toEqual(["sample", "sample", "sample", "result"]);
    expect(await agent.exited).toBe(0);
    while ((await agents()) !== 0) await Bun.sleep(20);
    expect(await rowOf(service, "bru")).toMatchObject({ state: "down", agents: 0, since: null });
    expect((await ask(service, "/ping/::1?from=bru")).status).toBe(404);
    await service.says('msg="agent left" location=bru agents=1');
    await service.says('msg="agent left" location=bru agents=0');
    expect(await value(service, "sixscope_location_up", { location: "bru" })).toBe(0);
    expect(await value(service, "sixscope_location_up", { location: "here" })).toBe(1);
  });

  test("an agent that is killed in the middle of a run is told, long before the run would have ended", async () => {
    await using agent = await startListed(service, settings("cdg"));
    const path = "/mtr/::1?rounds=100&intervalMs=1000&from=cdg";
    const events: SentEvent[] = [];
    for await (const event of readEvents(await stream(service, path))) {
      if (events.push(event) === 1) agent.signal("SIGKILL");
    }
    expect(events.length).toBeLessThan(50);
    expect(events.at(-1)).toMatchObject({
      event: "error",
      data: { error: { code: "LOCATION_TIMEOUT", details: { location: "cdg" } } },
    });
    // The next question shows that nobody is there, long before its silence does.
    expect((await ask(service, path)).status).toBe(404);
    while ((await rowOf(service, "cdg")) !== undefined) await Bun.sleep(100);
    await service.says('msg="agent lost" location=cdg agents=0');
  });

  test("an agent serves its health and its metrics, and nothing of HTTP else", async () => {
    const port = await freePort();
    const listen = { SIXSCOPE_METRICS_LISTEN: `[::1]:${port}` };
    await using agent = await startListed(service, { ...settings("hel"), ...listen });
    const get = (path: string) => fetch(`http://[::1]:${port}${path}`);
    expect((await get("/healthz")).status).toBe(200);
    expect((await get("/api/v1/myip")).status).toBe(404);
    await waitFor(service, ["hel"]);
    await ask(service, "/ping/::1?count=1&from=hel");
    const metrics = await requireGoodMetrics(await (await get("/metrics")).text());
    expect(metrics).toContain("\nsixscope_nats_connected 1\n");
    expect(metrics).toContain("\nsixscope_probes_answered_total 1\n");
    expect(metrics).not.toContain("sixscope_keys");
    const keys = { SIXSCOPE_KEYS_FILE: agent.keysFile };
    const doctor = await sixscopeHere(["doctor"], { ...settings("hel"), ...listen, ...keys });
    expect(doctor.stdout).toMatch(/^ok +ask the process .*: agent \S+ \(pid \d+\).* places: hel$/m);
    expect(doctor.stdout).toMatch(/^ok +connect to NATS .*: it accepts us$/m);
    // An agent reads no keys.
    expect(doctor.stdout).not.toMatch(/API key|keys file/);
    agent.signal("SIGTERM");
    expect(await agent.exited).toBe(0);
  });

  test("/locations is built once for each change, with an ETag, and compressed", async () => {
    const url = `${service.url}/locations`;
    const first = await fetch(url);
    const etag = first.headers.get("etag") ?? "";
    expect([first.status, first.headers.get("content-encoding")]).toEqual([200, "gzip"]);
    expect((await fetch(url, { headers: { "If-None-Match": etag } })).status).toBe(304);
    await using _agent = await startListed(service, settings("dub"));
    await waitFor(service, ["dub"]);
    expect((await fetch(url, { headers: { "If-None-Match": etag } })).status).toBe(200);
  });

  test("an agent that stops before a run has ended says so", async () => {
    const grace = { SIXSCOPE_STOP_GRACE_MS: "0" };
    await using agent = await startListed(service, { ...settings("ams"), ...grace });
    const path = "/mtr/::1?rounds=100&intervalMs=1000&from=ams";
    const events: SentEvent[] = [];
    for await (const event of readEvents(await stream(service, path))) {
      if (events.push(event) === 1) agent.signal("SIGTERM");
    }
    const reason = "its agent stopped before the run had ended";
    expect(events.at(-1)).toMatchObject({
      event: "error",
      data: { error: { code: "LOCATION_UNAVAILABLE", details: { location: "ams", reason } } },
    });
  });

  test("two agents with one location share the work", async () => {
    await using one = await startListed(service, settings("ams"));
    await using two = await startListed(service, settings("ams"));
    await waitFor(service, ["ams", "here"]);
    // That the server chooses one of them each time has a chance of 2e-12.
    const asked = 40;
    for (let index = 0; index < asked; index++) await ask(service, "/ping/::1?count=1&from=ams");
    const done = () =>
      [one, two].map((agent) => agent.stderr().match(/outcome=result/g)?.length ?? 0);
    while (done().reduce((a, b) => a + b) < asked) await Bun.sleep(20);
    expect(Math.min(...done())).toBeGreaterThan(0);
    expect(done().reduce((a, b) => a + b)).toBe(asked);
  });

  test("a server that is killed cuts a stream with an error, and comes back", async () => {
    await using agent = await startListed(service, settings("ams"));
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
    for (const { stderr } of [service, agent]) {
      const count = (what: RegExp) => stderr().match(what)?.length ?? 0;
      while (count(/msg="connected to NATS"/g) < 2) await Bun.sleep(20);
      expect(count(/msg="no connection to NATS/g)).toBe(1);
      expect(count(/msg="connected to NATS"/g)).toBe(2);
    }
  });

  test("an agent is not silent whose answer comes behind much that others send", async () => {
    await using _agent = await startAgent(settings("ams"));
    // What the server sends to this service waits for its turn, 100 kB every 0.1 s.
    using pipe = await narrowPipe(nats.port, 100_000, 100);
    await using narrow = await startService({ ...SETTINGS, SIXSCOPE_NATS_URL: pipe.url });
    await waitFor(narrow, ["ams"]);
    const others = await connect({ servers: [nats.url] });
    for (let sent = 0; sent < 45; sent++)
      others.publish("sixscope.here.evil.00000000", "x".repeat(100_000));
    await others.flush();
    expect(await ask(narrow, "/ping/::1?count=1&from=ams")).toMatchObject({ status: 200 });
    await others.close();
  });

  test("a frozen server is a silent location", async () => {
    await using _agent = await startAgent(settings("ams"));
    await waitFor(service, ["ams", "here"]);
    await nats.freeze();
    const { locations } = await ask(service, "/ping/::1?count=1&from=ams,here");
    nats.signal("SIGCONT");
    expect(locations?.map(({ error }) => error?.code)).toEqual(["LOCATION_TIMEOUT", undefined]);
    while ((await ask(service, "/ping/::1?count=1&from=ams")).status !== 200) await Bun.sleep(20);
  });

  describe("foreign agents", () => {
    let foreign: NatsConnection;
    const cancelled: string[] = [];

    beforeAll(async () => {
      foreign = await connect({ servers: [nats.url] });
      foreign.subscribe("sixscope.cancel.*.*", {
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

    const SAMPLE = { seq: 1, ttl: 64, rtt: 1 };
    const STATS = { transmitted: 1, received: 1, loss: 0, min: 1, avg: 1, max: 1 };
    const VERDICT = { code: "no-loss", text: "The target replied to the request." };
    const DETAILS = {
      ...DATED,
      verdict: VERDICT,
      source: "::1",
      timeout: 9,
      lost: [],
      duplicates: 0,
      late: 0,
    };
    /** An answer to a ping with one request. */
    const GOOD = { target: "::1", ip: "::1", results: [SAMPLE], stats: STATS, details: DETAILS };
    const REFUSED = { target: "::1", ip: "::1", type: "Loopback" };

    test.each<[what: string, reply: object | string, reason: string | null]>([
      ["what was asked", { result: GOOD }, null],
      ["another target", { result: { ...GOOD, target: "::2" } }, "target differs"],
      ["another address", { result: { ...GOOD, ip: "::2" } }, "ip differs"],
      ["no address", { result: { ...GOOD, ip: "here" } }, "at ip"],
      [
        "text in place of an address",
        { result: { ...GOOD, details: { ...DETAILS, source: "<b>" } } },
        "at details.source",
      ],
      [
        "more requests",
        { result: { ...GOOD, stats: { ...STATS, transmitted: 2 } } },
        "transmitted differs",
      ],
      ["a later request", { result: { ...GOOD, results: [{ ...SAMPLE, seq: 2 }] } }, "seq differs"],
      ["more results", { result: { ...GOOD, results: [SAMPLE, SAMPLE] } }, "results differs"],
      [
        "an event of a later request",
        { event: "sample", data: { ...SAMPLE, seq: 2 } },
        "seq differs",
      ],
      ["a huge number", { event: "sample", data: { ...SAMPLE, seq: 1e308 } }, "at seq"],
      [
        "an error about another target",
        failure("TARGET_NOT_ALLOWED", { ...REFUSED, target: "::2" }),
        "target differs",
      ],
      [
        "an error about another address",
        failure("TARGET_NOT_ALLOWED", { ...REFUSED, ip: "::2" }),
        "ip differs",
      ],
      [
        "an error about another name",
        failure("INVALID_ADDRESS", { address: "::2" }),
        "address differs",
      ],
      [
        "a field that all objects have",
        { result: { ...GOOD, ...JSON.parse('{"__proto__":{"a":1}}') } },
        null,
      ],
      ["deep nesting", `{"result":${"[".repeat(99_999)}${"]".repeat(99_999)}}`, "not valid"],
    ])("an answer about %s", async (_, reply, reason) => {
      const subscription = foreign.subscribe("sixscope.ask.odd.*", {
        callback: (_, message) =>
          void message.respond(typeof reply === "string" ? reply : JSON.stringify(reply)),
      });
      await foreign.flush();
      const answer = await ask(service, "/ping/::1?count=1&from=odd");
      subscription.unsubscribe();
      expect(Object.hasOwn(answer, "__proto__")).toBe(false);
      if (reason === null) expect(answer).toMatchObject({ status: 200, results: [SAMPLE] });
      else {
        expect(answer.error?.code).toBe("LOCATION_UNAVAILABLE");
        expect(String(answer.error?.details["reason"])).toContain(reason);
      }
    });

    test("fields that only a newer agent knows are left out", async () => {
      const newer = { newer: [1] };
      const sample = { ...SAMPLE, ...newer };
      const details = { ...DETAILS, verdict: { ...VERDICT, ...newer }, ...newer };
      const subscription = foreign.subscribe("sixscope.ask.odd.*", {
        callback: (_, message) =>
          say(
            message,
            { event: "sample", data: sample },
            { result: { ...GOOD, results: [sample], details, ...newer } },
          ),
      });
      await foreign.flush();
      const path = "/ping/::1?count=1&from=odd";
      const events = await Array.fromAsync(readEvents(await stream(service, path)));
      subscription.unsubscribe();
      const location = "odd";
      expect<unknown>(events.map(({ data }) => data)).toEqual([
        { ...SAMPLE, location },
        { ...GOOD, details: { ...DETAILS, location } },
      ]);
    });

    test("texts of an agent are safe to print, but for what the caller sent", async () => {
      const target = "a\u00adb\u2028.test";
      const odd = "\u001b[2J\u2028\u2029\u202e\u0000ok";
      const replies = [
        {
          error: {
            code: "INVALID_HOSTNAME",
            message: odd,
            details: { hostname: target, reason: odd },
          },
        },
        { refused: odd },
      ];
      const subscription = foreign.subscribe("sixscope.ask.odd.*", {
        callback: (_, message) => say(message, replies.shift()),
      });
      await foreign.flush();
      const path = `/ping/${encodeURIComponent(target)}?count=1&from=odd`;
      const [failed, refused] = [await ask(service, path), await ask(service, path)];
      subscription.unsubscribe();
      const safe = `\ufffd[2J${"\ufffd".repeat(4)}ok`;
      expect(failed.error).toEqual({
        code: "INVALID_HOSTNAME",
        message: safe,
        details: { hostname: target, reason: safe },
      });
      expect(refused.error?.details).toEqual({ location: "odd", reason: safe });
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
          for (let i = 0; i < 20; i++) m.respond(JSON.stringify({ alive: true }).padEnd(900_000));
        },
        "LOCATION_UNAVAILABLE",
      ],
      [
        "more replies than an agent may send",
        (m) => {
          for (let i = 0; i < 1001; i++) say(m, { alive: true });
        },
        "LOCATION_UNAVAILABLE",
      ],
      [
        "one reply that is too large",
        (m) => say(m, { refused: "x", more: "x".repeat(1_048_570) }),
        "LOCATION_UNAVAILABLE",
      ],
      ["silence after a sign of life", (m) => say(m, { alive: true }), "LOCATION_TIMEOUT"],
    ])("%s", async (_, answer, code) => {
      let token: string | undefined;
      const subscription = foreign.subscribe("sixscope.ask.odd.*", {
        callback(_, message) {
          token = message.json<{ token: string }>().token;
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
      // The word to stop of a run before may come as late as now.
      const own = () => cancelled.filter((one) => one === token);
      while (own().length === 0) await Bun.sleep(10);
      expect(own()).toHaveLength(1);
    });

    test("an agent that knows fewer parameters answers what it knows", async () => {
      const { status, details, ...rest } = await ask(service, "/ping/::1");
      const asked: unknown[] = [];
      const subscription = foreign.subscribe("sixscope.ask.old.*", {
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
        version: 4,
        endpoint: "ping",
        parameters: { target: "::1" },
        id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        owner: expect.stringMatching(/^[0-9a-f]{16}$/),
        token: expect.stringMatching(/^[0-9a-f-]{36}$/),
        targets: { mode: "any", allow: [], deny: ["2001:db8:bad::/48", "192.0.2.0/24"] },
        events: false,
      } as never);
      expect(other).toMatchObject({ parameters: { target: "::1", count: "3" } });
      expect(other?.owner).toBe(withDefault?.owner as string);
    });

    const QUESTION = {
      version: 4,
      endpoint: "ping",
      parameters: { target: "::1", count: "1" } as Record<string, string>,
      owner: "0123456789abcdef",
      targets: { mode: "any", allow: [] as string[], deny: [] as string[] },
      events: false,
    };
    const token = () => crypto.randomUUID();
    /** Asks an agent, and returns what ends its answer. */
    const request = async (value: object) => {
      const { promise, resolve } = Promise.withResolvers<object>();
      const inbox = `_INBOX.foreign.${token()}`;
      const subscription = foreign.subscribe(inbox, {
        callback(_, message) {
          const reply = message.json<object>();
          if (!("alive" in reply)) resolve(reply);
        },
      });
      foreign.publish("sixscope.ask.here.foreign", JSON.stringify(value), { reply: inbox });
      return await promise.finally(() => subscription.unsubscribe());
    };

    test.each<[what: string, change: object, reason: string]>([
      ["an older version", { version: 3 }, "version 4"],
      ["another shape", { parameters: undefined }, "does not understand"],
      ["no token", { token: undefined }, "does not understand"],
      ["a token that can be guessed", { token: "1" }, "does not understand"],
      ["an owner of odd characters", { owner: "x/\u0000\n*>. ".repeat(8) }, "does not understand"],
      ["no policy", { targets: undefined }, "does not understand"],
      [
        "a policy that is not one",
        { targets: { ...QUESTION.targets, deny: ["2001:db8::1/32"] } },
        "does not understand",
      ],
      ["an unknown endpoint", { endpoint: "whois" }, "has no whois"],
      ["an endpoint that is not for others", { endpoint: "getMyIp" }, "has no getMyIp"],
      ["an unknown parameter", { parameters: { target: "::1", pths: "8" } }, "parameter pths"],
      ["too many bytes", { parameters: { target: "x".repeat(70_000) } }, "does not understand"],
    ])("an agent refuses a question with %s by name", async (_, change, reason) => {
      const reply = await request({ ...QUESTION, token: token(), ...change });
      expect(reply).toEqual({ refused: expect.stringContaining(reason) } as never);
    });

    test("an agent cannot be made to ask others", async () => {
      const parameters = { target: "::1", from: "odd" };
      const reply = await request({ ...QUESTION, token: token(), parameters });
      expect(reply).toMatchObject({ error: { code: "LOCATION_NOT_FOUND" } });
    });

    test.each<[what: string, targets: Partial<typeof QUESTION.targets>, code: string | undefined]>([
      ["denies", { deny: ["::1/128"] }, "TARGET_NOT_ALLOWED"],
      ["allows only global targets", { mode: "global" }, "TARGET_NOT_ALLOWED"],
      ["allows it", { mode: "global", allow: ["::1/128"] }, undefined],
    ])("a service whose policy %s decides too", async (_, targets, code) => {
      const value = { ...QUESTION, token: token(), targets: { ...QUESTION.targets, ...targets } };
      const reply = (await request(value)) as { error?: { code: string } };
      expect(reply.error?.code).toBe(code as string);
    });

    test("an agent answers below the name of the service that asks, and nowhere else", async () => {
      const heard: string[] = [];
      foreign.subscribe("sixscope.>", { callback: (_, { subject }) => void heard.push(subject) });
      foreign.subscribe("elsewhere", { callback: (_, { subject }) => void heard.push(subject) });
      foreign.subscribe("_INBOX.other.*", {
        callback: (_, { subject }) => void heard.push(subject),
      });
      const REPLIES = [
        "sixscope.here.victim.00000000",
        "sixscope.cancel.here.other",
        "elsewhere",
        // Another service's.
        "_INBOX.other.run",
        "_INBOX.foreign",
      ];
      for (const reply of REPLIES) {
        const value = JSON.stringify({ ...QUESTION, token: token() });
        foreign.publish("sixscope.ask.here.foreign", value, { reply });
      }
      // Its answer comes when those before it are answered.
      await request({ ...QUESTION, token: token() });
      expect(
        heard.filter((subject) => !/\.(ask\.here\.foreign|here\.here\.\w+)$/.test(subject)),
      ).toEqual([]);
    });

    test("a run ends with its token and with nothing else, and says so", async () => {
      const secret = token();
      const parameters = { target: "::1", rounds: "100", intervalMs: "1000" };
      const value = { ...QUESTION, endpoint: "mtr", parameters, token: secret, events: true };
      const inbox = "_INBOX.foreign.run";
      const said: object[] = [];
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      const subscription = foreign.subscribe(inbox, {
        callback(_, message) {
          const reply = message.json<object>();
          said.push(reply);
          if ("event" in reply) begin();
          if (!("event" in reply || "alive" in reply)) end();
        },
      });
      foreign.publish("sixscope.ask.here.foreign", JSON.stringify(value), { reply: inbox });
      await begun;
      for (const guess of [
        inbox,
        "",
        "*",
        token(),
        secret.toUpperCase(),
        `${secret} `,
        "x".repeat(9999),
      ]) {
        foreign.publish("sixscope.cancel.here.foreign", guess);
      }
      // The same token again would be a run that nobody can end alone.
      foreign.publish("sixscope.ask.here.foreign", JSON.stringify(value), {
        reply: "_INBOX.foreign.two",
      });
      await request({ ...QUESTION, token: token() });
      expect(said.filter((reply) => "refused" in reply)).toEqual([]);
      foreign.publish("sixscope.cancel.here.foreign", secret);
      await ended;
      subscription.unsubscribe();
      expect(said.at(-1)).toEqual({ refused: "it was told to end the run" });
    });

    test("announcements that are not valid are not listed", async () => {
      const good = { version: "9", families: [6], since: "2026-01-31T12:00:00Z", tags: [] };
      const odd = [
        ["one", { ...good, families: [5] }],
        ["two", "no JSON"],
        ["three", { ...good, version: "9\u2028" }],
        ["four", { ...good, families: [6, 6] }],
        ["five", { ...good, more: "x".repeat(2000) }],
        ["ten", { ...good, tags: ["EU"] }],
        ["eleven", {}],
        ["Six", good],
        ["all", good],
        ["<b>", good],
        ["-", good],
        ["x\u2028", good],
        ["x".repeat(33), good],
      ] as const;
      const here = (name: string, agent = "00000000") => `sixscope.here.${name}.${agent}`;
      for (const [name, value] of odd) foreign.publish(here(name), JSON.stringify(value));
      foreign.publish(here("nine", "ams"), JSON.stringify(good));
      foreign.publish(here("good"), JSON.stringify(good));
      await waitFor(service, ["good"]);
      foreign.publish(here("good"));
      while ((await whoIsThere(service)).includes("good")) await Bun.sleep(20);
      const listed = await whoIsThere(service);
      const names = ["nine", ...odd.map(([name]) => name as string)];
      expect(names.filter((name) => listed.includes(name))).toEqual([]);
    });
  });
});

dnsTest("an answer that the server's max_payload forbids is refused by name", async () => {
  const records = Array.from({ length: 240 }, (_, index) => `t TXT ${"x".repeat(235)}${index}`);
  await using knot = await startKnot({
    zones: { "example.test": `$TTL 60\n@ SOA ns a 1 2 3 4 5\n@ NS ns\n${records.join("\n")}\n` },
  });
  await using nats = await startNats("max_payload: 65536");
  const settings = {
    ...SETTINGS,
    SIXSCOPE_NATS_URL: nats.url,
    SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
  };
  await using service = await startService(settings);
  await using _agent = await startAgent({ ...settings, SIXSCOPE_LOCATION: "ams" });
  await waitFor(service, ["ams"]);
  expect((await ask(service, "/dns/example.test?type=NS&from=ams")).status).toBe(200);
  expect((await ask(service, "/dns/t.example.test?type=TXT")).records).toHaveLength(240);
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
    await service.says("max_payload of the server is less than 65536 bytes");
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
