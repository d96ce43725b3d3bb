import { once } from "../api/schemas.ts";
import { ALL_LOCATIONS, LOCATION_FORM } from "../config/settings.ts";
import type { KnownLocations } from "../tools/services.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { type Announcement, MAX_ANNOUNCEMENT_BYTES, readAnnouncement } from "./protocol.ts";

/** How often an agent says that it is there, in milliseconds. */
export const ANNOUNCE_MS = 20_000;

/**
 * Milliseconds until the next announcement: all agents speak in the same second, at random within it, because
 * a service reads messages that come together at a tenth of the cost.
 */
export const untilAnnouncement = () =>
  ANNOUNCE_MS - (Date.now() % ANNOUNCE_MS) + Math.random() * 1000;

/** How long an agent is known that says nothing, in milliseconds: one announcement may be lost. */
export const KNOWN_MS = 45_000;

/** How often silent agents are looked for, in milliseconds. */
export const SWEEP_MS = 1000;

/** Agents that are lost in one sweep, which takes some milliseconds; of more, the next ones lose the rest. */
export const MAX_LOST = 500;

/** Agents that are known at once, and locations; more of them mean that something else uses the subjects. */
export const MAX_AGENTS = 16_384;

/** Agents of one location, so that whoever may announce one cannot fill the table. */
export const MAX_AGENTS_OF_ONE = 64;

/** Announcements of one location that are read in `SWEEP_MS`. */
const MAX_READS = 2 * MAX_AGENTS_OF_ONE;

/** The length of `{"id":"00000000"}`, the announcement that says nothing new, and the id where agents write it. */
export const WORD_BYTES = 17;
const idIn = (text: string) => text.slice(7, 15);

/** The agents of a location, as `/locations` describes them. */
type Row = Omit<NonNullable<Announcement["said"]>, "version"> & { versions: readonly string[] };

interface Agent {
  readonly id: string;
  /** The hash of the announcement in which it described itself. */
  readonly digest: number;
  /** The row of its location as text, if it were alone there. */
  readonly row: string;
  readonly tags: readonly string[];
  readonly cameMs: number;
  seenMs: number;
}

interface Place {
  agents: readonly Agent[];
  row: string;
  /** Announcements that were read since the last sweep. */
  reads: number;
}

/**
 * The agents that are there, by their announcements, and the locations that they make. Of ten thousand, few
 * change at once: a row is made when one of its agents changes, and an announcement that says what is known is not parsed.
 *
 * @param expected locations that are listed without an agent too
 */
