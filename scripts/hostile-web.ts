/**
 * Web servers that want to harm whoever checks them: `hostile-web.ts SEED`. Each address has its own way to answer,
 * by its last group: on port 80 requests, on port 443 handshakes. Says "ready" once it listens.
 */
import { createServer, type Socket } from "node:net";
import { randomFrom } from "../test/lab/simulation.ts";
import { randomBytes } from "./hostile/random.ts";

const random = randomFrom(Number(Bun.argv[2]));

const PIECE = Buffer.alloc(65_536, "x");
const OK = "HTTP/1.1 200 OK\r\n";

/** Milliseconds between two bytes of what never ends. */
const DRIP_MS = 100;

/** Writes a piece again and again, as fast as it is read. */
function flood(socket: Socket, piece: Buffer | string): void {
  const more = () => {
    while (!socket.destroyed) if (!socket.write(piece)) return;
  };
  socket.on("drain", more);
  more();
}

function drip(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => socket.write(text[at++ % text.length] ?? ""), DRIP_MS);
  socket.on("close", () => clearInterval(timer));
}

const ANSWERS: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.write(`HTTP/1.1 301 M\r\nLocation:${" ".repeat(65_400)}x\r\n\r\n`),
  (socket) => socket.write(`HTTP/1.1 301 M\r\nLocation: /${"\t ".repeat(32_000)}`),
  (socket) => socket.write(`${OK}X: ${"y".repeat(100_000)}\r\nLocation: /\r\n\r\n`),
  (socket) => socket.write(`HTTP/1.1 301 M\r\nLocation: http://${"a.".repeat(2_000)}/\r\n\r\n`),
  (socket) => socket.write("HTTP/1.1 301 M\r\nLocation: http://[::1]:1/\u001b[2J\r\n\r\n"),
  (socket) => socket.write(`HTTP/1.1 ${"9".repeat(60_000)} \r\n\r\n`),
  (socket) => {
    socket.write(OK);
    flood(socket, "A: b\r\n".repeat(10_000));
  },
  (socket) => {
    socket.write(`${OK}\r\n`);
    flood(socket, PIECE);
  },
  (socket) => flood(socket, "HTTP/1.1 103 E\r\n\r\n"),
  (socket) => flood(socket, "\r\n"),
  (socket) => drip(socket, `${OK}X: ${"x".repeat(1000)}`),
  (socket) => socket.write(randomBytes(random, 5000)),
  () => {},
  (socket) => socket.destroy(),
];

const NO_HANDSHAKES: readonly ((socket: Socket) => void)[] = [
  (socket) => flood(socket, Buffer.from([0x16, 3, 3, 0x40, 0, ...PIECE.subarray(0, 0x4000)])),
  (socket) => flood(socket, Buffer.alloc(7000, "\x15\x03\x03\x00\x02\x01\x00")),
  (socket) => drip(socket, "\x16\x03\x03\x40\x00\x02"),
  (socket) => socket.write(OK),
  () => {},
  (socket) => socket.end(),
];

for (const [port, deeds] of [
  [80, ANSWERS],
  [443, NO_HANDSHAKES],
] as const) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const at = Number(socket.localAddress?.split(":").at(-1));
    socket.once("data", () => deeds[at % deeds.length]?.(socket));
  });
  await new Promise<void>((resolve) => void server.listen(port, "::", resolve));
}
console.log("ready");
