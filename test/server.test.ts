import { describe, expect, test } from "bun:test";
import type { App } from "../src/app.ts";
import { createLog } from "../src/log.ts";
import { listen } from "../src/server.ts";

function log() {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  return { lines, log: createLog({ level: "info", format: "text", priorities: false, write }) };
}

const LISTEN = [{ kind: "tcp", hostname: "127.0.0.1", port: 0 }] as const;

describe("what is thrown past the app", () => {
  // biome-ignore format: a table
  test.each<[string, App["fetch"]]>([
    ["an Error", () => { throw new Error("secret"); }],
    ["a text", () => { throw "secret"; }],
    ["nothing", () => { throw undefined; }],
    ["a rejected promise", () => Promise.reject(new Error("secret"))],
  ])("%s becomes the contract's error, and stands in the log", async (_, fetchOfApp) => {
    const { lines, log: ownLog } = log();
    const app: App = { fetch: fetchOfApp };
    const config = { listen: LISTEN, listenIsDefault: false };
    const listening = await listen(app, config, null, ownLog);
    const response = await fetch(listening.urls[0] ?? "");
    await listening.stop(0);
    const requestId = response.headers.get("x-request-id");
    expect(response.status).toBe(500);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(await response.json()).toEqual({
      error: { code: "INTERNAL_ERROR", message: expect.any(String), details: { requestId } },
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(`requestId=${requestId}`);
  });
});
