/** The peers that a service and a command trust a little: Valkey, agents of other places, and a server. */
import { connect } from "@nats-io/transport-node";
import { MESSAGE_VERSION, SUBJECTS } from "../../src/locations/protocol.ts";
import { freePort } from "../../test/lab/port.ts";
import { below, pick, type Random, randomBytes } from "./random.ts";

const MiB = 2 ** 20;

/** Starts something at Valkey's place that answers each call with anything; returns its URL. */
export async function startHostileValkey(random: Random): Promise<string> {
  const port = await freePort();
  Bun.listen({
    hostname: "::1",
    port,
    socket: {
      data(socket) {
        const anything = pick<(() => string) | null>(random, [
          () => "+OK\r\n",
          () => ":-9223372036854775808\r\n",
          () => `:${"9".repeat(400)}\r\n`,
          () => "$-1\r\n",
          () => `$${600 * MiB}\r\n${"x".repeat(MiB)}`,
          () => `*${2 ** 31}\r\n`,
          () => "*1\r\n".repeat(50_000),
          () => `*3\r\n:${below(random, 9)}\r\n:1e308\r\n$3\r\nNaN\r\n`,
          () => "-READONLY You can't write against a read only replica.\r\n",
          () => "",
          null,
        ]);
        if (anything === null) return void socket.write(randomBytes(random, 5000));
        setTimeout(() => socket.write(anything()), pick(random, [0, 0, 0, 40, 5000]));
      },
      error() {},
    },
  });
  return `valkey://[::1]:${port}`;
}

/** Locations that an agent without shame announces. */
export const EVIL_LOCATION = "evil";
const ANNOUNCED = 3000;

/** Starts an agent that answers each question with anything, and announces thousands of locations. */
export async function startHostileAgent(random: Random, servers: string) {
  const nats = await connect({ servers });
  const send = (subject: string, value: object | string) =>
    nats.publish(subject, typeof value === "string" ? value : JSON.stringify(value));
  const announce = () => {
    const since = new Date().toISOString();
    const description = { version: "9", families: [6], since, tags: [] };
    send(SUBJECTS.here(EVIL_LOCATION, "00000000"), description);
    for (let count = 0; count < ANNOUNCED / 100; count++) {
      const data = pick<object | string>(random, [
        { ...description, version: "9".repeat(64) },
        { ...description, since: "1970" },
        "{",
        "",
      ]);
      const name = below(random, 2 ** 32)
        .toString(16)
        .padStart(8, "0");
      send(SUBJECTS.here(`evil-${below(random, ANNOUNCED)}`, name), data);
    }
  };
  announce();
  setInterval(announce, 50);
  nats.subscribe(SUBJECTS.ask(EVIL_LOCATION, "*"), {
    callback(error, question) {
      if (error !== null || question.reply === undefined) return;
      const { reply } = question;
      send(reply, { allowSeconds: pick(random, [1, 1e9, 1e308]) });
      const hop = pick(random, [1e9, -1, 1, Number.MAX_SAFE_INTEGER]);
      const long = "\u2028\u001b]0;x\u0007".repeat(20_000);
      const replies: readonly object[] = [
        { event: "hop", data: { hop, ip: null, hostname: null, rtt: null } },
        { event: "round", data: { round: hop, hops: Array(5000).fill({ hop }) } },
        { event: "reply", data: { seq: hop, hostname: long } },
        { event: long, data: {} },
        { result: { target: "another", ip: "::1", details: {} } },
        { result: { target: long } },
        { error: { code: "constructor", message: "\u001b[2J", details: { a: long } } },
        { refused: "no" },
      ];
      let left = 300;
      const timer = setInterval(() => {
        for (let count = 0; count < 20 && left > 0; count++, left--)
          send(reply, pick(random, replies));
        if (left === 0) clearInterval(timer);
      }, 5);
    },
  });
}

/** Questions of a hostile service, and the pause between two flocks of them in milliseconds. */
const [FLOCK, FLOCK_MS] = [20, 50];

/** Starts a second service, which asks a location for the longest runs, each time for a client that it invents. */
export async function startHostileService(
  random: Random,
  servers: string,
  location: string,
  target: string,
) {
  const nats = await connect({ servers });
  const service = "evil-service";
  let asked = 0;
  nats.subscribe(SUBJECTS.inbox(service, "*"), { callback() {} });
  setInterval(() => {
    for (let count = 0; count < FLOCK; count++) {
      const question = {
        ...{ version: MESSAGE_VERSION, endpoint: "mtr", token: crypto.randomUUID(), events: true },
        parameters: { target, rounds: "100", intervalMs: "1000", names: "no" },
        targets: { mode: "any", allow: [], deny: [] },
        owner: below(random, 2 ** 32)
          .toString(16)
          .padStart(16, "0"),
      };
      nats.publish(SUBJECTS.ask(location, service), JSON.stringify(question), {
        reply: SUBJECTS.inbox(service, `${asked++}`),
      });
    }
  }, FLOCK_MS);
}

/** Starts a server that answers a command with anything; returns its URL. */
export async function startHostileServer(random: Random): Promise<string> {
  const controls = "\u001b]0;owned\u0007\u009b2J\u202e\u2028";
  const event = (name: string, data: string) => `event: ${name}\ndata: ${data}\n\n`;
  const endless = (chunk: () => string) =>
    new ReadableStream({
      async pull(controller) {
        await Bun.sleep(1);
        controller.enqueue(new TextEncoder().encode(chunk()));
      },
    });
  const server = Bun.serve({
    hostname: "::1",
    port: 0,
    idleTimeout: 0,
    fetch() {
      const events = { headers: { "Content-Type": "text/event-stream" } };
      const json = { headers: { "Content-Type": "application/json" } };
      const hop = pick(random, [1e9, -1, 1e308]);
      const answers: readonly (() => Response)[] = [
        () =>
          new Response(
            endless(() => event("hop", `{"hop":${hop}}`)),
            events,
          ),
        () =>
          new Response(
            endless(() => "x".repeat(MiB)),
            events,
          ),
        () =>
          new Response(
            endless(() => ":\n"),
            events,
          ),
        () =>
          new Response(
            endless(() => "x".repeat(MiB)),
            json,
          ),
        () => new Response(event("result", `{"target":"${controls}","hop":${hop}}`), events),
        () => new Response(event("result", "[".repeat(MiB)), events),
        () =>
          new Response(event("error", `{"error":{"code":"X","message":"${controls}"}}`), events),
        () =>
          new Response(`{"error":{"code":"${controls}","message":"${controls}"}}`, { status: 500 }),
        () => new Response(null, { status: 302, headers: { Location: "http://[::1]:1/" } }),
        () =>
          new Response(Bun.gzipSync(new Uint8Array(64 * MiB)), {
            headers: { "Content-Encoding": "gzip", "Content-Type": "text/event-stream" },
          }),
      ];
      return pick(random, answers)();
    },
  });
  return server.url.href;
}
