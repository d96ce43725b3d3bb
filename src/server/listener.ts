import { chmodSync, rmSync } from "node:fs";
import type { Server } from "bun";
import { formatListenAddress, type ListenAddress } from "../config/listen-address.ts";
import type { App } from "../http/app.ts";
import type { Connection } from "../http/client-address.ts";
import type { Bindings } from "../http/context.ts";
import { internalError } from "../http/errors.ts";
import { CONSTANT_HEADERS } from "../http/middleware.ts";
import { SystemError } from "../platform/libc.ts";
import { reasonOf, traceOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Certificate } from "./certificate.ts";
import { listeningSockets, steerConnections } from "./reuseport.ts";

/** No endpoint takes a body; a little one is tolerated. */
const MAX_BODY_BYTES = 16 * 1024;

/** How long a connection may be silent; handlers that work longer say so. */
const IDLE_TIMEOUT_SECONDS = 15;

/** The most that Bun takes for a silent connection. */
const MAX_IDLE_TIMEOUT_SECONDS = 255;

/** TLS 1.2, as Bun wants it: a number. */
const TLS_1_2 = 0x0303;

/**
 * How long a server with an old certificate runs on: long enough for a client that is in the middle
 * of connecting, short enough that the next renewal is taken up within ten seconds.
 */
const DRAIN_MS = 8_000;

/** The owner and the group, to which a proxy's user is added, may connect. */
const UNIX_SOCKET_MODE = 0o660;

/** A server of Bun's, and whether it asks its clients to come back on new connections. */
interface OpenServer {
  readonly server: Server<undefined>;
  draining: boolean;
}

/** One address that is listened on; a new certificate means a new server on the same port. */
export class Listener {
  readonly #app: App;
  readonly #address: ListenAddress;
  readonly #log: Log;
  #current: OpenServer;
  /** Has the old certificate, and runs on until its clients have gone. */
  #retired: OpenServer | null = null;
  /** The newest certificate that is not served yet; one renewal runs at a time. */
  #next: Certificate | null = null;

  /** Throws what Bun throws where the address cannot be listened on. */
  constructor(app: App, address: ListenAddress, certificate: Certificate | null, log: Log) {
    this.#app = app;
    this.#address = address;
    this.#log = log;
    if (address.kind === "tcp" && certificate !== null) {
      // Servers with certificates share the port, which shall not be another program's.
      void this.#serve(address, null).server.stop(true);
    }
    this.#current = this.#serve(address, certificate);
  }

  get url(): string {
    const address = this.#boundAddress();
    if (address.kind === "unix") return formatListenAddress(address);
    return `${this.#current.server.protocol}://${formatListenAddress(address)}`;
  }

