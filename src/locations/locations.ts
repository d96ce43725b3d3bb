import { closeSync, openSync, readSync } from "node:fs";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Config } from "../config/settings.ts";
import type { Call, Endpoint, KnownLocation, Question, Tools } from "../http/endpoint.ts";
import { ApiError, notConnected } from "../http/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { Answerer } from "./answerer.ts";
import { askAgent } from "./asker.ts";
import { NatsLink } from "./link.ts";
import { announcementSchema, readMessage, SUBJECTS } from "./message.ts";

/** How often an agent announces itself, and how long it is known. */
export const ANNOUNCE_MS = 5000;
const KNOWN_MS = 3 * ANNOUNCE_MS;

/** Roll calls are answered together: if a NATS server restarts, each of many instances makes one. */
const ROLL_CALL_MS = 1000;

/** Locations that are known at once; more of them mean that something else uses the subjects. */
const MAX_KNOWN = 1024;

/** The location of this process, and those of the agents that it can ask over NATS. */
export class Locations {
  readonly own: string | null;
  readonly #asks: boolean;
  /** Asks by their outcome: `result`, `error`, `left`, or the code of the location's own failure. */
  readonly asked: Record<string, number> = {
    result: 0,
    error: 0,
    left: 0,
    LOCATION_NOT_FOUND: 0,
    LOCATION_TIMEOUT: 0,
    LOCATION_UNAVAILABLE: 0,
  };
  readonly #link: NatsLink | null;
  readonly #since = new Date().toISOString();
  readonly #known = new Map<string, KnownLocation & { readonly seenMs: number }>();
  /** Makes the owners that agents see mean nothing to them. */
  readonly #salt = crypto.randomUUID();
  #answerer: Answerer | null = null;
  #announcing: Timer | undefined;
  #announcedMs = 0;
  #rollCall: Timer | undefined;

  /** @param asks whether it asks others too, or only answers */
  constructor({ location, nats }: Pick<Config, "location" | "nats">, asks: boolean, log: Log) {
    this.own = location;
    this.#asks = asks;
    this.#link = nats && new NatsLink(nats, log, (connection) => this.#join(connection));
  }

  /** Whether there is a connection to NATS; null if none is configured. */
  get isConnected(): boolean | null {
    return this.#link && this.#link.connection !== null;
  }

  /** Asks from other instances that run now. */
  get running(): number {
    return this.#answerer?.running ?? 0;
  }

  /** Lets other instances ask this process, if it has a location. */
  answer(endpoints: readonly Endpoint[], tools: Tools, log: Log): void {
    if (this.own === null || this.#link === null) return;
    this.#answerer = new Answerer(this.own, endpoints, tools, log);
    this.#announcing = setInterval(() => this.#announce(), ANNOUNCE_MS);
    this.#announcing.unref();
    if (this.#link.connection) this.#serve(this.#link.connection);
  }

  /** Every location that can be asked, by name. */
  list(): readonly KnownLocation[] {
    const nowMs = performance.now();
    for (const [name, { seenMs }] of this.#known) {
      if (nowMs - seenMs > KNOWN_MS || !this.isConnected) this.#known.delete(name);
    }
    const others = [...this.#known.values()].filter(({ location }) => location !== this.own);
    const own = this.own === null ? [] : [{ location: this.own, ...this.#self() }];
    return [...own, ...others.map(({ seenMs, ...known }) => known)].sort((a, b) =>
      a.location < b.location ? -1 : 1,
    );
  }

  /** See `askAgent`. */
  async ask(location: string, question: Question, call: Call): Promise<object> {
    const count = (outcome: string) => {
      this.asked[outcome] = (this.asked[outcome] ?? 0) + 1;
    };
    try {
      const result = await this.#ask(location, question, call);
      count("result");
      return result;
    } catch (error) {
      if (!(error instanceof ApiError)) count("left");
      else count(error.code.startsWith("LOCATION_") ? error.code : "error");
      throw error;
    }
  }

  /** Takes no more asks of other instances, and ends those that still run after `graceMs` milliseconds. */
  async leave(graceMs: number): Promise<void> {
    clearInterval(this.#announcing);
    clearTimeout(this.#rollCall);
    if (this.own !== null) this.#link?.connection?.publish(SUBJECTS.here(this.own));
    await this.#answerer?.stop(graceMs);
  }

  /** Closes the connection, after `leave`. */
  async close(): Promise<void> {
    await this.#link?.close();
  }

  async #ask(location: string, question: Question, call: Call): Promise<object> {
    if (this.#link === null) throw new ApiError("LOCATION_NOT_FOUND", { location });
    const { connection } = this.#link;
    if (connection === null) throw notConnected(location);
    const owner = new Bun.CryptoHasher("sha256", this.#salt).update(call.owner).digest("hex");
    return await askAgent(connection, location, question, call, owner.slice(0, 16));
  }

  #join(connection: NatsConnection): void {
    if (this.#answerer !== null) this.#serve(connection);
    if (!this.#asks) return;
    this.#known.clear();
    connection.subscribe(SUBJECTS.here("*"), {
      callback: (error, { subject, data }) => {
        if (error) return;
        const location = subject.slice(SUBJECTS.here("").length);
        const said = readMessage(announcementSchema, data);
        if (said === null) this.#known.delete(location);
        else if (this.#known.size < MAX_KNOWN || this.#known.has(location)) {
          this.#known.set(location, { location, ...said, seenMs: performance.now() });
        }
      },
    });
    connection.publish(SUBJECTS.rollCall);
  }

  #serve(connection: NatsConnection): void {
    this.#answerer?.serve(connection);
    connection.subscribe(SUBJECTS.rollCall, {
      callback: (error) => {
        if (error === null) this.#announceSoon();
      },
    });
    this.#announce();
  }

  #announceSoon(): void {
    const waitMs = Math.max(0, this.#announcedMs + ROLL_CALL_MS - performance.now());
    this.#rollCall ??= setTimeout(() => this.#announce(), waitMs);
  }

  #announce(): void {
    clearTimeout(this.#rollCall);
    this.#rollCall = undefined;
    this.#announcedMs = performance.now();
    if (this.own === null) return;
    this.#link?.connection?.publish(SUBJECTS.here(this.own), JSON.stringify(this.#self()));
  }

  #self(): Omit<KnownLocation, "location"> {
    return { version: VERSION, families: ownFamilies(), since: this.#since };
  }
}

/** The families in which this machine has an address beyond itself and its links. */
function ownFamilies(): (4 | 6)[] {
  // Not with networkInterfaces(), because the systemd unit forbids the netlink socket that it needs.
  const has4 = /^(?!Iface|\*)\S/m.test(startOf("/proc/net/route"));
  const has6 = / 00 [0-9a-f]{2} +(?!lo$)\S+$/m.test(startOf("/proc/net/if_inet6"));
  return [...(has4 ? ([4] as const) : []), ...(has6 ? ([6] as const) : [])];
}

/** The first rows of a table of the kernel, which can have a million; nothing if it does not exist. */
function startOf(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const bytes = Buffer.alloc(16_384);
      return bytes.toString("latin1", 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
