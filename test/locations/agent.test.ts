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
function agentWith(endpoint: { readonly operationId: string }) {
  const services = { config: { targets: TARGETS } };
  const agent = createAgent("here", [endpoint as never], services as never, LOG);
  let ask = (_error: null, _message: object) => {};
  agent.serve({
    subscribe(subject: string, { callback }: { callback: typeof ask }) {
      if (subject.startsWith("sixscope.ask")) ask = callback;
    },
    closed: () => new Promise(() => {}),
    isClosed: () => false,
  } as never);
  let inbox = 0;
  const send = (owner: string, events: boolean, respond: (text: string) => void) => {
    const token = crypto.randomUUID();
    const about = { version: MESSAGE_VERSION, endpoint: endpoint.operationId, parameters: {} };
    const question = { ...about, targets: TARGETS, owner, token, events };
    const data = new TextEncoder().encode(JSON.stringify(question));
    ask(null, { reply: `_INBOX.${inbox++}`, data, respond });
  };
  return { agent, send };
}

test("one owner gets half of an agent's 1,000 places, and the next one finds a place at once", async () => {
  const ends: (() => void)[] = [];
  const endpoint = {
    operationId: "hold",
    parameters: { from: { in: "query", schema: () => z.string().optional() } },
    handle: () => new Promise((resolve) => ends.push(() => resolve({}))),
  };
  const { agent, send } = agentWith(endpoint);
  const replies: string[] = [];
  const respond = (text: string) => {
    if (!text.includes("alive")) replies.push(text);
  };
  const ask = (owner: string, count: number) => {
    for (let sent = 0; sent < count; sent++) send(owner, false, respond);
  };
  ask("flood", 1_000);
  await Promise.resolve();
  expect([agent.running(), replies.length]).toEqual([500, 500]);
  expect(new Set(replies).size).toBe(1);
  expect(JSON.parse(replies[0] ?? "")).toEqual({ refused: expect.stringContaining("here") });
  ask("another", 100);
  expect([agent.running(), replies.length]).toEqual([600, 500]);
  for (const end of ends.splice(0)) end();
  await Bun.sleep(0);
  expect([agent.running(), replies.length]).toEqual([0, 1_100]);
  // All places are given back.
  ask("flood", 501);
  expect([agent.running(), replies.length]).toEqual([500, 1_101]);
});

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
  agentWith(endpoint).send("client", true, (text) => {
    try {
      const reply = read(null, { data: new TextEncoder().encode(text) } as never);
      if ("result" in reply) resolve(reply.result);
    } catch (error) {
      reject(error);
    }
  });
  expect(await promise).toEqual({ rounds: 21, cutShort: "events" });
});
