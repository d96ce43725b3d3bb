import { lookup } from "node:dns/promises";
import { dirname } from "node:path";
import { formatListenAddress, isLoopback, type ListenAddress } from "../config/listen-address.ts";
import { ownName } from "../platform/users.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { App } from "./app.ts";
import { type Certificate, steerToNewServers } from "./certificate.ts";
import { boundUnreadResponses } from "./connections.ts";
import { type Listener, openListener } from "./listener.ts";

/**
 * Opens a listener on each address.
 *
 * @param certificate for TCP listeners; null for plain HTTP
 * @param readiness the text of `/readyz` until the service stops
 * @throws Error that names the address that cannot be opened, and the reason, after it has closed the others. A loopback
 *   address of a family that the machine lacks is skipped if another address can be opened
 */
export async function listen(
  app: App,
  addresses: readonly ListenAddress[],
  certificate: Certificate | null,
  log: Log,
  readiness = () => "ready",
) {
  const listeners: Listener[] = [];
  const stopAll = (closeAll: boolean) =>
    Promise.all(listeners.map((listener) => listener.stop(closeAll)));
  for (const address of addresses) {
    try {
      const isTcp = address.kind === "tcp";
      listeners.push(openListener(app, address, isTcp ? certificate : null, log, readiness));
    } catch (error) {
      const reason = await whyNot(address, error);
      const message = `cannot listen on ${formatListenAddress(address)}: ${reason}`;
      const isLast = address === addresses.at(-1);
      const isOnly = isLast && listeners.length === 0;
      // The machine lacks the address or its family.
      const isMissing = ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(errorCode(error) ?? "");
      if (isLoopback(address) && isMissing && !isOnly) {
        log.warn(message);
        continue;
      }
      await stopAll(true);
      throw new Error(message, { cause: error });
    }
  }
  if (certificate !== null) steerToNewServers();
  boundUnreadResponses();
  return {
    /** The addresses as clients write them: `http://127.0.0.1:8080`, `unix:/path`. */
    urls: listeners.map(({ url }) => url),
    /**
     * Serves new connections with another certificate; resolves when the servers with the old one
     * have stopped.
     */
    async renew(next: Certificate): Promise<void> {
      const encrypted = listeners.filter(({ url }) => url.startsWith("https:"));
      const renewed = encrypted.map((listener) => listener.renew(next));
      boundUnreadResponses();
      await Promise.all(renewed);
    },
    /** Announces that the service stops, and goes on answering. */
    drain(): void {
      for (const listener of listeners) listener.drain();
    },
    /**
     * Accepts no new connections, and closes all others when running requests have their responses,
     * or after `graceMs` milliseconds.
     */
    async stop(graceMs: number): Promise<void> {
      await Promise.race([stopAll(false), allAnswered(listeners), Bun.sleep(graceMs)]);
      await stopAll(true);
    },
  };
}

/**
 * Resolves when no request has run for a moment, so that requests on their way have arrived. Bun itself would
 * wait 12 s for the rest of a request that a client has begun.
 */
async function allAnswered(listeners: readonly Listener[]): Promise<void> {
  const MOMENT_MS = 250;
  const POLL_MS = 25;
  for (let quietMs = 0; quietMs < MOMENT_MS; quietMs += POLL_MS) {
    await Bun.sleep(POLL_MS);
    if (listeners.some(({ isPending }) => isPending())) quietMs = 0;
  }
}

/** The reason why an address cannot be opened, and advice. */
async function whyNot(address: ListenAddress, error: unknown): Promise<string> {
  const code = errorCode(error);
  if (address.kind === "unix") {
    const advice = `; let ${ownName()} write to ${dirname(address.path)}`;
    return `${reasonOf(error)}${code === "EACCES" ? advice : ""}`;
  }
  // For a name that does not resolve, Bun reports the error of an earlier call.
  const unresolved = await lookup(address.hostname).then(() => null, reasonOf);
  if (unresolved)
    return `the name does not resolve (${unresolved}); use an address of this machine`;
  return REASONS[code ?? ""] ?? reasonOf(error);
}

/** The reasons why a port cannot be opened, by the code of the error. */
const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another process uses the port (ss -ltnp shows which), or another address of the settings; stop that process, or choose another port in SIXSCOPE_LISTEN or SIXSCOPE_METRICS_LISTEN",
  EADDRNOTAVAIL: "this machine does not have the address (EADDRNOTAVAIL); see ip address",
  EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE (EACCES)",
};
