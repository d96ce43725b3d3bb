import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type SocketAddress, tryParseSocketAddress } from "../../../src/addr/socket-address.ts";
import { MAX_FORGERIES } from "../../../src/dns/transport/exchange.ts";
import { frameMessage, MessageStream } from "../../../src/dns/transport/stream.ts";
import {
  createUdpOpener,
  FIRST_PORT,
  MAX_AGE_MS,
  MAX_USES,
} from "../../../src/dns/transport/udp.ts";
import { FakeClock } from "../fake-clock.ts";

/**
 * Makes a socket that stays in the state between bind and connect, when the kernel accepts datagrams
 * from any address. With a real socket, this moment is too short for a test.
 */
async function makeUnconnected({
  connect: { hostname: address, port },
  ...options
}: Bun.udp.ConnectSocketOptions<"uint8array">) {
  const socket = await Bun.udpSocket(options as Bun.udp.SocketOptions<"uint8array">);
  return {
    send: (data: Bun.udp.Data) => socket.send(data, port, address),
    close: () => socket.close(),
    remoteAddress: { address, port, family: "" } as unknown as Bun.SocketAddress,
  };
}

test.each([
  ["another port, IPv6", "::1", "::1", false],
  ["another port, IPv4", "127.0.0.1", "127.0.0.1", false],
  ["another address with the same port", "127.0.0.1", "127.0.0.2", true],
])("a datagram from another sender is dropped: %s", async (_, at, elsewhere, samePort) => {
  const { promise: asked, resolve: arrive } = Promise.withResolvers<number>();
  const server = await Bun.udpSocket({
    hostname: at,
    socket: { data: (_, _bytes, port) => arrive(port) },
  });
  const forger = await Bun.udpSocket({
    hostname: elsewhere,
    ...(samePort && { port: server.port }),
  });
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const received: string[] = [];
  const openSocket = createUdpOpener(new FakeClock(), makeUnconnected);
  const question = new TextEncoder().encode("question");
  const address = tryParseSocketAddress(at, server.port) as SocketAddress;
  const socket = await openSocket(address, question, {
    message(bytes) {
      received.push(new TextDecoder().decode(bytes));
      if (received.at(-1) === "answer") answer();
    },
    failed: (code) => received.push(code),
  });
  try {
    const port = await asked;
    forger.send("forgery", port, at);
    server.send("answer", port, at);
    await answered;
    expect(received).toEqual(["answer"]);
  } finally {
    socket.close(false);
    forger.close();
    server.close();
  }
});

describe("kept sockets", () => {
  const server = tryParseSocketAddress("192.0.2.53", 53) as SocketAddress;

  /** Opens sockets without a network. @param inUse ports that another program uses */
  function start(inUse: (port: number) => boolean = () => false) {
    const clock = new FakeClock();
    const tried: number[] = [];
    const made: { port: number; isOpen: boolean; receive: (from?: string) => void }[] = [];
    const openSocket = createUdpOpener(clock, async ({ port = 0, connect, socket }) => {
      tried.push(port);
      if (inUse(port)) throw Object.assign(new Error("in use"), { code: "EADDRINUSE" });
      const one = {
        port,
        isOpen: true,
        receive: (from = connect.hostname) =>
          socket?.data?.(null as never, new Uint8Array(1), connect.port, from, {} as never),
      };
      made.push(one);
      return {
        send: () => true,
        close: () => {
          one.isOpen = false;
        },
        remoteAddress: { address: connect.hostname, port: connect.port } as Bun.SocketAddress,
      };
    });
    const events = { message() {}, failed() {} };
    const open = () => openSocket(server, new Uint8Array(1), events);
    return { clock, tried, made, open };
  }

  test("carry 16 queries one after the other", async () => {
    const { made, open } = start();
    for (let query = 0; query < 33; query++) (await open()).close(true);
    expect(made.map(({ isOpen }) => isOpen)).toEqual([false, false, true]);
  });

  test("carry one query at a time, and are chosen at random", async () => {
    const { made, open } = start();
    const all = await Promise.all(Array.from({ length: 50 }, open));
    const order = new Map(all.map((socket, at) => [socket, at]));
    expect(made).toHaveLength(50);
    for (const socket of all) socket.close(true);
    const again = await Promise.all(Array.from({ length: 50 }, open));
    expect(made).toHaveLength(50);
    const places = again.map((socket) => order.get(socket) as number);
    expect(places).not.toEqual([...places.keys()]);
    expect(places.toSorted((a, b) => a - b)).toEqual([...places.keys()]);
  });

  test("carry no other query after anything but a clean response", async () => {
    const { made, open } = start();
    (await open()).close(false);
    expect(made[0]?.isOpen).toBe(false);
  });

  test("close after a second, in use or not", async () => {
    const { clock, made, open } = start();
    (await open()).close(true);
    const used = await open();
    const other = await open();
    other.close(true);
    await clock.advance(999);
    expect(made.map(({ isOpen }) => isOpen)).toEqual([true, true]);
    await clock.advance(1);
    expect(made.map(({ isOpen }) => isOpen)).toEqual([true, false]);
    used.close(true);
    expect(made[0]?.isOpen).toBe(false);
    expect(clock.pending).toBe(0);
  });

  test("close if a datagram of the server comes while they are unused", async () => {
    const { clock, made, open } = start();
    (await open()).close(true);
    made[0]?.receive("192.0.2.66");
    expect(made[0]?.isOpen).toBe(true);
    made[0]?.receive();
    expect(made[0]?.isOpen).toBe(false);
    (await open()).close(false);
    expect(made).toHaveLength(2);
    expect(clock.pending).toBe(0);
  });

  test("try another random port if one is in use, 16 times", async () => {
    const some = start((port) => port % 2 === 0);
    for (let at = 0; at < 100; at++) (await some.open()).close(false);
    expect(some.made).toHaveLength(100);
    const none = start(() => true);
    await expect(none.open()).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(none.tried).toHaveLength(16);
  });

  // The bits that a blind attacker has to guess, in docs/decisions/kept-sockets.md.
  test("have one of 64,512 ports, each as likely as the others", async () => {
    const { tried, open } = start();
    const count = 64_512;
    for (let at = 0; at < count; at++) (await open()).close(false);
    expect(Math.min(...tried)).toBeGreaterThanOrEqual(FIRST_PORT);
    expect(Math.max(...tried)).toBeLessThanOrEqual(65_535);
    // Of 64,512 ports drawn at random, 1/e are missing on average; the deviation is 100.
    expect(new Set(tried).size / count).toBeCloseTo(1 - 1 / Math.E, 1);
    const eighths = Map.groupBy(tried, (port) => Math.floor((8 * (port - FIRST_PORT)) / count));
    for (let eighth = 0; eighth < 8; eighth++) {
      expect((8 * (eighths.get(eighth)?.length ?? 0)) / count).toBeCloseTo(1, 0.8);
    }
    expect(65_536 - FIRST_PORT).toBe(count);
  });
});

