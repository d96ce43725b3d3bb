import { formatListenAddress } from "../config/listen-address.ts";
import type { Config } from "../config/settings.ts";
import type { App } from "../http/app.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { type Certificate, serveCertificate, steerToNewServers } from "./certificate.ts";
import { boundConnections, boundUnreadResponses } from "./connections.ts";
import { Listener } from "./listener.ts";

/** The open listeners of the service. */
export type Listening = Awaited<ReturnType<typeof listen>>;

/** A listener cannot be opened; the message says which one and why. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

/**
 * Opens all listeners of the configuration.
 *
 * @param certificate for TCP listeners; null for plain HTTP
 * @throws ListenError if one cannot be opened, after closing the others; of the default addresses,
 *   one is enough on a machine that lacks the other address family
 */
export async function listen(
  app: App,
  config: Pick<Config, "listen" | "listenIsDefault" | "trustedProxies">,
  certificate: Certificate | null,
  log: Log,
) {
  const listeners: Listener[] = [];
  const stopAll = (closeAll: boolean) =>
    Promise.all(listeners.map((listener) => listener.stop(closeAll)));
  for (const address of config.listen) {
    try {
      const isTcp = address.kind === "tcp";
      listeners.push(new Listener(app, address, isTcp ? certificate : null, log));
    } catch (error) {
      const message = `cannot listen on ${formatListenAddress(address)}: ${reasonOf(error)}`;
      const isLast = address === config.listen.at(-1);
      if (config.listenIsDefault && isFamilyMissing(error) && !(isLast && listeners.length === 0)) {
        log.warn(message);
        continue;
      }
      await stopAll(true);
      throw new ListenError(message, { cause: error });
    }
  }
  if (certificate !== null) steerToNewServers();
  boundUnreadResponses();
  const stopCounting = boundConnections(config.trustedProxies.prefixes, log);
  return {
    /** The addresses as clients write them: `http://127.0.0.1:8080`, `unix:/path`. */
    urls: listeners.map(({ url }) => url),
    /**
     * Serves new connections with another certificate; resolves when the servers with the old one
     * have stopped.
     */
    async renew(next: Certificate): Promise<void> {
      const encrypted = listeners.filter(({ url }) => url.startsWith("https:"));
      const renewed = encrypted.map((listener) => serveCertificate(listener, next, log));
      boundUnreadResponses();
      await Promise.all(renewed);
    },
    /**
     * Accepts no new connections, and closes all others when running requests have their responses,
     * or after `graceMs` milliseconds.
     */
    async stop(graceMs: number): Promise<void> {
      await Promise.race([stopAll(false), Bun.sleep(graceMs)]);
      await stopAll(true);
      stopCounting();
    },
  };
}

/** Whether the machine lacks the address or its family. */
function isFamilyMissing(error: unknown): boolean {
  return ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(errorCode(error) ?? "");
}
