/** The places of an agent, and how much it answers, without a NATS server. */
import { expect, test } from "bun:test";
import { z } from "zod";
import type { Call } from "../../src/api/endpoint.ts";
import { createAgent } from "../../src/locations/agent.ts";
import { MESSAGE_VERSION } from "../../src/locations/protocol.ts";
import { replyReader } from "../../src/locations/replies.ts";
import { createBudget } from "../../src/tools/budget.ts";
import { createLog } from "../../src/util/log.ts";

const LOG = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

const TARGETS = { mode: "any", allow: [], deny: [] };

/** An agent with one endpoint, and the function that it is asked with. */
function agentWith(endpoint: { readonly operationId: string; readonly parameters: object }) {
  const services = { config: { targets: TARGETS } };
  const agent = createAgent("here", [endpoint as never], services as never, LOG);
  const callbacks: ((error: null, message: object) => void)[] = [];
  agent.serve({
    subscribe(_: string, { callback }: { callback: (typeof callbacks)[0] }) {
      callbacks.push(callback);
    },
    closed: () => new Promise(() => {}),
    isClosed: () => false,
  } as never);
  const ask = (message: object) => callbacks[0]?.(null, message);
  const cancel = (service: string, token: string) =>
    callbacks[1]?.(null, { subject: `sixscope.cancel.here.${service}`, string: () => token });
  let asked = 0;
  /** @param asker a service and its client */
  const send = (
    asker: string,
    events: boolean,
    respond: (text: string) => void,
    token: string = crypto.randomUUID(),
  ) => {
    const [service = "", name = ""] = asker.split(" ");
    const owner = Bun.hash(name).toString(16).padStart(16, "0");
    const about = { version: MESSAGE_VERSION, endpoint: endpoint.operationId, parameters: {} };
    const question = { ...about, targets: TARGETS, owner, token, events };
    const data = new TextEncoder().encode(JSON.stringify(question));
    const subject = `sixscope.ask.here.${service}`;
    ask({ subject, reply: `_INBOX.${service}.${asked++}`, data, respond });
  };
  return { agent, ask, cancel, send };
}

test("whoever invents clients gets the share of one service, and all others find a place at once", async () => {
  const ends: (() => void)[] = [];
  const endpoint = {
    operationId: "hold",
    parameters: { from: { in: "query", schema: () => z.string().optional() } },
    handle: () => new Promise((resolve) => ends.push(() => resolve({}))),
  };
  const { agent, send } = agentWith(endpoint);
  const refused: string[] = [];
  const respond = (text: string) => {
    if (text.includes("refused")) refused.push(text);
  };
  /** Asks, and returns how many questions are worked on then. */
  const ask = async (count: number, nameOf: (at: number) => string) => {
    for (let at = 0; at < count; at++) send(nameOf(at), false, respond);
    await Promise.resolve();
    return agent.running();
  };
  // One client of a service gets a quarter, because room is kept for the service's others and for other services.
  expect(await ask(1_000, () => "one flood")).toBe(250);
  expect(new Set(refused).size).toBe(1);
  expect(JSON.parse(refused[0] ?? "")).toEqual({ refused: expect.stringContaining("here") });
  expect(await ask(1, () => "one honest")).toBe(251);
  // However many it invents, the service gets half of all.
  expect(await ask(10_000, (at) => `one ${at}`)).toBe(500);
  expect(await ask(100, () => "two a")).toBe(600);
  expect(await ask(50, () => "two b")).toBe(650);
  expect(await ask(1, () => "three a")).toBe(651);
  for (const end of ends.splice(0)) end();
  await Bun.sleep(0);
  expect(agent.running()).toBe(0);
  // All places are given back.
  expect(await ask(501, () => "one flood")).toBe(250);
});

test("a service ends its own runs alone, also where another one has the same token", async () => {
  const endpoint = {
    operationId: "hold",
    parameters: { from: { in: "query", schema: () => z.string().optional() } },
    handle: (_: object, { signal }: Call) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve({}))),
  };
  const { agent, send, cancel } = agentWith(endpoint);
  const told: string[] = [];
  const token = crypto.randomUUID();
  for (const service of ["one", "two", "null"])
    send(`${service} a`, false, (text) => told.push(`${service} ${text}`), token);
  expect(agent.running()).toBe(3);
  for (const other of ["three", "*", ">", "one two", ""]) cancel(other, token);
  cancel("two", crypto.randomUUID());
  await Bun.sleep(0);
  expect(agent.running()).toBe(3);
  cancel("one", token);
  await Bun.sleep(0);
  expect(agent.running()).toBe(2);
  expect(told.filter((text) => !text.includes("alive"))).toEqual([
    'one {"refused":"it was told to end the run"}',
  ]);
});

test.each(["*", ">", "", "a b", "a\n", "x".repeat(65), "a/b", "\u2028"])(
  "a service named %j is not answered",
  (service) => {
    const { agent, ask } = agentWith({ operationId: "hold", parameters: {} });
    let said = 0;
    const subject = `sixscope.ask.here.${service}`;
    ask({ subject, reply: `_INBOX.${service}.1`, data: new Uint8Array(), respond: () => said++ });
    expect([agent.running(), said]).toEqual([0, 0]);
  },
);

test("a run whose events would be more than an answer may have ends early, with its result", async () => {
  const data = { text: "x".repeat(300_000) };
  const endpoint = {
    operationId: "tell",
    parameters: { from: { in: "query", schema: () => z.string().optional() } },
    events: () => ({ round: z.object({ text: z.string() }) }),
    response: () => z.object({ rounds: z.int(), cutShort: z.string() }),
    errors: [],
    async handle(_values: object, { onEvent }: Call) {
      const budget = createBudget("");
      let rounds = 0;
      for (; rounds < 30 && !budget.enough.aborted; rounds++) onEvent?.("round", data, budget.tell);
      return { rounds, cutShort: budget.cutShort()?.code };
    },
  };
  const read = replyReader("here", { endpoint: endpoint as never, parameters: {} });
  const { promise, resolve, reject } = Promise.withResolvers<object>();
  agentWith(endpoint).send("service client", true, (text) => {
    try {
      const reply = read(null, { data: new TextEncoder().encode(text) } as never);
      if ("result" in reply) resolve(reply.result);
    } catch (error) {
      reject(error);
    }
  });
  expect(await promise).toEqual({ rounds: 21, cutShort: "events" });
});
