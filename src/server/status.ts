/** The state of a running service or agent, for `doctor` and `keys` on the same machine. */
import { readFileSync, rmSync } from "node:fs";
import { z } from "zod";
import { once } from "../api/schemas.ts";
import { ALL_LOCATIONS, type Config } from "../config/settings.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { VERSION } from "../util/version.ts";
import { type Watches, watchList, watchSeries } from "../watch/result.ts";
import { isAbandoned } from "./listener.ts";
import type { Sources } from "./metrics.ts";

/** Milliseconds to wait for the answer; a process on the same machine answers at once. */
const ANSWER_MS = 2000;

/** Parts into which the time of a watch is divided when a command shows it. */
const SHOWN_PARTS = 24;

/** The owner and root may connect. */
const OTHERS_MASK = 0o177;

const statusSchema = once(() =>
  z.object({
    role: z.enum(["service", "agent"]),
    pid: z.int().min(1),
    /** The digest of the settings it started with. */
    settings: z.string(),
    /** The reason why it cannot probe, or only ping; null if it can. */
    withoutProbes: z.string().nullable(),
    /** The reason why it keeps no history of watches; null if it does. */
    withoutHistory: z.string().nullable(),
    /** Facts for people: its version, capabilities and connections. */
    about: z.string(),
  }),
);

/** The answer of a process about itself. */
export type Status = z.infer<ReturnType<typeof statusSchema>>;

/** A text that differs if a setting differs, and tells no secret. */
function digestOf(config: Config): string {
  const plain = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value);
  return Bun.SHA256.hash(JSON.stringify(config, plain), "hex");
}

/** True if the process of a status runs with these settings. */
export const isOfSettings = (status: Status, config: Config) =>
  status.settings === digestOf(config);

/** The parts of a process that its status shows. */
type Parts = Pick<Sources, "icmp" | "locations" | "keyring" | "shared" | "watching">;

function statusOf(config: Config, { icmp, locations, keyring, shared, watching }: Parts): Status {
  const withoutProbes = "unavailable" in icmp ? icmp : icmp.withoutRaw;
  const { isConnected } = locations ?? {};
  const role = keyring ? "service" : "agent";
  const since = new Date(performance.timeOrigin).toISOString();
  const present = locations?.byWord().get(ALL_LOCATIONS) ?? [];
  const places = keyring ? present : [locations?.own];
  const [, capabilities] =
    /^CapEff:\s*0*(\w+)/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const nats = `NATS ${isConnected ? "is" : "is not"} connected, places: ${places.join(", ") || "none"}`;
  const facts = [
    `${role} ${VERSION} (pid ${process.pid}) since ${since}, capabilities ${capabilities}`,
    isConnected == null ? [] : nats,
    watching ? `${watching.count} watches` : [],
    shared ? `Valkey ${shared.valkey.isUp ? "answers" : "does not answer"}` : [],
  ].flat();
  return {
    role,
    pid: process.pid,
    settings: digestOf(config),
    withoutProbes: withoutProbes?.unavailable ?? null,
    withoutHistory: watching?.problem ?? null,
    about: facts.join("; "),
  };
}

/**
 * Answers on the unix socket of the settings, to which only this user and root can connect. If it cannot be
 * opened, as in a folder that is not writable, the process runs without it.
 *
 * @returns the function that closes it
 */
export function offerStatus(config: Config, parts: Parts, log: Log): () => void {
  const { statusSocket: socket } = config;
  const umask = process.umask(OTHERS_MASK);
  try {
    if (isAbandoned(socket)) rmSync(socket);
    const fetch = ({ url }: Request) =>
      Response.json(watched(new URL(url), parts.watching) ?? statusOf(config, parts));
    const server = Bun.serve({ development: false, unix: socket, fetch });
    return () => {
      void server.stop(true);
      rmSync(socket, { force: true });
    };
  } catch (error) {
    log.info(`doctor cannot ask this process: ${reasonOf(error)}`, { socket });
    return () => {};
  } finally {
    process.umask(umask);
  }
}

/** All watches, or the series of one since a Unix time in milliseconds; null for another question. */
function watched({ pathname, searchParams }: URL, watching: Sources["watching"]) {
  if (pathname !== "/watch" || watching === null) return null;
  const [name, since] = [searchParams.get("name"), Number(searchParams.get("since"))];
  if (name === null) return watching.list();
  return { series: watching.series(name, since, Date.now(), SHOWN_PARTS) };
}

/** The answer of the process that has these settings; null if none runs, or if this user may not ask it. */
async function ask({ statusSocket }: Config, path: string): Promise<unknown> {
  const options = { unix: statusSocket, signal: AbortSignal.timeout(ANSWER_MS) };
  const response = fetch(`http://localhost${path}`, options);
  return await response.then((received) => received.json()).catch(() => null);
}

/** The state of the process that has these settings; null if none runs, or if this user may not ask it. */
export const askStatus = async (config: Config): Promise<Status | null> =>
  statusSchema().safeParse(await ask(config, "/")).data ?? null;

/** @throws Error if no process answers that has these settings and watches */
async function askWatcher<T>(config: Config, path: string, schema: z.ZodType<T>): Promise<T> {
  const { data } = schema.safeParse(await ask(config, path));
  if (data !== undefined) return data;
  throw new Error(
    `no service that watches answers at ${config.statusSocket}; start it with these settings, or see its log`,
  );
}

/** The watches of the process that has these settings. @throws Error if none answers */
export const askWatches = (config: Config): Promise<Watches> =>
  askWatcher(config, "/watch", watchList());

/**
 * The series of a watch of the process that has these settings, since a Unix time in milliseconds; null for an unknown watch.
 *
 * @throws Error if none answers
 */
export async function askWatch(config: Config, name: string, sinceMs: number) {
  const query = new URLSearchParams({ name, since: `${sinceMs}` });
  const answer = z.object({ series: watchSeries().nullable() });
  return (await askWatcher(config, `/watch?${query}`, answer)).series;
}
