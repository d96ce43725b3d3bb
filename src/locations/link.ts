import { readFile } from "node:fs/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Config } from "../config/settings.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { MAX_QUESTION_BYTES } from "./protocol.ts";

/** The servers, and how to log in. */
export type NatsSettings = NonNullable<Config["nats"]>;

/** Milliseconds that a server may take to answer at the start of a connection. */
const CONNECT_TIMEOUT_MS = 5000;

/** Milliseconds between pings. Two missing answers end the connection, so a server that hangs is noticed within half a minute. */
const PING_INTERVAL_MS = 10_000;

/** Milliseconds between two attempts. A random time up to the same length is added, so that a fleet spreads out. */
const RETRY_MS = 1000;

/** Logged complaints of the server about one connection; further ones have the same cause. */
const MAX_COMPLAINTS = 3;

/** An NKey seed of a user, alone on its line. */
const SEED_FORM = /^SU[A-Z2-7]{56}(?=\s*$)/m;

/**
 * Connects to a NATS server. The client is loaded here, so that a service without the setting does not
 * have it in memory.
 *
 * @returns the connection, and the name below which its answers come: its public NKey, so that the server
 *   can keep other services from reading there, or a random name
 * @throws Error if no server can be used
 */
export async function connectToNats({ servers, tls, credsFile }: NatsSettings) {
  const nats = await import("@nats-io/transport-node");
  const creds = credsFile === null ? null : await readFile(credsFile);
  const text = creds?.toString().trim() ?? "";
  const [seed] = SEED_FORM.exec(text) ?? [];
  const bytes = new TextEncoder().encode(seed);
  if (creds !== null && text !== seed && !text.includes("NKEY SEED")) {
    throw new Error(`${credsFile} is neither an NKey seed, which begins with SU, nor credentials`);
  }
  const connection = await nats.connect({
    servers: [...servers],
    name: "sixscope",
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
    // After a reconnection, the client would send old messages for which no caller waits any more.
    reconnect: false,
    ...(tls && { tls: {} }),
    ...(creds !== null && {
      authenticator: text === seed ? nats.nkeyAuthenticator(bytes) : nats.credsAuthenticator(creds),
    }),
  });
  const service = seed ? nats.nkeys.fromSeed(bytes).getPublicKey() : crypto.randomUUID();
  if ((connection.info?.max_payload ?? 0) >= MAX_QUESTION_BYTES) return { connection, service };
  await connection.close();
  throw new Error(`max_payload of the server is less than ${MAX_QUESTION_BYTES} bytes`);
}

/** Makes a key pair with which a client logs in to NATS: the seed is its secret. */
export async function newKey() {
  const { nkeys } = await import("@nats-io/transport-node");
  const pair = nkeys.createUser();
  const seed = new TextDecoder().decode(pair.getSeed());
  return { seed, publicKey: pair.getPublicKey() };
}

/** See `connectToNats`. */
export type Connected = Awaited<ReturnType<typeof connectToNats>>;

/**
 * Keeps a connection to NATS open in the background: opens it again whenever it is lost.
 *
 * @param onConnect called with each new connection, which has no subscriptions yet
 */
export function openLink(
  settings: NatsSettings,
  log: Log,
  onConnect: (current: Connected) => void,
) {
  let current: Connected | null = null;
  let isClosed = false;
  const openConnection = () => (current?.connection.isClosed() ? null : current);
  const keepOpen = async () => {
    let isLogged = false;
    while (!isClosed) {
      let reason = "the server closed the connection";
      try {
        current = await connectToNats(settings);
        const { connection } = current;
        log.info("connected to NATS", { server: connection.getServer() });
        isLogged = false;
        void logComplaints(connection, log);
        onConnect(current);
        const error = await connection.closed();
        if (error instanceof Error) reason = reasonOf(error);
      } catch (error) {
        reason = reasonOf(error);
      }
      current = null;
      if (isClosed) return;
      if (!isLogged) {
        const advice = "sixscope goes on trying, and doctor says what to do";
        log.warn(`no connection to NATS; ${advice}`, { reason });
        isLogged = true;
      }
      await Bun.sleep(RETRY_MS * (1 + Math.random()));
    }
  };
  void keepOpen();
  return {
    /** The open connection and the name below which its answers come, or null. */
    current: openConnection,
    /** Sends all published messages, and closes the connection. */
    async close(): Promise<void> {
      isClosed = true;
      await openConnection()?.connection.drain();
    },
  };
}

/** Logs refusals of the server, such as of a subject that its configuration does not allow. */
async function logComplaints(connection: NatsConnection, log: Log): Promise<void> {
  let complaints = 0;
  for await (const status of connection.status()) {
    if (status.type !== "error" || ++complaints > MAX_COMPLAINTS) continue;
    const reason = reasonOf(status.error);
    const advice = "see docs/operations.md for its permissions";
    log.warn(`NATS refuses what sixscope needs; ${advice}`, { reason });
  }
}
