/**
 * A client that breaks the rules until it is killed: it asks for more than it reads, and begins headers
 * that it never ends.
 *
 *     bun scripts/soak-attack.ts URL
 */

/** Connections of each kind. */
const CONNECTIONS = 100;

/** How long a connection is held, at most. */
const HOLD_MS = 20_000;

const UNREAD = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(5);
const PARTIAL = `GET /api/v1/myip HTTP/1.1\r\nHost: x\r\nX-Long: ${"a".repeat(3_500)}`;

const { hostname, port } = new URL(Bun.argv[2] ?? "");

async function attack(text: string): Promise<void> {
  for (;;) {
    const socket = await Bun.connect({
      hostname: hostname.replaceAll(/[[\]]/g, ""),
      port: Number(port),
      tls: { rejectUnauthorized: false },
      socket: {
        handshake(socket) {
          socket.write(text);
          socket.pause();
        },
        data() {},
        error() {},
      },
    }).catch(() => null);
    await Bun.sleep(Math.random() * HOLD_MS);
    socket?.terminate();
  }
}

await Promise.all(
  Array.from({ length: CONNECTIONS }, () => [attack(UNREAD), attack(PARTIAL)]).flat(),
);
