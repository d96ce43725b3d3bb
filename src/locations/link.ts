import { readFile } from "node:fs/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Config } from "../config/settings.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { MAX_ASK_BYTES } from "./message.ts";

/** Which servers, and how to log in. */
export type NatsSettings = NonNullable<Config["nats"]>;

/** Milliseconds that a server may take to answer at the start of a connection. */
const CONNECT_TIMEOUT_MS = 5000;

/** Two missing answers end the connection, so a server that hangs is noticed within half a minute. */
const PING_INTERVAL_MS = 10_000;

/** Milliseconds between two attempts, and at most as many more at random, so that a fleet spreads out. */
const RETRY_MS = 1000;

/** Complaints of the server about one connection that are logged; more of them have one cause. */
const MAX_COMPLAINTS = 3;

/** An NKey seed of a user, alone in its file. */
const SEED_FORM = /^SU[A-Z2-7]{56}$/;

/**
 * Connects to a NATS server. The client is loaded here, so that a service without the setting does not
 * have it in memory.
 *
 * @throws Error if no server can be used
 */
export async function connectToNats({ servers, tls, credsFile }: NatsSettings) {
  const nats = await import("@nats-io/transport-node");
  const creds = credsFile === null ? null : await readFile(credsFile);
  const seed = creds?.toString().trim() ?? "";
  const isSeed = SEED_FORM.test(seed);
  if (creds !== null && !isSeed && !seed.includes("NKEY SEED")) {
    throw new Error(`${credsFile} is neither an NKey seed, which begins with SU, nor credentials`);
  }
  const connection = await nats.connect({
    servers: [...servers],
    name: "sixscope",
    timeout: CONNECT_TIMEOUT_MS,
    pingInterval: PING_INTERVAL_MS,
    // The client would send later what was published meanwhile, when no caller waits any more.
    reconnect: false,
    ...(tls && { tls: {} }),
    ...(creds !== null && {
      authenticator: isSeed
        ? nats.nkeyAuthenticator(new TextEncoder().encode(seed))
        : nats.credsAuthenticator(creds),
    }),
  });
  if ((connection.info?.max_payload ?? 0) >= MAX_ASK_BYTES) return connection;
  await connection.close();
  throw new Error(`max_payload of the server is less than ${MAX_ASK_BYTES} bytes`);
}

/** Makes a key pair with which a client logs in to NATS: the seed is its secret. */
export async function newKey() {
  const { nkeys } = await import("@nats-io/transport-node");
  const pair = nkeys.createUser();
  const seed = new TextDecoder().decode(pair.getSeed());
  return { seed, publicKey: pair.getPublicKey() };
}

/** Keeps a connection to NATS, and opens it again for ever in the background. */
export class NatsLink {
  readonly #settings: NatsSettings;
  readonly #log: Log;
  readonly #onConnect: (connection: NatsConnection) => void;
  #connection: NatsConnection | null = null;
  #isClosed = false;

  /** @param onConnect called with each new connection, which has no subscriptions yet */
  constructor(settings: NatsSettings, log: Log, onConnect: (connection: NatsConnection) => void) {
    this.#settings = settings;
    this.#log = log;
    this.#onConnect = onConnect;
    void this.#keep();
  }

  /** The open connection, or null. */
  get connection(): NatsConnection | null {
    return this.#connection?.isClosed() ? null : this.#connection;
  }

  /** Sends what is published, and closes the connection. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.connection?.drain();
  }

  async #keep(): Promise<void> {
    let isKnown = false;
    while (!this.#isClosed) {
      let reason = "the server closed the connection";
      try {
        const connection = await connectToNats(this.#settings);
        this.#connection = connection;
        this.#log.info("connected to NATS", { server: connection.getServer() });
        isKnown = false;
        void this.#logComplaints(connection);
        this.#onConnect(connection);
        const error = await connection.closed();
        if (error instanceof Error) reason = reasonOf(error);
      } catch (error) {
        reason = reasonOf(error);
      }
      this.#connection = null;
      if (this.#isClosed) return;
      if (!isKnown) {
        this.#log.warn(
          "no connection to NATS; sixscope goes on trying, and doctor says what to do",
          { reason },
        );
        isKnown = true;
      }
      await Bun.sleep(RETRY_MS * (1 + Math.random()));
    }
  }

  /** Logs what the server refuses, such as a subject that its configuration does not allow. */
  async #logComplaints(connection: NatsConnection): Promise<void> {
    let complaints = 0;
    for await (const status of connection.status()) {
      if (status.type !== "error" || ++complaints > MAX_COMPLAINTS) continue;
      this.#log.warn(
        "NATS refuses what sixscope needs; see docs/operations.md for its permissions",
        {
          reason: reasonOf(status.error),
        },
      );
    }
  }
}
