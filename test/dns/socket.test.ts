import { expect, test } from "bun:test";
import { type SocketAddress, tryParseSocketAddress } from "../../src/addr/socket-address.ts";
import { openUdp } from "../../src/dns/socket.ts";

/**
 * Makes a socket that stays as it is between binding and connecting, a moment in which the kernel takes
 * datagrams from anybody and which no test can hit: bound, with a peer that it knows by name only.
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
])("a datagram from elsewhere is not the server's: %s", async (_, at, elsewhere, samePort) => {
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
  const heard: string[] = [];
  const socket = await openUdp(
    tryParseSocketAddress(at, server.port) as SocketAddress,
    {
      data(bytes) {
        heard.push(new TextDecoder().decode(bytes));
        if (heard.at(-1) === "answer") answer();
      },
      failed: (code) => heard.push(code),
    },
    makeUnconnected,
  );
  try {
    socket.send(new TextEncoder().encode("question"));
    const port = await asked;
    forger.send("forgery", port, at);
    server.send("answer", port, at);
    await answered;
    expect(heard).toEqual(["answer"]);
  } finally {
    socket.close();
    forger.close();
    server.close();
  }
});
