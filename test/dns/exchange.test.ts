import { expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { frameMessage, MessageStream, openUdp } from "../../src/dns/exchange.ts";

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
  const socket = await openUdp(
    tryParseSocketAddress(at, server.port) as SocketAddress,
    {
      data(bytes) {
        received.push(new TextDecoder().decode(bytes));
        if (received.at(-1) === "answer") answer();
      },
      failed: (code) => received.push(code),
    },
    makeUnconnected,
  );
  try {
    socket.send(new TextEncoder().encode("question"));
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

const message = Uint8Array.from({ length: 60_000 }, (_, at) => at);

/** The message that results when the bytes arrive in pieces of this length. */
function inPieces(bytes: Uint8Array, length: number): Uint8Array | null {
  const stream = new MessageStream();
  let whole: Uint8Array | null = null;
  for (let at = 0; at < bytes.length && whole === null; at += length) {
    whole = stream.add(bytes.subarray(at, at + length));
  }
  return whole;
}

test.each([1, 2, 3, 1460, 60_002, 100_000])("a message in pieces of %d bytes", (length) => {
  expect(inPieces(frameMessage(message), length)).toEqual(message);
});

test("the length comes before the message", () => {
  expect(frameMessage(message).subarray(0, 3)).toEqual(Uint8Array.of(0xea, 0x60, 0));
});

test("bytes after the message are ignored", () => {
  const two = Uint8Array.of(0, 1, 7, 0, 1, 8);
  expect(inPieces(two, 6)).toEqual(Uint8Array.of(7));
});

test("a message is incomplete before its last byte", () => {
  const framed = frameMessage(message);
  expect(inPieces(framed.subarray(0, -1), 999)).toBeNull();
  expect(inPieces(framed.subarray(0, 1), 1)).toBeNull();
});

test("an empty message is a message", () => {
  expect(inPieces(Uint8Array.of(0, 0), 2)).toEqual(new Uint8Array(0));
});
