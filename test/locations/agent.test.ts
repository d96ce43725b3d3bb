/** The places of an agent, without a NATS server. */
import { expect, test } from "bun:test";
import { z } from "zod";
import { createAgent } from "../../src/locations/agent.ts";
import { MESSAGE_VERSION } from "../../src/locations/protocol.ts";
import { createLog } from "../../src/util/log.ts";

const LOG = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

test("one owner gets half of an agent's 1,000 places, and the next one finds a place at once", async () => {
  const ends: (() => void)[] = [];
  const endpoint = {
    operationId: "hold",
    parameters: { from: { in: "query", schema: () => z.string().optional() } },
    handle: () => new Promise((resolve) => ends.push(() => resolve({}))),
  };
  const targets = { mode: "any", allow: [], deny: [] };
  const agent = createAgent("here", [endpoint as never], { config: { targets } } as never, LOG);
  let ask = (_error: null, _message: object) => {};
  agent.serve({
    subscribe(subject: string, { callback }: { callback: typeof ask }) {
      if (subject.startsWith("sixscope.ask")) ask = callback;
    },
    closed: () => new Promise(() => {}),
    isClosed: () => false,
  } as never);
  const replies: string[] = [];
  let inbox = 0;
  const respond = (text: string) => {
    if (!text.includes("alive")) replies.push(text);
  };
  const send = (owner: string, count: number) => {
    const asked = { version: MESSAGE_VERSION, endpoint: "hold", parameters: {}, targets };
    for (let sent = 0; sent < count; sent++) {
      const question = { ...asked, owner, token: crypto.randomUUID(), events: false };
      const data = new TextEncoder().encode(JSON.stringify(question));
      const reply = `_INBOX.${inbox++}`;
      ask(null, { reply, data, respond });
    }
  };
  send("flood", 1_000);
  await Promise.resolve();
  expect([agent.running(), replies.length]).toEqual([500, 500]);
  expect(new Set(replies).size).toBe(1);
  expect(JSON.parse(replies[0] ?? "")).toEqual({ refused: expect.stringContaining("here") });
  send("another", 100);
  expect([agent.running(), replies.length]).toEqual([600, 500]);
  for (const end of ends.splice(0)) end();
  await Bun.sleep(0);
  expect([agent.running(), replies.length]).toEqual([0, 1_100]);
  // All places are given back.
  send("flood", 501);
  expect([agent.running(), replies.length]).toEqual([500, 1_101]);
});
