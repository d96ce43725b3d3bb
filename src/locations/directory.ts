import type { KnownLocations } from "../api/endpoint.ts";
import { ALL_LOCATIONS, LOCATION_FORM } from "../config/settings.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import {
  type Announcement,
  announcementSchema,
  MAX_ANNOUNCEMENT_BYTES,
  readMessage,
} from "./protocol.ts";

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

/** Agents that are known at once, and locations; more of them mean that something else uses the subjects. */
export const MAX_AGENTS = 16_384;

/** Agents of one location, so that whoever may announce one cannot fill the table. */
export const MAX_AGENTS_OF_ONE = 64;

/** Announcements of one location that are read in `SWEEP_MS`. */
const MAX_READS = 2 * MAX_AGENTS_OF_ONE;

/** The length of `{"id":"00000000"}`, the announcement that says nothing new, and the id in it. */
const WORD_BYTES = 17;
const wordIn = (data: Uint8Array) => String.fromCharCode(...data.subarray(7, 15));

interface Agent {
  readonly said: NonNullable<Announcement["said"]>;
  readonly cameMs: number;
  seenMs: number;
}

/**
 * The agents that are there, by their announcements, and the locations that they make.
 *
 * @param expected locations that are listed without an agent too
 */
export function createDirectory(expected: readonly string[], log: Pick<Log, "info" | "warn">) {
  const places = new Map<string, { readonly agents: Map<string, Agent>; reads: number }>();
  let count = 0;
  let described: KnownLocations | null = null;
  let sweptMs = Number.NEGATIVE_INFINITY;

  const remove = (location: string, id: string, nowMs: number, message: "left" | "lost") => {
    const { agents } = places.get(location) ?? {};
    const agent = agents?.get(id);
    if (!agents?.delete(id) || agent === undefined) return;
    count -= 1;
    described = null;
    const hereSeconds = Math.round((nowMs - agent.cameMs) / 1000);
    const level = message === "left" ? "info" : "warn";
    log[level](`agent ${message}`, { location, agents: agents.size, hereSeconds });
  };

  return {
    /** Takes an announcement; says if the agent is new, or is not known because it has not said what it is. */
    note(location: string, data: Uint8Array, nowMs: number): "new" | "unknown" | undefined {
      if (!LOCATION_FORM.test(location) || location === ALL_LOCATIONS) return;
      if (!places.has(location) && places.size >= MAX_AGENTS) return;
      const place = places.getOrInsertComputed(location, () => ({ agents: new Map(), reads: 0 }));
      if (++place.reads > MAX_READS) return;
      // A word of an agent that is known is by far the most frequent, and costs next to nothing.
      const known = data.length === WORD_BYTES && place.agents.get(wordIn(data));
      if (known) known.seenMs = nowMs;
      if (known) return;
      const read = readMessage(announcementSchema, data, MAX_ANNOUNCEMENT_BYTES);
      if (read === null) return;
      const { id, said, left } = read;
      const before = place.agents.get(id);
      if (left) remove(location, id, nowMs, "left");
      if (left) return;
      if (!before && (count >= MAX_AGENTS || place.agents.size >= MAX_AGENTS_OF_ONE)) return;
      if (said === undefined) return "unknown";
      place.agents.set(id, { said, cameMs: before?.cameMs ?? nowMs, seenMs: nowMs });
      if (!Bun.deepEquals(said, before?.said)) described = null;
      if (before) return;
      count += 1;
      return "new";
    },
    /** Forgets the agents that have been silent; called every `SWEEP_MS`. */
    sweep(nowMs: number): void {
      // Messages that came while this process was held up are not read yet.
      const isLate = nowMs - sweptMs > 2 * SWEEP_MS;
      sweptMs = nowMs;
      for (const [location, place] of places) {
        place.reads = 0;
        for (const [id, { seenMs }] of place.agents) {
          if (nowMs - seenMs > KNOWN_MS && !isLate) remove(location, id, nowMs, "lost");
        }
        if (place.agents.size === 0) places.delete(location);
      }
    },
    /** Forgets the agents of a location that takes no questions. */
    lose(location: string, nowMs: number): void {
      for (const id of places.get(location)?.agents.keys() ?? [])
        remove(location, id, nowMs, "lost");
    },
    /** Forgets all, without a connection to them. */
    clear(): void {
      places.clear();
      count = 0;
      described = null;
    },
    /** All that is known now; the same object until something changes. */
    get known(): KnownLocations {
      described ??= describe(
        new Set([
          ...expected,
          ...[...places].flatMap(([name, { agents }]) => (agents.size ? name : [])),
        ]),
        (location) => [...(places.get(location)?.agents.values() ?? [])].map(({ said }) => said),
      );
      return described;
    },
  };
}

/** @param saidAt what the agents of a location say */
function describe(
  names: ReadonlySet<string>,
  saidAt: (location: string) => readonly Agent["said"][],
): KnownLocations {
  const distinct = <T>(values: readonly T[]) => [...new Set(values)].sort();
  const byWord = new Map<string, string[]>([[ALL_LOCATIONS, []]]);
  const rows = [...names].sort().map((location) => {
    const agents = saidAt(location);
    const tags = distinct(agents.flatMap(({ tags }) => tags));
    for (const word of agents.length > 0 ? [ALL_LOCATIONS, ...tags] : []) {
      byWord.getOrInsertComputed(word, () => []).push(location);
    }
    // As text at once, because ten thousand objects take more memory.
    return JSON.stringify({
      location,
      state: agents.length > 0 ? "up" : "down",
      agents: agents.length,
      versions: distinct(agents.map(({ version }) => version)),
      families: distinct(agents.flatMap(({ families }) => families)),
      since: agents.map(({ since }) => since).sort()[0] ?? null,
      tags,
    });
  });
  // A name is meant before a tag.
  for (const location of byWord.get(ALL_LOCATIONS) ?? []) byWord.set(location, [location]);
  return { byWord, json: `{"version":${JSON.stringify(VERSION)},"locations":[${rows}]}` };
}
