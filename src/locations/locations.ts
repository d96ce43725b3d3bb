import { networkInterfaces } from "node:os";
import type { Msg } from "@nats-io/transport-node";
import { formatPrefix } from "../addr/prefix.ts";
import type { Call } from "../api/endpoint.ts";
import { ApiError } from "../api/errors.ts";
import type { Config } from "../config/settings.ts";
import type { Endpoint, Question, Services } from "../tools/services.ts";
import { attempt } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { createAgent } from "./agent.ts";
import { askAgent } from "./ask-agent.ts";
import { ANNOUNCE_MS, createDirectory, SWEEP_MS } from "./directory.ts";
import { type Connected, openLink } from "./link.ts";
import { type Announcement, onMessage, SUBJECTS } from "./protocol.ts";
import { NOT_CONNECTED, unavailable } from "./replies.ts";

/** The outcomes of a question: `error` is an error of the endpoint, and `left` means that the caller has gone. */
const OUTCOMES = [
  ...["result", "error", "left"],
  ...["LOCATION_NOT_FOUND", "LOCATION_TIMEOUT", "LOCATION_UNAVAILABLE"],
];

/** See `createLocations`. */
export type Locations = ReturnType<typeof createLocations>;

/**
 * The location of this process, and the locations of the agents that it can ask over NATS.
 *
 * @param asks true if it asks others too, false if it only answers
 * @param endpoints of questions that other instances can ask this process, if it has a location
 */
export function createLocations(
  { location: own, locationTags, locationsExpected, nats, targets }: Config,
  asks: boolean,
  endpoints: readonly Endpoint[],
  services: Services,
  log: Log,
) {
  const asked = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0]));
  const directory = createDirectory(locationsExpected, log);
  const [allow, deny] = [targets.allow.map(formatPrefix), targets.deny.map(formatPrefix)];
  const policy = { mode: targets.mode, allow, deny };
  /** Hides clients from agents: they see salted hashes. */
  const salt = crypto.randomUUID();
  const name = crypto.randomUUID().slice(0, 8);
  const since = new Date().toISOString();
  const agent = own === null ? null : createAgent(own, endpoints, services, log);

  const announce = () => {
    if (own === null) return;
    const tags = [...locationTags];
    const description: Announcement = { version: VERSION, families: ownFamilies(), since, tags };
    const text = JSON.stringify(description);
    if (asks) directory.note(own, name, Buffer.from(text), performance.now());
    link?.current()?.connection.publish(SUBJECTS.here(own, name), text);
  };

  const hear = ({ subject, data }: Msg) => {
    const [, , location = "", name = ""] = subject.split(".");
    const isNew = directory.note(location, name, data, performance.now());
    if (isNew) log.info("agent came", { location });
  };

  const join = ({ connection }: Connected) => {
    agent?.serve(connection);
    announce();
    if (!asks) return;
    connection.subscribe(SUBJECTS.here("*", "*"), { callback: onMessage(hear) });
    void connection.closed().then(() => {
      directory.clear();
      announce();
    });
  };

  const link = nats && openLink(nats, log, join);
  const announcing = setInterval(announce, ANNOUNCE_MS).unref();
  if (asks) setInterval(() => directory.sweep(performance.now()), SWEEP_MS).unref();
  announce();

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
    /** The document of `/locations`. */
    json: () => directory.list().json,
    byWord: () => directory.list().byWord,
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
        throw error;
      } finally {
        asked[outcome] = (asked[outcome] ?? 0) + 1;
      }
    },
    /** Takes no more questions of other instances, and ends the runs that are still under way after `graceMs` milliseconds. */
    async leave(graceMs: number): Promise<void> {
      clearInterval(announcing);
      if (own !== null) link?.current()?.connection.publish(SUBJECTS.here(own, name));
      await agent?.stop(graceMs);
    },
    /** Closes the connection, after `leave`. */
    close: () => link?.close(),
  };
}

/** Link-local addresses; RFC 3927 section 2.1, RFC 4291 section 2.5.6. */
const LINK_LOCAL = /^(169\.254\.|fe80:)/;

/** The families of this machine's addresses, without those of loopback and links. */
function ownFamilies(): (4 | 6)[] {
  const all = Object.values(attempt(networkInterfaces) ?? {}).flatMap((each) => each ?? []);
  const own = all.filter(({ internal, address }) => !internal && !LINK_LOCAL.test(address));
  return ([4, 6] as const).filter((version) =>
    own.some(({ family }) => family === `IPv${version}`),
  );
}
