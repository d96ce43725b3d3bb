import { closeSync, openSync, readSync } from "node:fs";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { formatPrefix } from "../addr/prefix.ts";
import type { Call, Endpoint, KnownLocation, Question, Services } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import { ALL_LOCATIONS, type Config, LOCATION_FORM } from "../config/settings.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { type Agent, createAgent } from "./agent.ts";
import { askAgent } from "./ask-agent.ts";
import { openLink } from "./link.ts";
import {
  announcementSchema,
  MAX_ANNOUNCEMENT_BYTES,
  onMessage,
  readMessage,
  SUBJECTS,
} from "./protocol.ts";
import { NOT_CONNECTED, unavailable } from "./replies.ts";

/** How often an agent announces itself, and how long it is known. */
export const ANNOUNCE_MS = 5000;
const KNOWN_MS = 3 * ANNOUNCE_MS;

/** Roll calls are answered together: if a NATS server restarts, each of many instances makes one. */
const ROLL_CALL_MS = 1000;

/** Locations that are known at once; more of them mean that something else uses the subjects. */
const MAX_KNOWN = 1024;

/** How soon after an announcement the next one of the location is read; agents send one a second at most. */
const READ_AGAIN_MS = 250;

/** An announcement of a location; null for one that is not valid, or if its agent has left. */
type Said = Omit<KnownLocation, "location"> | null;

/** See `createLocations`. */
export type Locations = ReturnType<typeof createLocations>;

/**
 * The location of this process, and those of the agents that it can ask over NATS.
 *
 * @param asks true if it asks others too, false if it only answers
 */
export function createLocations(
  { location: own, nats, targets }: Pick<Config, "location" | "nats" | "targets">,
  asks: boolean,
  log: Log,
) {
  /** Questions by their outcome: `result`, `error`, `left`, or the code of the location's own failure. */
  const asked: Record<string, number> = {
    result: 0,
    error: 0,
    left: 0,
    LOCATION_NOT_FOUND: 0,
    LOCATION_TIMEOUT: 0,
    LOCATION_UNAVAILABLE: 0,
  };
  const since = new Date().toISOString();
  const known = new Map<string, { readonly said: Said; readonly seenMs: number }>();
  const [allow, deny] = [targets.allow.map(formatPrefix), targets.deny.map(formatPrefix)];
  const policy = { mode: targets.mode, allow, deny };
  /** Makes the owners that agents see mean nothing to them. */
  const salt = crypto.randomUUID();
  let agent: Agent | null = null;
  let announcing: Timer | undefined;
  let announcedMs = 0;
  let forgotMs = 0;
  let rollCall: Timer | undefined;

  const self = () => ({ version: VERSION, families: ownFamilies(), since });

  const announce = () => {
    clearTimeout(rollCall);
    rollCall = undefined;
    announcedMs = performance.now();
    if (own !== null) link?.current?.connection.publish(SUBJECTS.here(own), JSON.stringify(self()));
  };

  const announceSoon = () => {
    const waitMs = Math.max(0, announcedMs + ROLL_CALL_MS - performance.now());
    rollCall ??= setTimeout(announce, waitMs);
  };

  const serve = (connection: NatsConnection) => {
    agent?.serve(connection);
    connection.subscribe(SUBJECTS.rollCall, { callback: onMessage(announceSoon) });
    announce();
  };

  const forgetSilent = (nowMs: number) => {
    forgotMs = nowMs;
    for (const [name, { said, seenMs }] of known) {
      if (nowMs - seenMs > (said === null ? READ_AGAIN_MS : KNOWN_MS)) known.delete(name);
    }
  };

  const noteAnnouncement = ({ subject, data }: Msg) => {
    const location = subject.slice(SUBJECTS.here("").length);
    const seenMs = performance.now();
    const before = known.get(location);
    if (before === undefined) {
      if (!LOCATION_FORM.test(location) || location === ALL_LOCATIONS) return;
      if (known.size >= MAX_KNOWN && seenMs - forgotMs > READ_AGAIN_MS) forgetSilent(seenMs);
      if (known.size >= MAX_KNOWN) return;
    }
    // An agent that floods is read seldom, and cannot make others be forgotten.
    if (before && data.length > 0 && seenMs - before.seenMs < READ_AGAIN_MS) return;
    const said = readMessage(announcementSchema, data, MAX_ANNOUNCEMENT_BYTES);
    known.set(location, { said, seenMs });
  };

  const join = (connection: NatsConnection) => {
    if (agent !== null) serve(connection);
    if (!asks) return;
    known.clear();
    connection.subscribe(SUBJECTS.here("*"), { callback: onMessage(noteAnnouncement) });
    connection.publish(SUBJECTS.rollCall);
  };

  const link = nats && openLink(nats, log, join);
  const isConnected = () => link && link.current !== null;

  const askOther = async (location: string, question: Question, call: Call) => {
    if (link === null) throw new ApiError("LOCATION_NOT_FOUND", { location });
    const { current } = link;
    if (current === null) throw unavailable(location, NOT_CONNECTED);
    const hash = new Bun.CryptoHasher("sha256", salt).update(call.owner).digest("hex");
    const asker = { ...current, owner: hash.slice(0, 16), targets: policy };
    return await askAgent(asker, location, question, call);
  };

  return {
    own,
    asked,
    /** True if there is a connection to NATS; null if none is configured. */
    get isConnected() {
      return isConnected();
    },
    /** Questions of other instances that are worked on now. */
    get running() {
      return agent?.running ?? 0;
    },
    /** Lets other instances ask this process, if it has a location. */
    answer(endpoints: readonly Endpoint[], services: Services, log: Log): void {
      if (own === null || link === null) return;
      agent = createAgent(own, endpoints, services, log);
      announcing = setInterval(announce, ANNOUNCE_MS).unref();
      if (link.current) serve(link.current.connection);
    },
    /** Every location that can be asked, by name. */
    list(): readonly KnownLocation[] {
      forgetSilent(performance.now());
      if (!isConnected()) known.clear();
      const others = [...known].flatMap(([location, { said }]) =>
        said === null || location === own ? [] : [{ location, ...said }],
      );
      const here = own === null ? [] : [{ location: own, ...self() }];
      return [...here, ...others].sort((a, b) => (a.location < b.location ? -1 : 1));
    },
    /** See `askAgent`. */
    async ask(location: string, question: Question, call: Call): Promise<object> {
      let outcome = "result";
      try {
        return await askOther(location, question, call);
      } catch (error) {
        const code = error instanceof ApiError ? error.code : "left";
        outcome = code in asked ? code : "error";
        throw error;
      } finally {
        asked[outcome] = (asked[outcome] ?? 0) + 1;
      }
    },
    /** Takes no more questions of other instances, and ends the runs that are still under way after `graceMs` milliseconds. */
    async leave(graceMs: number): Promise<void> {
      clearInterval(announcing);
      clearTimeout(rollCall);
      if (own !== null) link?.current?.connection.publish(SUBJECTS.here(own));
      await agent?.stop(graceMs);
    },
    /** Closes the connection, after `leave`. */
    async close(): Promise<void> {
      await link?.close();
    },
  };
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
