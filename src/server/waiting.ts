import type { Gate } from "../gate/gate.ts";
import type { Keyring } from "../keys/keyring.ts";
import type { Log } from "../util/log.ts";
import { round } from "../util/numbers.ts";

/** The time between reports of the longest wait, in milliseconds. */
const REPORT_MS = 60_000;

/**
 * Logs once a minute the client that has waited longest for probe slots and for others' packets. Returns a function
 * that gives the last report to the metrics.
 *
 * @param names true if clients may be named: by the name of a key, an address, or a service that asks over NATS
 */
export function reportWaiting(gate: Gate, keyring: Keyring | null, names: boolean, log: Log) {
  const message = "waited longest for probe slots and others' packets in the last minute";
  let longest: { readonly client?: string; readonly seconds: number } | null = null;
  setInterval(() => {
    const longestWait = gate.takeLongestWait();
    longest = null;
    if (longestWait === undefined) return;
    const [client, ms] = longestWait;
    const key = keyring?.records().find(({ sha256 }) => sha256 === client)?.name;
    longest = { ...(names && { client: key ?? client }), seconds: round(ms / 1000, 1) };
    log.info(message, { ...longest });
  }, REPORT_MS).unref();
  return () => longest;
}
