/** A receiver of changes that is good, slow, endless or elsewhere: what it gets, how often, and what is kept. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import { createLog } from "../../src/util/log.ts";
import { type Notification, startNotifier } from "../../src/watch/notify.ts";
import { FakeClock } from "../util/fake-clock.ts";

const DAY_MS = 86_400_000;
const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });
const SECRET = Buffer.from("a secret");

let server: Server;
let url: string;
/** What is answered to each POST. */
let answer: (socket: Socket) => void;
/** The heads and bodies of all requests. */
let posts: { head: string; body: string }[] = [];
let waiting: Notification[] = [];
let clock: FakeClock;
let end: AbortController;
const sockets = new Set<Socket>();

const notification = (id: number, agoMs = 0): Notification => ({
  ...{ id, name: "ping a.test", at: new Date(Date.now() - agoMs).toISOString() },
  ...{ kind: "verdict", text: `Change ${id}.` },
});

beforeAll(async () => {
  server = createServer((socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes) => {
      text += bytes;
      const [head = "", body = ""] = text.split("\r\n\r\n");
      if (!body.endsWith("}")) return;
      posts.push({ head, body });
      answer(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
  url = `http://[::1]:${(server.address() as { port: number }).port}/hook`;
});

beforeEach(() => {
  posts = [];
  waiting = [];
  clock = new FakeClock();
  end = new AbortController();
});

afterEach(() => {
  end.abort();
  for (const socket of sockets) socket.destroy();
});

afterAll(() => void server.close());

const status =
  (line: string, more = "") =>
  (socket: Socket) =>
    void socket.end(`HTTP/1.1 ${line}\r\nConnection: close\r\nContent-Length: 0\r\n${more}\r\n`);

const start = (secret: Buffer<ArrayBuffer> | null = SECRET) => {
  const outbox = {
    waiting: () => waiting,
    forget(id: number) {
      waiting = waiting.filter((each) => each.id !== id);
    },
  };
  const receiver = { url, secret: secret && { file: "secret", bytes: secret } };
  return startNotifier(receiver, outbox, log, end.signal, clock);
};

/** Waits for a condition in real time, which passes while a request is under way. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(2);
}

test("each change is told once, in order, signed over its bytes", async () => {
  answer = status("204 No Content");
  waiting = [notification(1), notification(2)];
  const [first] = waiting;
  const wake = start();
  await until(() => waiting.length === 0);
  waiting = [notification(3)];
  wake();
  await until(() => waiting.length === 0);
  expect(posts.map(({ body }) => JSON.parse(body).id)).toEqual([1, 2, 3]);
  const [{ head, body } = { head: "", body: "" }] = posts;
  expect(JSON.parse(body)).toEqual(first);
  expect(head).toStartWith("POST /hook HTTP/1.1\r\n");
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  expect(head).toContain(`X-Sixscope-Signature: sha256=${signature}`);
  expect(head.toLowerCase()).toContain("content-type: application/json");
  expect(clock.pending).toBe(0);
});

test("without a secret, nothing is signed", async () => {
  answer = status("200 OK");
  waiting = [notification(1)];
  start(null);
  await until(() => waiting.length === 0);
  expect(posts[0]?.head.toLowerCase()).not.toContain("x-sixscope-signature");
});

test.each([
  ["an error", status("500 Internal Server Error")],
  ["a refusal", status("404 Not Found")],
  [
    "a redirect, which is not followed",
    status("307 Temporary Redirect", "Location: /elsewhere\r\n"),
  ],
  ["no HTTP", (socket: Socket) => void socket.end("hello\r\n\r\n")],
  ["an end of the connection", (socket: Socket) => void socket.destroy()],
])("%s: it is kept, and told again after 1, 2, 4 … s, an hour at most", async (_, wrong) => {
  answer = wrong;
  waiting = [notification(1)];
  start();
  const pauses = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600];
  for (const [at, seconds] of pauses.entries()) {
    await until(() => clock.pending === 1);
    expect(posts.length).toBe(at + 1);
    await clock.advance(seconds * 1000 - 1);
    expect([posts.length, clock.pending]).toEqual([at + 1, 1]);
    await clock.advance(1);
  }
  await until(() => clock.pending === 1);
  expect(posts.every(({ head }) => head.startsWith("POST /hook "))).toBe(true);
  answer = status("200 OK");
  await clock.advance(3_600_000);
  await until(() => waiting.length === 0);
  expect(posts.length).toBe(pauses.length + 2);
});

test("one that is refused does not hold up the next", async () => {
  answer = (socket) => status(posts.at(-1)?.body.includes('"id":1') ? "400 No" : "200 OK")(socket);
  waiting = [notification(1), notification(2), notification(3)];
  start();
  await until(() => waiting.length === 1 && clock.pending === 1);
  expect(waiting.map(({ id }) => id)).toEqual([1]);
  expect(posts.length).toBe(3);
});

test("a change of yesterday is tried once more, and then given up", async () => {
  answer = status("500 No");
  waiting = [notification(1, DAY_MS + 1000), notification(2, DAY_MS - 60_000)];
  start();
  await until(() => clock.pending === 1);
  expect(waiting.map(({ id }) => id)).toEqual([2]);
});

test("an endless answer is one, and is not read", async () => {
  let written = 0;
  answer = (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n");
    const write = () => {
      while (!socket.destroyed && socket.write("x".repeat(65_536))) written += 65_536;
    };
    socket.on("drain", write);
    write();
  };
  waiting = [notification(1)];
  start();
  await until(() => waiting.length === 0 && sockets.size === 0);
  // What the kernels of both ends hold is not read.
  expect(written).toBeLessThan(32 * 2 ** 20);
  expect(posts.length).toBe(1);
});

test("one that does not answer is left after 10 s", async () => {
  answer = () => {};
  waiting = [notification(1)];
  start();
  await until(() => clock.pending === 1);
  expect(waiting.length).toBe(1);
  expect(posts.length).toBe(1);
}, 60_000);

test("the end of the service keeps what is not told", async () => {
  answer = () => end.abort();
  waiting = [notification(1)];
  start();
  await until(() => end.signal.aborted && sockets.size === 0);
  expect(waiting.length).toBe(1);
  expect(clock.pending).toBe(0);
});
