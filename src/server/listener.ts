import { chmodSync, rmSync, statSync } from "node:fs";
import type { Server } from "bun";
import { ApiError } from "../api/errors.ts";
import { CONSTANT_HEADERS } from "../api/headers.ts";
import { formatListenAddress, type ListenAddress } from "../config/listen-address.ts";
import { errnoName, libc } from "../platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../platform/linux.ts";
import { reasonOf, traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { App } from "./app.ts";
import type { Certificate } from "./certificate.ts";

/** No endpoint reads a body; a small one is tolerated. */
const MAX_BODY_BYTES = 16 * 1024;

/** The time that a connection may be silent; handlers that take longer ask for more. */
const IDLE_TIMEOUT_SECONDS = 15;

/** The longest idle timeout that Bun accepts. */
const MAX_IDLE_TIMEOUT_SECONDS = 255;

/** TLS 1.2 as a number, as Bun requires, with only those ciphers that have forward secrecy and authenticated encryption; RFC 9325 section 4.2. */
const TLS = { minVersion: 0x0303, ciphers: "ECDHE+AESGCM:ECDHE+CHACHA20" };

/** The owner and the group may connect; operators add the proxy's user to the group. */
const UNIX_SOCKET_MODE = 0o660;

/**
 * The time that a server with an old certificate goes on: long enough for clients that are connecting, and
 * short enough to use the next renewal within ten seconds.
 */
const DRAIN_MS = 8_000;

/** See `openListener`. */
export type Listener = ReturnType<typeof openListener>;

/**
 * Listens on one address of the service.
 *
 * @param readiness the text of `/readyz` until it stops
 * @throws the error of Bun if it cannot listen
 */
export function openListener(
  app: App,
  wanted: ListenAddress,
  certificate: Certificate | null,
  log: Log,
  readiness: () => string,
) {
  let address = wanted;
  const isUnix = wanted.kind === "unix";
  let isStopping = false;
  /** The current server, then a server with an old certificate until it has stopped. */
  const servers: Server<undefined>[] = [];

  /** Starts the server that accepts new connections from now on. */
  const open = (next: Certificate | null) => {
    const server = serve(next);
    servers.unshift(server);
    // The next server must use the port that the system chose for this one.
    if (address.kind === "tcp") address = { ...address, port: server.port ?? address.port };
  };

  const serve = (certificate: Certificate | null) => {
    const answer = (request: Request, server: Server<undefined>) => {
      const peer = isUnix ? null : server.requestIP(request)?.address;
      // The client has gone, so its address is unknown.
      if (peer === undefined) return new Response(null, { status: 400 });
      return app.fetch(request, {
        connection: { peer, encrypted: certificate !== null },
        draining: isStopping || server !== servers[0],
        allowSeconds: (seconds) => {
          const timeoutSeconds = Math.ceil(seconds) + IDLE_TIMEOUT_SECONDS;
          server.timeout(request, Math.min(MAX_IDLE_TIMEOUT_SECONDS, timeoutSeconds));
        },
      });
    };
    const options = {
      // Bun inlines NODE_ENV as "development", which would show source code in error pages.
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      routes: {
        "/healthz": () => health(200, "ok"),
        "/readyz": () => (isStopping ? health(503, "stopping") : health(200, readiness())),
      },
      fetch: answer,
      error: (error: unknown) => unforeseen(error, log),
    };
    if (address.kind === "unix") {
      if (isAbandoned(address.path)) rmSync(address.path);
      const server = Bun.serve({ ...options, unix: address.path });
      chmodSync(address.path, UNIX_SOCKET_MODE);
      return server;
    }
    return Bun.serve({
      ...options,
      hostname: address.hostname,
      port: address.port,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // If it is not set and development is off, Bun shares the port with other programs.
      reusePort: certificate !== null,
      ...(certificate && { tls: { ...TLS, cert: certificate.cert, key: certificate.key } }),
    });
  };

  // Servers with certificates share their port, so first make sure that no other program has it.
  if (certificate !== null) void serve(null).stop(true);
  open(certificate);
  const text = formatListenAddress(address);
  const url = address.kind === "unix" ? text : `${servers[0]?.protocol}://${text}`;
  return {
    /** The address as clients write it: `https://[::1]:443`, `unix:/path`. */
    url,
    /** True if a request has not got its whole response yet. */
    isPending: () => servers.some(({ pendingRequests }) => pendingRequests > 0),
    /**
     * Serves new connections with another certificate, without a failed request; resolves when the server
     * with the old one has stopped.
     *
     * Bun ignores a new certificate in `reload()`, so a second server shares the port and gets all new
     * connections. The first one closes each connection after its next response; connections that are
     * still open after the drain were idle all the time.
     */
    async renew(next: Certificate): Promise<void> {
      const [old] = servers;
      try {
        open(next);
      } catch (error) {
        const reason = reasonOf(error);
        log.error(`cannot serve the new certificate: ${reason}; the old certificate stays in use`);
        return;
      }
      const expires = new Date(next.expiresMs).toISOString();
      log.info("new certificate in use", { listener: url, expires });
      await Bun.sleep(DRAIN_MS);
      await old?.stop();
      servers.pop();
    },
    /** Closes each connection after its next response, and answers `/readyz` with 503. */
    drain(): void {
      isStopping = true;
    },
    /**
     * Accepts no new connections; resolves when running requests have their responses.
     *
     * @param closeAll closes connections with running requests too
     */
    async stop(closeAll: boolean): Promise<void> {
      isStopping = true;
      await Promise.all(servers.map((server) => server.stop(closeAll)));
      if (closeAll && address.kind === "unix") rmSync(address.path, { force: true });
    },
  };
}

/** The response to a request that made the app itself throw. */
function unforeseen(error: unknown, log: Log): Response {
  const requestId = crypto.randomUUID();
  log.error(traceOf(error), { requestId });
  return new Response(JSON.stringify(new ApiError("INTERNAL_ERROR", { requestId }).body), {
    status: 500,
    headers: { ...CONSTANT_HEADERS, "X-Request-Id": requestId },
  });
}

/** The answer to a load balancer or supervisor. It is neither counted nor logged, so it closes its connection. */
function health(status: number, text: string): Response {
  const headers = { "Cache-Control": "no-store", Connection: "close" };
  return new Response(`${text}\n`, { status, headers });
}

/**
 * True if a killed process left a socket file behind: connecting to it is refused. A busy socket and
 * one of another user fail in other ways, which node:net reports as refusals too.
 */
export function isAbandoned(path: string): boolean {
  const address = encodeUnixAddress(path);
  const socket = libc().socket(AF_UNIX, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0);
  const isRefused =
    libc().connect(socket, address, address.length) !== 0 &&
    errnoName(libc().errno()) === "ECONNREFUSED";
  libc().close(socket);
  return isRefused && statSync(path).isSocket();
}