  renew(certificate: Certificate): void {
    if (this.#address.kind === "unix") return;
    this.#next = certificate;
    if (this.#retired === null) void this.#renewAll();
  }

  async #renewAll(): Promise<void> {
    for (let next = this.#next; next !== null; next = this.#next) {
      this.#next = null;
      await this.#replace(next);
    }
  }

  /** Takes no new connections; resolves when running requests have their answers. */
  async finish(): Promise<void> {
    await Promise.all(
      this.#open().map((open) => {
        open.draining = true;
        return open.server.stop();
      }),
    );
  }

  /** Closes every connection. */
  async end(): Promise<void> {
    await Promise.all(this.#open().map(({ server }) => server.stop(true)));
    if (this.#address.kind === "unix") rmSync(this.#address.path, { force: true });
  }

  #open(): OpenServer[] {
    return this.#retired === null ? [this.#current] : [this.#current, this.#retired];
  }

  /**
   * Bun ignores a new certificate in `reload()`, so a second server shares the port, takes all new
   * connections, and the first one closes each of its own behind an answer. What is still open after
   * the drain has been idle all the time.
   */
  async #replace(certificate: Certificate): Promise<void> {
    const old = this.#current;
    try {
      this.#current = this.#serveInsteadOf(this.#boundAddress(), certificate);
    } catch (error) {
      const reason = reasonOf(error);
      this.#log.error(
        `the new certificate cannot be served: ${reason}; the old one stays in force`,
      );
      return;
    }
    this.#log.info("new certificate in force", {
      listener: this.url,
      expires: new Date(certificate.expiresMs).toISOString(),
    });
    this.#retired = old;
    old.draining = true;
    await Bun.sleep(DRAIN_MS);
    await old.server.stop();
    this.#retired = null;
  }

  /** Where steering fails, both servers take connections until the old one stops. */
  #serveInsteadOf(address: ListenAddress, certificate: Certificate): OpenServer {
    const NEWEST_OF_TWO = 1;
    const before = this.#orNull(listeningSockets);
    const next = this.#serve(address, certificate);
    this.#orNull(() => {
      for (const descriptor of listeningSockets()) {
        if (before?.has(descriptor) === false) steerConnections(descriptor, NEWEST_OF_TWO);
      }
    });
    return next;
  }

  #orNull<T>(call: () => T): T | null {
    try {
      return call();
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      this.#log.debug("new connections cannot be steered", { reason: error.message });
      return null;
    }
  }

  /** The address with the port that the system has chosen where the configuration says 0. */
  #boundAddress(): ListenAddress {
    const address = this.#address;
    return address.kind === "unix"
      ? address
      : { ...address, port: this.#current.server.port ?? address.port };
  }

  #serve(address: ListenAddress, certificate: Certificate | null): OpenServer {
    const encrypted = address.kind === "tcp" && certificate !== null;
    const fetch = (request: Request) => {
      const connection = connectionOf(request, open.server, address, encrypted);
      return connection === null
        ? new Response(null, { status: 400 })
        : this.#app.fetch(request, bindingsOf(request, open, connection));
    };
    const common = {
      // Bun inlines NODE_ENV as "development", which would show source code in error pages.
      development: false,
      maxRequestBodySize: MAX_BODY_BYTES,
      fetch,
      error: (error: unknown) => this.#unforeseen(error),
    };
    const open: OpenServer = { server: start(common, address, certificate), draining: false };
    return open;
  }

  /** What was thrown past the app itself. */
  #unforeseen(error: unknown): Response {
    const requestId = crypto.randomUUID();
    this.#log.error(traceOf(error), { requestId });
    return new Response(JSON.stringify(internalError(requestId).body), {
      status: 500,
      headers: { ...CONSTANT_HEADERS, "X-Request-Id": requestId },
    });
  }
}

type CommonOptions = Pick<
  Bun.Serve.Options<undefined>,
  "development" | "maxRequestBodySize" | "error"
> & { fetch(request: Request): Response | Promise<Response> };

function start(
  common: CommonOptions,
  address: ListenAddress,
  certificate: Certificate | null,
): Server<undefined> {
  if (address.kind === "unix") {
    const server = Bun.serve({ ...common, unix: address.path });
    chmodSync(address.path, UNIX_SOCKET_MODE);
    return server;
  }
  const { hostname, port } = address;
  // Without this Bun shares the port with whoever has it, as long as development is off.
  const tcp = { ...common, hostname, port, idleTimeout: IDLE_TIMEOUT_SECONDS, reusePort: false };
  if (certificate === null) return Bun.serve(tcp);
  return Bun.serve({ ...tcp, tls: tlsOptions(certificate), reusePort: true });
}

/** How the request came; null where its client is gone already, so that nobody knows who it was. */
function connectionOf(
  request: Request,
  server: Server<undefined>,
  address: ListenAddress,
  encrypted: boolean,
): Connection | null {
  if (address.kind === "unix") return { kind: "unix" };
  const peer = server.requestIP(request)?.address;
  return peer === undefined ? null : { kind: "tcp", peer, encrypted };
}

function bindingsOf(
  request: Request,
  { server, draining }: OpenServer,
  connection: Connection,
): Bindings {
  return {
    connection,
    draining,
    allowSeconds: (seconds) =>
      server.timeout(
        request,
        Math.min(MAX_IDLE_TIMEOUT_SECONDS, Math.ceil(seconds) + IDLE_TIMEOUT_SECONDS),
      ),
  };
}

function tlsOptions({ cert, key }: Certificate): Bun.TLSOptions {
  // Bun takes minVersion, which its types do not list.
  const options: Bun.TLSOptions & { minVersion: number } = { cert, key, minVersion: TLS_1_2 };
  return options;
}
