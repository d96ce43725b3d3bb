/** A look at this machine that several callers share, and the interfaces that they can name. */
import { beforeAll, expect, test } from "bun:test";
import { ApiError } from "../../../src/api/errors.ts";
import { readTexts } from "../../../src/api/parameters.ts";
import { parseConfig } from "../../../src/config/settings.ts";
import type { DnsClient } from "../../../src/dns/client.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { here } from "../../../src/tools/here/endpoint.ts";
import EXAMPLE from "../../../src/tools/here/example.json" with { type: "json" };
import type { HereResult } from "../../../src/tools/here/result.ts";
import type { Services } from "../../../src/tools/services.ts";
import { labMissing, testWith } from "../../lab/lab.ts";
import { runIp } from "../../lab/run.ts";

const labTest = testWith(labMissing);

beforeAll(async () => {
  if (labMissing === null) await runIp(["link add left type veth peer name right"]);
});

type Look = NonNullable<Services["look"]>;

const { details, ...tables } = EXAMPLE;
const { verdict } = details;
const FOUND = { ...tables, verdict } as Awaited<ReturnType<Look>>;

/** Services whose looks end when the test says so. */
function setUp() {
  const looks: { readonly wanted: string | null; readonly signal: AbortSignal; end(): void }[] = [];
  const look: Look = async (_servers, wanted, _prober, signal, onStep) => {
    onStep?.("begin", { name: "kernel" });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => reject(signal.reason));
    looks.push({ wanted, signal, end: resolve });
    await promise;
    onStep?.("step", FOUND.steps[0] ?? {});
    return FOUND;
  };
  const resolver = {} as DnsClient;
  const services: Services = {
    config: parseConfig({}),
    resolvers: { resolver_a: resolver, resolver_b: resolver, resolver_c: resolver },
    icmp: { unavailable: "socket: EPERM" },
    gate: new Gate(),
    probeSlots: new FairSlots(1),
    querySlots: new FairSlots(1),
    look,
  };
  const ask = (client: string, wanted?: string, signal = new AbortController().signal) => {
    const events: string[] = [];
    const onEvent = (name: string, data: object) =>
      events.push(`${name} ${Object.values(data)[0]}`);
    const texts: Record<string, string> = wanted === undefined ? {} : { interface: wanted };
    const call = { signal, address: null, client, allowSeconds() {}, onEvent };
    const handled = async () =>
      (await here.handle(readTexts(here.parameters, texts), call, services)) as HereResult;
    return { events, result: handled() };
  };
  return { looks, ask };
}

/** Waits for what the promises that are settled have led to. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("64 callers at once share one look: its document, and all of its events", async () => {
  const { looks, ask } = setUp();
  const early = Array.from({ length: 63 }, (_, at) => ask(`client ${at}`));
  await turn();
  const late = ask("late");
  await turn();
  expect(looks.map(({ wanted }) => wanted)).toEqual([null]);
  looks[0]?.end();
  const results = await Promise.all([...early, late].map(({ result }) => result));
  expect(new Set(results).size).toBe(1);
  expect(results[0]).toMatchObject({ steps: FOUND.steps, details: { verdict } });
  for (const { events } of [...early, late])
    expect(events).toEqual(["begin kernel", "step kernel"]);
  const next = ask("next");
  await turn();
  expect(looks).toHaveLength(2);
  looks[1]?.end();
  await next.result;
});

test("a look goes on while one caller waits for it, and ends with the last", async () => {
  const { looks, ask } = setUp();
  const [first, second] = [new AbortController(), new AbortController()];
  const asked = [first, second].map(({ signal }) => ask("a", undefined, signal).result);
  await turn();
  first.abort();
  expect(asked[0]).rejects.toThrow("the client disconnected");
  await turn();
  expect(looks[0]?.signal.aborted).toBe(false);
  second.abort();
  expect(asked[1]).rejects.toThrow("the client disconnected");
  await turn();
  expect(looks[0]?.signal.aborted).toBe(true);
});

labTest("of looks at several interfaces, a client has one, and its next one waits", async () => {
  const { looks, ask } = setUp();
  const first = ask("one");
  const waiting = ask("one", "left");
  await turn();
  const other = ask("other", "right");
  await turn();
  expect(looks.map(({ wanted }) => wanted)).toEqual([null, "right"]);
  expect([waiting.events, other.events]).toEqual([["waiting slot"], ["begin kernel"]]);
  looks[0]?.end();
  await first.result;
  await turn();
  expect(looks.map(({ wanted }) => wanted)).toEqual([null, "right", "left"]);
  for (const { end } of looks) end();
  await Promise.all([waiting.result, other.result]);
});

labTest.each([
  ["of no interface", "nowhere0"],
  ["empty", ""],
  ["that is a path", "../x"],
  ["that leads to settings", "../../all"],
  ["of the settings of all", "all"],
  ["of loopback", "lo"],
  ["of 200 characters", "x".repeat(200)],
  ["with control characters", "left\u0000\u001b[2J\n"],
  ["of an emoji", "🛰️"],
  ["in other letters", "LEFT"],
])("a name %s is INVALID_PARAMETER, with those that there are", async (_, name) => {
  const { looks, ask } = setUp();
  const error = await ask("a", name).result.catch((error: unknown) => error);
  if (!(error instanceof ApiError)) throw error;
  const { parameter, value, allowed } = error.body.error.details as Record<string, unknown>;
  expect([error.code, parameter, value]).toEqual(["INVALID_PARAMETER", "interface", name]);
  expect(allowed).toEqual(expect.arrayContaining(["left", "right"]));
  expect(looks).toEqual([]);
});
