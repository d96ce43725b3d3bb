import { rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import type { Server } from "bun";
import type { App } from "./app.ts";
import type { Config, ListenAddress } from "./config.ts";
import { internalError } from "./http/errors.ts";
import type { Log } from "./log.ts";

/** No endpoint takes a body; a little one is tolerated. */
const MAX_BODY_BYTES = 16 * 1024;

/** How long a connection may be silent; handlers that work longer say so. */
const IDLE_TIMEOUT_SECONDS = 15;

/** The most that Bun takes for a silent connection. */
const MAX_IDLE_TIMEOUT_SECONDS = 255;

/** TLS 1.2, as Bun wants it: a number. */
const TLS_1_2 = 0x0303;

/** What is listening. */
export interface Listening {
  /** Where, as a client writes it: `http://127.0.0.1:8080`, `unix:/path`. */
  readonly urls: readonly string[];
  /**
   * Takes no new connections and waits until running requests have their answers, or until the
   * grace is over.
   */
  stop(graceMs: number): Promise<void>;
}

/** A listener could not be opened; the message says which and why. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/**
 * Opens every listener of the configuration.
 *
 * @throws ListenError where one cannot be opened, after closing those that were; where the default
 *   is in force and the machine lacks one of the two families, the other one is enough
 */
export async function listen(app: App, config: Config, log: Log): Promise<Listening> {
  const servers: Server<undefined>[] = [];
  const urls: string[] = [];
  for (const address of config.listen) {
    try {
      const server = await open(app, address, config, log);
      servers.push(server);
      urls.push(urlOf(server, address, config.tls !== null));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const message = `cannot listen on ${describe(address)}: ${reason}`;
      const isLast = address === config.listen.at(-1) && servers.length === 0;
      if (config.listenIsDefault && isFamilyMissing(error) && !isLast) {
        log.warn(message);
        continue;
      }
      for (const server of servers) server.stop(true);
      throw new ListenError(message, { cause: error });
    }
  }
  return {
    urls,
    async stop(graceMs) {
      const finished = Promise.all(servers.map((server) => server.stop()));
      await Promise.race([finished, Bun.sleep(graceMs)]);
      await Promise.all(servers.map((server) => server.stop(true)));
      for (const address of config.listen) {
        if (address.kind === "unix") rmSync(address.path, { force: true });
      }
    },
  };
}

async function open(
  app: App,
  address: ListenAddress,
  config: Config,
  log: Log,
): Promise<Server<undefined>> {
  const encrypted = address.kind === "tcp" && config.tls !== null;
  const common = {
    // Bun inlines NODE_ENV as "development", which would show source code in error pages.
    development: false,
    maxRequestBodySize: MAX_BODY_BYTES,
    fetch(request: Request, server: Server<undefined>) {
      return app.fetch(request, {
        peer: address.kind === "unix" ? null : (server.requestIP(request)?.address ?? null),
        encrypted,
        allowSeconds: (seconds) =>
          server.timeout(
            request,
            Math.min(MAX_IDLE_TIMEOUT_SECONDS, Math.ceil(seconds) + IDLE_TIMEOUT_SECONDS),
          ),
      });
    },
    error(error: unknown) {
      const requestId = crypto.randomUUID();
      log.error(error instanceof Error ? (error.stack ?? error.message) : String(error), {
        requestId,
      });
      return Response.json(internalError(requestId).body, { status: 500 });
    },
  };
  if (address.kind === "unix") {
    await removeStaleSocket(address.path);
    return Bun.serve({ ...common, unix: address.path });
  }
  return Bun.serve({
    ...common,
    hostname: address.hostname,
    port: address.port,
    idleTimeout: IDLE_TIMEOUT_SECONDS,
    ...(config.tls === null ? {} : { tls: tlsOptions(config.tls) }),
  });
}

function tlsOptions({ certFile, keyFile }: NonNullable<Config["tls"]>): Bun.TLSOptions {
  // Bun takes minVersion, which its types do not list.
  const options: Bun.TLSOptions & { minVersion: number } = {
    cert: Bun.file(certFile),
    key: Bun.file(keyFile),
    minVersion: TLS_1_2,
  };
  return options;
}

/** A socket file that a killed process left behind answers nobody and is in the way. */
async function removeStaleSocket(path: string): Promise<void> {
  if (!statSync(path, { throwIfNoEntry: false })?.isSocket()) return;
  const isAnswered = await new Promise<boolean>((resolve) => {
    const socket = connect(path, () => {
      socket.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });
  if (!isAnswered) rmSync(path, { force: true });
}

/** This machine does not have the address's family or the address itself. */
function isFamilyMissing(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "EADDRNOTAVAIL" || code === "EAFNOSUPPORT";
}

function urlOf(server: Server<undefined>, address: ListenAddress, encrypted: boolean): string {
  return address.kind === "unix"
    ? describe(address)
    : `${encrypted ? "https" : "http"}://${describe({ ...address, port: server.port ?? address.port })}`;
}

function describe(address: ListenAddress): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  const host = address.hostname.includes(":") ? `[${address.hostname}]` : address.hostname;
  return `${host}:${address.port}`;
}
