import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type SocketAddress, tryParseSocketAddress } from "../../../src/addr/socket-address.ts";
import { frameMessage, MessageStream } from "../../../src/dns/transport/stream.ts";
import { FIRST_PORT, openUdp } from "../../../src/dns/transport/udp.ts";

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
  const question = new TextEncoder().encode("question");
  const address = tryParseSocketAddress(at, server.port) as SocketAddress;
  const events = {
    message(bytes: Uint8Array) {
      received.push(new TextDecoder().decode(bytes));
      if (received.at(-1) === "answer") answer();
    },
    failed: (code: string) => received.push(code),
  };
  const socket = await openUdp(address, question, events, makeUnconnected);
  try {
    const port = await asked;
    forger.send("forgery", port, at);
    server.send("answer", port, at);
    await answered;
    expect(received).toEqual(["answer"]);
  } finally {
    socket.close();
    forger.close();
    server.close();
  }
});

describe("random ports", () => {
  const server = tryParseSocketAddress("192.0.2.53", 53) as SocketAddress;

  /** Opens sockets without a network. @param inUse true if another program uses the port of a try */
  function start(inUse: (tries: number) => boolean = () => false) {
    const tried: number[] = [];
    let made = 0;
    const open = () =>
      openUdp(server, new Uint8Array(1), { message() {}, failed() {} }, async ({ port = 0 }) => {
        tried.push(port);
        if (inUse(tried.length)) throw Object.assign(new Error("in use"), { code: "EADDRINUSE" });
        made += 1;
        return {
          send: () => true,
          close() {},
          remoteAddress: { address: "" } as Bun.SocketAddress,
        };
      });
    return { tried, made: () => made, open };
  }

  test("another one is tried if one is in use, 16 times", async () => {
    const some = start((tries) => tries % 16 > 0);
    for (let at = 0; at < 100; at++) await some.open();
    expect([some.made(), new Set(some.tried).size > 1500]).toEqual([100, true]);
    const none = start(() => true);
    await expect(none.open()).rejects.toMatchObject({ code: "EADDRINUSE" });
    expect(none.tried).toHaveLength(16);
  });

  // The bits that a blind attacker has to guess, in docs/decisions/random-ports.md.
  test("are 64,512, each as likely as the others", async () => {
    const { tried, open } = start();
    const count = 64_512;
    for (let at = 0; at < count; at++) await open();
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

test("a socket that cannot send is closed", async () => {
  const address = tryParseSocketAddress("192.0.2.53", 53) as SocketAddress;
  let isOpen = true;
  const opened = openUdp(address, new Uint8Array(1), { message() {}, failed() {} }, async () => ({
    send() {
      throw Object.assign(new Error("no route"), { code: "ENETUNREACH" });
    },
    close() {
      isOpen = false;
    },
    remoteAddress: { address: "192.0.2.53" } as Bun.SocketAddress,
  }));
  await expect(opened).rejects.toMatchObject({ code: "ENETUNREACH" });
  expect(isOpen).toBe(false);
});

test("the arithmetic of docs/decisions/random-ports.md is that of the code", async () => {
  const page = await Bun.file(
    join(import.meta.dir, "../../../docs/decisions/random-ports.md"),
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
  const knownPort = caseBits.map((letters) => -idBits - letters);
  const rounded = (values: number[]) => values.map((value) => Math.round(value * 10) / 10);
  expect(row("port, one of 64,512")).toEqual(rounded([portBits, portBits]));
  expect(row("together")).toEqual(rounded(bits));
  expect(row("chance of 24,000 forgeries")).toEqual(
    bits.map((all) => Math.round(Math.log2(24_000) - all)),
  );
  expect(row("chance of someone who has found the port: one guess")).toEqual(knownPort);
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