test("the arithmetic of docs/decisions/kept-sockets.md is that of the code", async () => {
  const page = await Bun.file(
    join(import.meta.dir, "../../../docs/decisions/kept-sockets.md"),
  ).text();
  /** The numbers of the row that begins so, for a name with 13 letters and for one without. */
  const row = (label: string) => {
    const line = page.split("\n").find((text) => text.startsWith(`| ${label}`)) ?? "";
    return line
      .split("|")
      .slice(2, 4)
      .map((cell) => Number(cell.replace("2^", "")));
  };
  const [portBits, idBits, caseBits] = [Math.log2(65_536 - FIRST_PORT), 16, [13, 0]];
  const bits = caseBits.map((letters) => portBits + idBits + letters);
  const knownPort = caseBits.map((letters) => Math.log2(MAX_FORGERIES) - idBits - letters);
  const rounded = (values: number[]) => values.map((value) => Math.round(value * 10) / 10);
  expect(row("port, one of 64,512")).toEqual(rounded([portBits, portBits]));
  expect(row("together")).toEqual(rounded(bits));
  expect(row("chance of 24,000 forgeries")).toEqual(
    bits.map((all) => Math.round(Math.log2(24_000) - all)),
  );
  expect(row("chance of someone who has found the port: 8 guesses")).toEqual(knownPort);
  expect(page).toContain(`at most ${MAX_USES}, for at most one second`);
  expect(MAX_AGE_MS).toBe(1000);
});

const message = Uint8Array.from({ length: 60_000 }, (_, at) => at);

/** The messages that result when the bytes arrive in pieces of this length. */
function inPieces(bytes: Uint8Array, length: number): Uint8Array[] {
  const stream = new MessageStream();
  const starts = Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) => at * length);
  return starts.flatMap((at) => stream.add(bytes.subarray(at, at + length)));
}

test.each([1, 2, 3, 1460, 60_002, 100_000])("a message in pieces of %d bytes", (length) => {
  expect(inPieces(frameMessage(message), length)).toEqual([message as Buffer]);
});

test("the length comes before the message", () => {
  expect(frameMessage(message).subarray(0, 3)).toEqual(Uint8Array.of(0xea, 0x60, 0));
});

test.each([1, 2, 4, 9])("several messages in pieces of %d bytes, one of them empty", (length) => {
  const bytes = Uint8Array.of(0, 1, 7, 0, 0, 0, 2, 8, 9);
  expect(inPieces(bytes, length).map((one) => [...one])).toEqual([[7], [], [8, 9]]);
});

test("a message is incomplete before its last byte", () => {
  const framed = frameMessage(message);
  expect(inPieces(framed.subarray(0, -1), 999)).toEqual([]);
  expect(inPieces(framed.subarray(0, 1), 1)).toEqual([]);
});