export function createDirectory(expected: readonly string[], log: Pick<Log, "info" | "warn">) {
  const places = new Map<string, Place>();
  const decoder = new TextDecoder();
  /** The locations that have agents, in order while `known` is not null. */
  const names: string[] = [];
  let count = 0;
  let known: KnownLocations | null = null;
  let sweptMs = Number.NEGATIVE_INFINITY;

  /** The place of a location; undefined if it cannot be one, or if there are too many. */
  const placeOf = (location: string) => {
    const place = places.get(location);
    if (place || places.size >= MAX_AGENTS) return place;
    if (!LOCATION_FORM.test(location) || location === ALL_LOCATIONS) return;
    return places.getOrInsert(location, { agents: [], row: "", reads: 0 });
  };

  const change = (location: string, place: Place, agents: readonly Agent[]) => {
    const { length: before } = place.agents;
    count += agents.length - before;
    if (before === 0) names.push(location);
    if (agents.length === 0) names.splice(names.indexOf(location), 1);
    place.agents = agents;
    const [first, ...others] = agents;
    const said = () => agents.map(({ row }) => JSON.parse(row));
    place.row = first && others.length === 0 ? first.row : rowOf(location, said());
    known = null;
  };

  const remove = (location: string, agent: Agent, nowMs: number, message: "left" | "lost") => {
    const place = places.get(location) as Place;
    const rest = place.agents.filter((other) => other !== agent);
    change(location, place, rest);
    const hereSeconds = Math.round((nowMs - agent.cameMs) / 1000);
    const level = message === "left" ? "info" : "warn";
    log[level](`agent ${message}`, { location, agents: rest.length, hereSeconds });
  };

  return {
    /** Takes an announcement; says if the agent is new, or is not known because it has not said what it is. */
    note(location: string, data: Uint8Array, nowMs: number): "new" | "unknown" | undefined {
      const place = placeOf(location);
      if (!place || ++place.reads > MAX_READS || data.length > MAX_ANNOUNCEMENT_BYTES) return;
      const { agents } = place;
      const text = decoder.decode(data);
      const same = agents.find(({ id }) => id === idIn(text));
      const isSame =
        same && (data.length === WORD_BYTES || Bun.hash.xxHash32(data) === same.digest);
      if (isSame) same.seenMs = nowMs;
      if (isSame) return;
      const { id, said, left } = readAnnouncement(text) ?? {};
      if (id === undefined) return;
      const before = agents.find((agent) => agent.id === id);
      if (left && before) remove(location, before, nowMs, "left");
      if (left) return;
      if (!before && (count >= MAX_AGENTS || agents.length >= MAX_AGENTS_OF_ONE)) return;
      if (said === undefined) return "unknown";
      const { tags } = said;
      const row = rowOf(location, [{ ...said, versions: [said.version] }]);
      const digest = Bun.hash.xxHash32(data);
      const agent = { id, digest, row, tags, cameMs: before?.cameMs ?? nowMs, seenMs: nowMs };
      change(location, place, [...agents.filter((other) => other !== before), agent]);
      return before ? undefined : "new";
    },
    /** Forgets the agents that have been silent; called every `SWEEP_MS`. */
    sweep(nowMs: number): void {
      // Messages that came while this process was held up are not read yet.
      const isLate = nowMs - sweptMs > 2 * SWEEP_MS;
      sweptMs = nowMs;
      let room = isLate ? 0 : MAX_LOST;
      for (const [location, place] of places) {
        place.reads = 0;
        for (const agent of place.agents) {
          if (nowMs - agent.seenMs > KNOWN_MS && room-- > 0) remove(location, agent, nowMs, "lost");
        }
        if (place.agents.length === 0) places.delete(location);
      }
    },
    /** Forgets the agents of a location that takes no questions. */
    lose(location: string, nowMs: number): void {
      for (const agent of places.get(location)?.agents ?? [])
        remove(location, agent, nowMs, "lost");
    },
    /** Forgets all, without a connection to them. */
    clear(): void {
      places.clear();
      names.length = 0;
      count = 0;
      known = null;
    },
    /** All that is known now, the same object until something changes; its parts are made when they are read. */
    get known(): KnownLocations {
      if (known !== null) return known;
      const there = [...names.sort()];
      const json = once(() => {
        const listed = [...new Set([...there, ...expected])].sort();
        const rows = listed.map((name) => places.get(name)?.row || rowOf(name, []));
        return `{"version":${JSON.stringify(VERSION)},"locations":[${rows}]}`;
      });
      const byWord = once(() => {
        const words = new Map<string, string[]>();
        for (const name of there) {
          const tags = places.get(name)?.agents.flatMap((agent) => agent.tags);
          for (const tag of new Set(tags)) words.getOrInsertComputed(tag, () => []).push(name);
        }
        // A name is meant before a tag.
        for (const name of there) words.delete(name);
        return words.set(ALL_LOCATIONS, there);
      });
      known = { json, byWord };
      return known;
    },
  };
}

const distinct = <T>(values: readonly T[]) => [...new Set(values)].sort();

/** @param rows what is said of its agents */
function rowOf(location: string, rows: readonly Row[]): string {
  return JSON.stringify({
    location,
    state: rows.length > 0 ? "up" : "down",
    agents: rows.length,
    versions: distinct(rows.flatMap(({ versions }) => versions)),
    families: distinct(rows.flatMap(({ families }) => families)),
    since: rows.map(({ since }) => since).sort()[0] ?? null,
    tags: distinct(rows.flatMap(({ tags }) => tags)),
  });
}
