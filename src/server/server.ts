import { rmSync } from "node:fs";
import { formatListenAddress } from "../config/listen-address.ts";
import type { Config } from "../config/settings.ts";
import type { App } from "../http/app.ts";
import { errorCode, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Certificate } from "./certificate.ts";
import { Listener } from "./listener.ts";
import { isAbandoned } from "./unix-socket.ts";

/** What is listening. */
export interface Listening {
  /** Where, as a client writes it: `http://127.0.0.1:8080`, `unix:/path`. */
  readonly urls: readonly string[];
  /** Serves new connections with another certificate; connections that are open keep the old one. */
  renew(certificate: Certificate): void;
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
 * @param certificate for TCP listeners; null where they speak plain HTTP
 * @throws ListenError where one cannot be opened, after closing those that were; where the default
 *   is in force and the machine lacks one of the two families, the other one is enough
 */
export async function listen(
  app: App,
  config: Pick<Config, "listen" | "listenIsDefault">,
  certificate: Certificate | null,
  log: Log,
): Promise<Listening> {
  const listeners: Listener[] = [];
  for (const address of config.listen) {
    try {
      // One that a killed process has left behind is in the way.
      if (address.kind === "unix" && isAbandoned(address.path)) rmSync(address.path);
      listeners.push(new Listener(app, address, certificate, log));
    } catch (error) {
      const reason = reasonOf(error);
      const message = `cannot listen on ${formatListenAddress(address)}: ${reason}`;
      const isLast = address === config.listen.at(-1);
      if (config.listenIsDefault && isFamilyMissing(error) && !(isLast && listeners.length === 0)) {
        log.warn(message);
        continue;
      }
      await Promise.all(listeners.map((listener) => listener.end()));
      throw new ListenError(message, { cause: error });
    }
  }
  return {
    urls: listeners.map(({ url }) => url),
    renew(next) {
      for (const listener of listeners) listener.renew(next);
    },
    async stop(graceMs) {
      const finished = Promise.all(listeners.map((listener) => listener.finish()));
      await Promise.race([finished, Bun.sleep(graceMs)]);
      await Promise.all(listeners.map((listener) => listener.end()));
    },
  };
}

/** This machine does not have the address's family or the address itself. */
function isFamilyMissing(error: unknown): boolean {
  return ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(errorCode(error) ?? "");
}
