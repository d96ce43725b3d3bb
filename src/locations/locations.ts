import { closeSync, openSync, readSync } from "node:fs";
import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { formatPrefix } from "../addr/prefix.ts";
import type { Call } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import type { Config } from "../config/settings.ts";
import type { Endpoint, Question, Services } from "../tools/services.ts";
import { attempt } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { type Agent, createAgent } from "./agent.ts";
import { askAgent } from "./ask-agent.ts";
import {
  ANNOUNCE_MS,
  createDirectory,
  MAX_AGENTS,
  SWEEP_MS,
  untilAnnouncement,
  WORD_BYTES,
} from "./directory.ts";
import { type Connected, openLink } from "./link.ts";
import { type Announcement, inTurns, onMessage, SERVICE_FORM, SUBJECTS } from "./protocol.ts";
import { NOT_CONNECTED, unavailable } from "./replies.ts";

/** How long answers to a roll call are put off at random, in milliseconds, so that a fleet spreads out. */
const SPREAD_MS = 250;

/** A service gets one answer in this time, in milliseconds. */
const ROLL_CALL_MS = 1000;

/** Services that get an answer in that time. */
const MAX_CALLERS = 1000;

/** How a question ends: `error` is that of the endpoint, and `left` that the caller has gone. */
const OUTCOMES = [
  ...["result", "error", "left"],
  ...["LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"],
];

/** See `createLocations`. */
export type Locations = ReturnType<typeof createLocations>;

/**
 * The location of this process, and those of the agents that it can ask over NATS.
 *
 * @param asks true if it asks others too, false if it only answers
 */
export function createLocations(
  config: Pick<Config, "location" | "locationTags" | "locationsExpected" | "nats" | "targets">,
  asks: boolean,
  log: Log,
) {
  const { location: own, locationsExpected, nats, targets } = config;
  const asked = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
  const directory = createDirectory(locationsExpected, log);
  const [allow, deny] = [targets.allow.map(formatPrefix), targets.deny.map(formatPrefix)];
  const policy = { mode: targets.mode, allow, deny };
  /** Makes the clients that agents see mean nothing to them. */
  const salt = crypto.randomUUID();
  const id = crypto.randomUUID().slice(0, 8);
  const since = new Date().toISOString();
  let families = "";
  let agent: Agent | null = null;
  let announcing: Timer | undefined;
  let calledMs = Number.NEGATIVE_INFINITY;
  /** Services whose roll calls were answered in the last second. */
  const callers = new Set<string>();

  const publish = (announcement: Announcement, service?: string) => {
    if (own === null) return;
    const text = JSON.stringify(announcement);
    if (asks && !announcement.left) directory.note(own, Buffer.from(text), performance.now());
    link?.current()?.connection.publish(SUBJECTS.here(own, service), text);
  };

  const describe = (service?: string) => {
    const here = ownFamilies();
    const said = { version: VERSION, families: here, since, tags: config.locationTags };
    families = here.join();
    publish({ id, said }, service);
  };

  const announce = () => {
    if (ownFamilies().join() === families) publish({ id });
    else describe();
    announcing = setTimeout(announce, untilAnnouncement()).unref();
  };

  const answerRollCall = ({ data }: Msg) => {
    const service = Buffer.from(data).toString("latin1");
    if (callers.size >= MAX_CALLERS || callers.has(service) || !SERVICE_FORM.test(service)) return;
    callers.add(service);
    setTimeout(() => describe(service), Math.random() * SPREAD_MS).unref();
    setTimeout(() => callers.delete(service), ROLL_CALL_MS).unref();
  };

  const serve = (connection: NatsConnection) => {
    agent?.serve(connection);
    connection.subscribe(SUBJECTS.rollCall, { callback: onMessage(answerRollCall) });
    describe();
  };

  const callRoll = () => {
    const { connection, service } = link?.current() ?? {};
    calledMs = performance.now();
    connection?.publish(SUBJECTS.rollCall, service);
  };

  const note = ({ subject, data }: Msg) => {
    const nowMs = performance.now();
    const [, , location = "", service] = subject.split(".");
    const noted = directory.note(location, data, nowMs);
    // An agent that answers the roll was there before.
    if (noted === "new" && service === undefined) log.info("agent came", { location });
    if (noted === "unknown" && nowMs - calledMs > ANNOUNCE_MS) callRoll();
  };
  const noteLater = inTurns((message: Msg) => link?.current() && note(message), MAX_AGENTS);
  const hear = (message: Msg) =>
    message.data.length > WORD_BYTES ? noteLater(message) : note(message);

  const join = ({ connection, service }: Connected) => {
    if (agent !== null) serve(connection);
    if (!asks) return;
    void connection.closed().then(() => {
      directory.clear();
      describe();
    });
    for (const name of [undefined, service]) {
      connection.subscribe(SUBJECTS.here("*", name), { callback: onMessage(hear) });
    }
    callRoll();
  };

  if (asks && nats) setInterval(() => directory.sweep(performance.now()), SWEEP_MS).unref();

  const link = nats && openLink(nats, log, join);

  return {
    own,
    expected: asks ? locationsExpected : [],
    asked,
    /** True if there is a connection to NATS; null if none is configured. */
    get isConnected() {
      return link && link.current() !== null;
    },
    /** Questions of other instances that are worked on now. */
    running: () => agent?.running() ?? 0,
    /** Lets other instances ask this process, if it has a location. */
    answer(endpoints: readonly Endpoint[], services: Services, log: Log): void {
      if (own === null) return;
      agent = createAgent(own, endpoints, services, log);
      const { connection } = link?.current() ?? {};
      if (connection) serve(connection);
      announce();
    },
    /** See `createDirectory`. */
    get known() {
      return directory.known;
    },
    /** See `askAgent`. */
    async ask(location: string, question: Question, call: Call): Promise<object> {
      let outcome = "result";
      try {
        const current = link?.current();
        if (link === null) throw new ApiError("LOCATION_NOT_FOUND", { location });
        if (!current) throw unavailable(location, NOT_CONNECTED);
        const hash = new Bun.CryptoHasher("sha256", salt).update(call.client).digest("hex");
        const asker = { ...current, owner: hash.slice(0, 16), targets: policy };
        return await askAgent(asker, location, question, call);
      } catch (error) {
        const code = error instanceof ApiError ? error.code : "left";
        outcome = code in asked ? code : "error";
        if (code === "LOCATION_NOT_FOUND") directory.lose(location, performance.now());
        throw error;
      } finally {
        asked[outcome] = (asked[outcome] ?? 0) + 1;
      }
    },
    /** Takes no more questions of other instances, and ends the runs that are still under way after `graceMs` milliseconds. */
    async leave(graceMs: number): Promise<void> {
      clearTimeout(announcing);
      publish({ id, left: true });
      await agent?.stop(graceMs);
    },
    /** Closes the connection, after `leave`. */
    close: () => link?.close(),
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
  const file = attempt(() => openSync(path, "r"));
  if (file === undefined) return "";
  const bytes = Buffer.alloc(16_384);
  const length = attempt(() => readSync(file, bytes)) ?? 0;
  closeSync(file);
  return bytes.toString("latin1", 0, length);
}
