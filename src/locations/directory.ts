import { ALL_LOCATIONS, LOCATION_FORM } from "../config/settings.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { AGENT_FORM, type Announcement, readAnnouncement } from "./protocol.ts";

/** The time between announcements of an agent, in milliseconds. */
export const ANNOUNCE_MS = 5000;

/** The silence after which an agent is absent, in milliseconds: two announcements may be lost. */
export const SILENCE_MS = 15_000;

/** The time between searches for silent agents, in milliseconds. */
export const SWEEP_MS = 1000;

/** Agents that are listed at once; more of them mean that something else uses the subjects. */
export const MAX_AGENTS = 4096;

/** Agents of one location, so that a user who may announce one location cannot fill the table. */
export const MAX_AGENTS_OF_ONE = 64;

interface Agent {
  readonly location: string;
  /** Its last announcement, in bytes and parsed. */
  readonly data: Uint8Array;
  readonly description: Announcement;
  seenMs: number;
}

/**
 * The last announcement of each agent, and the time of its arrival.
 *
 * @param expected locations that are listed without an agent too
 */
export function createDirectory(expected: readonly string[], log: Pick<Log, "info" | "warn">) {
  /** The agents by location and name. */
  const agents = new Map<string, Agent>();
  let listing: ReturnType<typeof listingOf> | null = null;

  const agentsOf = (location: string) =>
    agents.values().filter((agent) => agent.location === location);

  const remove = (key: string, level: "info" | "warn", message: string) => {
    const { location } = agents.get(key) as Agent;
    agents.delete(key);
    listing = null;
    log[level](message, { location, agents: [...agentsOf(location)].length });
  };

  const isPossible = (location: string, name: string) =>
    AGENT_FORM.test(name) &&
    LOCATION_FORM.test(location) &&
    location !== ALL_LOCATIONS &&
    agents.size < MAX_AGENTS &&
    [...agentsOf(location)].length < MAX_AGENTS_OF_ONE;

  const take = (key: string, location: string, data: Uint8Array, nowMs: number) => {
    const description = readAnnouncement(data);
    if (description === undefined) return false;
    const before = agents.get(key);
    // A copy, because the data are a view of a larger buffer.
    agents.set(key, { location, data: data.slice(), description, seenMs: nowMs });
    listing = null;
    return before === undefined;
  };

  return {
    /** Takes an announcement; true if the agent is new. */
    note(location: string, name: string, data: Uint8Array, nowMs: number): boolean {
      const key = `${location} ${name}`;
      const before = agents.get(key);
      if (before && data.length === 0) remove(key, "info", "agent left");
      else if (before && Buffer.compare(before.data, data) === 0) before.seenMs = nowMs;
      else if (before || isPossible(location, name)) return take(key, location, data, nowMs);
      return false;
    },
    /** Forgets the agents that are absent; called every `SWEEP_MS`. */
    sweep(nowMs: number): void {
      for (const [key, { seenMs }] of agents) {
        if (nowMs - seenMs > SILENCE_MS) remove(key, "warn", "agent lost");
      }
    },
    /** Forgets all agents, because the connection to them is lost. */
    clear(): void {
      agents.clear();
      listing = null;
    },
    /** The locations now. */
    list: () => (listing ??= listingOf([...agents.values()], expected)),
  };
}

/** The document of `/locations`, and the locations that each word in `from` means; see `OtherLocations`. */
function listingOf(agents: readonly Agent[], expected: readonly string[]) {
  const byName = Map.groupBy(agents, ({ location }) => location);
  const names = [...byName.keys()].sort();
  const listed = distinct([...names, ...expected]);
  const locations = listed.map((name) => rowOf(name, byName.get(name) ?? []));
  const byWord = new Map<string, string[]>();
  for (const { location, tags } of locations) {
    for (const tag of tags) byWord.getOrInsertComputed(tag, () => []).push(location);
  }
  // A name takes precedence over a tag.
  for (const name of names) byWord.delete(name);
  byWord.set(ALL_LOCATIONS, names);
  return { json: JSON.stringify({ version: VERSION, locations }), byWord };
}

const distinct = <T>(values: readonly T[]) => [...new Set(values)].sort();

/** A location as `/locations` describes it. */
function rowOf(location: string, agents: readonly Agent[]) {
  const descriptions = agents.map(({ description }) => description);
  return {
    location,
    state: agents.length > 0 ? "up" : "down",
    agents: agents.length,
    versions: distinct(descriptions.map(({ version }) => version)),
    families: distinct(descriptions.flatMap(({ families }) => families)),
    since: descriptions.map(({ since }) => since).sort()[0] ?? null,
    tags: distinct(descriptions.flatMap(({ tags }) => tags)),
  };
}
