import { chmodSync, rmSync, statSync } from "node:fs";
import type { Server } from "bun";
import { formatListenAddress, type ListenAddress } from "../config/listen-address.ts";
import type { App } from "../http/app.ts";
import { ApiError } from "../http/errors.ts";
import { CONSTANT_HEADERS } from "../http/respond.ts";
import { errnoName, libc } from "../platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../platform/linux.ts";
import { traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Certificate } from "./certificate.ts";

/** No endpoint reads a body; a small one is tolerated. */
const MAX_BODY_BYTES = 16 * 1024;

/** How long a connection may be silent; handlers that take longer ask for more time. */
const IDLE_TIMEOUT_SECONDS = 15;

/** The longest idle timeout that Bun accepts. */
const MAX_IDLE_TIMEOUT_SECONDS = 255;

/** TLS 1.2 as a number, the form that Bun requires. */
const TLS_1_2 = 0x0303;

/** Of TLS 1.2, only what has forward secrecy and authenticated encryption; RFC 9325 section 4.2. */
const CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20";

/** The owner and the group may connect; operators add the proxy's user to the group. */
const UNIX_SOCKET_MODE = 0o660;

/** One address that the service listens on. */
export class Listener {
  readonly #app: App;
  readonly #log: Log;
  #address: ListenAddress;
  #isStopping = false;
  /** The current server first, and after it one with an old certificate until it has stopped. */
  readonly servers: Server<undefined>[] = [];

  /** Throws the error of Bun if the address cannot be listened on. */
  constructor(app: App, address: ListenAddress, certificate: Certificate | null, log: Log) {
    this.#app = app;
    this.#log = log;
    this.#address = address;
    // Servers with certificates share their port, so first make sure that no other program has it.
    if (certificate !== null) void this.#serve(null).stop(true);
    this.open(certificate);
  }

  /** Starts the server that accepts new connections from now on. */
  open(certificate: Certificate | null): void {
    const server = this.#serve(certificate);
    this.servers.unshift(server);
    if (this.#address.kind === "unix") return;
    // The next server must use the port that the system chose for this one.
    this.#address = { ...this.#address, port: server.port ?? this.#address.port };
  }

  /** The address as clients write it: `https://[::1]:443`, `unix:/path`. */
  get url(): string {
    const text = formatListenAddress(this.#address);
    return this.#address.kind === "unix" ? text : `${this.servers[0]?.protocol}://${text}`;
  }

  /** How many requests have not got their whole response yet. */
  get pendingRequests(): number {
    return this.servers.reduce((sum, { pendingRequests }) => sum + pendingRequests, 0);
  }

  /** Closes each connection after its next response, and answers `/readyz` with 503. */
  drain(): void {
    this.#isStopping = true;
  }

  /**
   * Accepts no new connections; resolves when running requests have their responses.
   *
   * @param closeAll closes connections with running requests too
   */
  async stop(closeAll: boolean): Promise<void> {
    this.drain();
    await Promise.all(this.servers.map((server) => server.stop(closeAll)));
    if (closeAll && this.#address.kind === "unix") rmSync(this.#address.path, { force: true });
  }

  #serve(certificate: Certificate | null): Server<undefined> {
    const address = this.#address;
    const answer = (route: string | null) => (request: Request, server: Server<undefined>) =>
      this.#answer(request, server, route, certificate !== null);
    const options = {
      // Bun inlines NODE_ENV as "development", which would show source code in error pages.
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      routes: {
        ...Object.fromEntries(this.#app.routes.map((route) => [route, answer(route)])),
        "/healthz": () => health(200, "ok"),
        "/readyz": () =>
          this.#isStopping
            ? health(503, "stopping")
            : health(200, this.#app.readiness?.() ?? "ready"),
      },
      fetch: answer(null),
      error: (error: unknown) => this.#unforeseen(error),
    };
    if (address.kind === "unix") {
      if (isAbandoned(address.path)) rmSync(address.path);
      const server = Bun.serve({ ...options, unix: address.path });
      chmodSync(address.path, UNIX_SOCKET_MODE);
      return server;
    }
    const tls = certificate && {
      cert: certificate.cert,
      key: certificate.key,
      minVersion: TLS_1_2,
      ciphers: CIPHERS,
    };
    return Bun.serve({
      ...options,
      hostname: address.hostname,
      port: address.port,
      idleTimeout: IDLE_TIMEOUT_SECONDS,
      // If it is not set and development is off, Bun shares the port with other programs.
      reusePort: tls !== null,
      ...(tls && { tls }),
    });
  }

  #answer(request: Request, server: Server<undefined>, route: string | null, encrypted: boolean) {
    const isUnix = this.#address.kind === "unix";
    const peer = isUnix ? undefined : server.requestIP(request)?.address;
    // The client has gone, so its address is unknown.
    if (!isUnix && peer === undefined) return new Response(null, { status: 400 });
    return this.#app.fetch(request, {
      connection: peer === undefined ? { kind: "unix" } : { kind: "tcp", peer, encrypted },
      route,
      draining: this.#isStopping || server !== this.servers[0],
      allowSeconds: (seconds) => {
        const timeoutSeconds = Math.ceil(seconds) + IDLE_TIMEOUT_SECONDS;
        server.timeout(request, Math.min(MAX_IDLE_TIMEOUT_SECONDS, timeoutSeconds));
      },
    });
  }

  /** The response to a request for which the app itself threw. */
  #unforeseen(error: unknown): Response {
    const requestId = crypto.randomUUID();
    this.#log.error(traceOf(error), { requestId });
    return new Response(JSON.stringify(new ApiError("INTERNAL_ERROR", { requestId }).body), {
      status: 500,
      headers: { ...CONSTANT_HEADERS, "X-Request-Id": requestId },
    });
  }
}

/** The answer to a load balancer or supervisor. It is neither counted nor logged, so it closes its connection. */
function health(status: number, text: string): Response {
  const headers = { "Cache-Control": "no-store", Connection: "close" };
  return new Response(`${text}\n`, { status, headers });
}

/**
 * Whether a killed process left a socket file behind: connecting to it is refused. A busy socket and
 * one of another user fail in other ways, which node:net reports as refusals too.
 */
function isAbandoned(path: string): boolean {
  const address = encodeUnixAddress(path);
  const socket = libc().socket(AF_UNIX, SOCK.stream | SOCK.nonblock | SOCK.cloexec, 0);
  const isRefused =
    libc().connect(socket, address, address.length) !== 0 &&
    errnoName(libc().errno()) === "ECONNREFUSED";
  libc().close(socket);
  return isRefused && statSync(path).isSocket();
}
