/** The history of watches in one SQLite file: small rows of runs, and the documents of both sides of a change. */
import { constants, Database, SQLiteError } from "bun:sqlite";
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { attempt, reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import { median, round } from "../util/numbers.ts";
import { mapValues } from "../util/objects.ts";
import type { LevelRun } from "./level.ts";
import { type Run, rankOf, WORST } from "./measure.ts";
import type { Notification, Outbox } from "./notify.ts";
import type { WatchChange, WatchSeries } from "./result.ts";

/** The state of a watch, beside its runs. */
export interface Standing {
  readonly code: string;
  readonly text: string;
  /** When the first run with this code began, in Unix milliseconds. */
  readonly sinceMs: number;
  /** The document that the next one is compared with, compressed. */
  readonly document: Uint8Array | null;
}

/** A change as the history keeps it. */
export interface Change extends Pick<WatchChange, "kind" | "text" | "confirmed"> {
  readonly atMs: number;
  readonly diff: readonly object[];
  /** The compressed documents; a change of level and a flap have none. */
  readonly before?: Uint8Array | null;
  readonly after?: Uint8Array;
  readonly evidence?: Uint8Array | null;
  /** True if a receiver waits for it. */
  readonly isToTell: boolean;
}

/** The version of the tables; a file of a later one is not touched. */
const VERSION = 1;

const TABLES = `
create table watch (id integer primary key, name text not null unique, code text, text text,
  since integer, document blob) strict;
create table word (id integer primary key, text text not null unique) strict;
create table run (watch integer, at integer, ms integer, code integer, sent integer, lost integer,
  least integer, median integer, greatest integer, path integer, primary key (watch, at)) strict, without rowid;
create table gap (watch integer, at integer, ms integer, reason integer, primary key (watch, at)) strict, without rowid;
create table change (id integer primary key autoincrement, watch integer not null, at integer not null,
  kind text not null, text text not null, confirmed integer not null, diff text not null,
  before blob, after blob, evidence blob, untold integer not null) strict;
create index changes on change (watch, at);
create index untold on change (id) where untold;
pragma user_version = ${VERSION}`;

const PAGE_BYTES = 4096;

/** The header of a SQLite file: its size, its first bytes, and where the version of the tables is. */
const HEADER = { bytes: 64, magic: "SQLite format 3\0", versionAt: 60 } as const;

/** Pages of the log at which SQLite writes it to the file: a part of all pages, up to its own default. */
const WAL = { part: 1 / 16, least: 16, most: 1000 } as const;

/** Rows of runs in a page, which are deleted together. */
const ROWS_A_PAGE = 60;

/** Milliseconds between two tries of a file that cannot be opened. */
const RETRY_MS = 10_000;

/** How often room is made for one write. */
const MAX_PRUNES = 200;

/** A document as the history keeps it, and back; null stays null. */
export const packed = {
  of: (value: object): Uint8Array => Bun.zstdCompressSync(JSON.stringify(value)),
  open: (bytes: Uint8Array | null) => bytes && JSON.parse(Bun.zstdDecompressSync(bytes).toString()),
} as const;

/** Milliseconds of microseconds; null stays null. */
export const milliseconds = (us: number | null) =>
  us === null || !Number.isFinite(us) ? null : round(us / 1000, 3);
/** The percentage of lost probes; null without a probe. */
export const lossOf = ({ sent, lost }: Pick<LevelRun, "sent" | "lost">) =>
  sent === 0 ? null : round((100 * lost) / sent, 2);
/** A Unix time in milliseconds as RFC 3339. */
export const isoOf = (ms: number) => new Date(ms).toISOString();

/** A range of time, which is divided into equal parts. */
export interface Range {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly points: number;
}

const widthOf = ({ sinceMs, untilMs, points }: Range) =>
  Math.max(1, Math.ceil((untilMs - sinceMs) / points));

/** The sums of the runs of a part, which has none yet. */
const newPart = () => {
  const counts = { runs: 0, sent: 0, lost: 0, least: Infinity, greatest: -Infinity, rank: -1 };
  return Object.assign(counts, {
    medians: [] as number[],
    code: null as string | null,
    gap: null as string | null,
  });
};

/**
 * The history of all watches. Nothing here throws because of the file or its disk: if a write fails, its data are lost,
 * `problem` says why, and the next write tries the file again.
 */
export class History implements Outbox {
  readonly #path: string;
  readonly #maxBytes: number;
  readonly #log: Log;
  #db: Database | null = null;
  /** The file for reading alone, until it can be opened for writing. */
  #reader: Database | null = null;
  /** The inode of the open file; a write to a removed file is lost. */
  #inode: number | undefined;
  #problem: string | null = null;
  #isRefused = false;
  #retryMs = 0;
  #pages = 0;
  #walPages = 0;
  #lastWriteMs: number | null = null;
  readonly #watchIds = new Map<string, number>();
  readonly #wordIds = new Map<string, number>();
  readonly #nowMs: () => number;

  /**
   * @param maxMb the most that all files of the history may take, in megabytes
   * @param nowMs Unix time in milliseconds
   */
  constructor(path: string, maxMb: number, log: Log, nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
    this.#path = path;
    this.#maxBytes = maxMb * 1_000_000;
    this.#log = log;
    this.#open();
  }

  /** Why nothing can be written; null if it can. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The size of all files in bytes, and when a write last came through, in Unix milliseconds. */
  status() {
    const bytes = ["", "-wal", "-shm"].map(
      (end) => attempt(() => statSync(this.#path + end).size) ?? 0,
    );
    return {
      problem: this.#problem,
      bytes: bytes.reduce((sum, size) => sum + size),
      maxBytes: this.#maxBytes,
      lastWriteMs: this.#lastWriteMs,
    };
  }

  /** Keeps a run. Returns false if it could not be written. */
  addRun(name: string, run: Run): boolean {
    const { atMs, durationMs, code, sent, lost, least, median, greatest, path } = run;
    return this.#write((db) => {
      const watch = this.#idOf(db, "watch", name);
      const about = [durationMs, this.#idOf(db, "word", code), sent, lost];
      const insert = db.query("insert or ignore into run values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      // A clock that was set back reaches the same millisecond again.
      for (let at = atMs; ; at++) {
        const row = [watch, at, ...about, least, median, greatest, path];
        if (insert.run(...row).changes > 0) break;
      }
    });
  }

  /** Keeps the state of a watch. */
  keepStanding(name: string, standing: Standing): void {
    this.#write((db) => this.#putStanding(db, this.#idOf(db, "watch", name), standing));
  }

  /** Keeps why a watch did not run; a gap replaces an earlier one that began at the same time. */
  addGap(name: string, atMs: number, durationMs: number, reason: string): boolean {
    return this.#write((db) => {
      const row = [this.#idOf(db, "watch", name), atMs, durationMs, this.#idOf(db, "word", reason)];
      db.query("insert or replace into gap values (?, ?, ?, ?)").run(...row);
    });
  }

  /** Keeps a change, and the new state of its watch. Returns its number, or null if it could not be written. */
  addChange(name: string, change: Change, standing?: Standing): number | null {
    let id = 0;
    const { atMs, kind, text, confirmed, diff, isToTell } = change;
    const { before = null, after = null, evidence = null } = change;
    const isKept = this.#write((db) => {
      const watch = this.#idOf(db, "watch", name);
      const about = [watch, atMs, kind, text, Number(confirmed), JSON.stringify(diff)];
      // By the time, so that a new file does not repeat the numbers of the last one.
      const insert = db.query(`insert into change values (max(?, 1 + coalesce(
        (select seq from sqlite_sequence where name = 'change'), 0)), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
      const row = [this.#nowMs(), ...about, before, after, evidence, Number(isToTell)];
      const { lastInsertRowid } = insert.run(...row);
      id = Number(lastInsertRowid);
      if (standing) this.#putStanding(db, watch, standing);
    });
    return isKept ? id : null;
  }

  /** The state of a watch, and its last run; each is null if it is not known. */
  standing(name: string) {
    const sql =
      "select code, text, since as sinceMs, document from watch where name = ? and code not null";
    const [standing] = this.#read<Standing>(sql, name);
    // Runs in the future are from a wrong clock.
    const [last] = this.#read<LevelRun & { atMs: number }>(
      `select at as atMs, sent, lost, median from run where watch = ? and at <= ? order by at desc limit 1`,
      ...[this.#watchId(name), this.#nowMs()],
    );
    return { standing: standing ?? null, last: last ?? null };
  }

  /** The last runs of a watch since the last change of a level, the oldest first. */
  levels(name: string, kind: "rtt" | "loss", count: number): LevelRun[] {
    const sql = `select sent, lost, median from run where watch = ?1 and at > coalesce(
      (select max(at) from change where watch = ?1 and kind = ?2), 0) order by at desc limit ?3`;
    return this.#read<LevelRun>(sql, this.#watchId(name), kind, count).reverse();
  }

  /** A range of a watch in equal parts; parts without a run and without a gap are left out. */
  series(name: string, range: Range): WatchSeries["series"] {
    const parts = [...this.#parts(name, range)].toSorted(([a], [b]) => a - b);
    return parts.map(([atMs, { runs, sent, lost, medians, least, greatest, code, gap }]) => ({
      ...{ at: isoOf(atMs), runs, loss: lossOf({ sent, lost }) },
      ...{ min: milliseconds(least), median: milliseconds(median(medians)) },
      max: milliseconds(greatest),
      ...{ code, gap },
    }));
  }

  /**
   * Times, loss and whether a run was bad, in each part of a range, null in parts without a run; and the parts in which
   * a change was confirmed.
   */
  line(name: string, range: Range) {
    const { sinceMs, untilMs, points } = range;
    const width = widthOf(range);
    const known = this.#parts(name, range, "");
    const parts = Array.from({ length: points }, (_, at) => {
      return known.get(sinceMs + at * width) ?? newPart();
    });
    const changes = this.#read<{ at: number }>(
      "select at from change where watch = ? and confirmed and at >= ? and at < ? order by at",
      ...[this.#watchId(name), sinceMs, untilMs],
    );
    return {
      rtt: parts.map(({ medians }) => milliseconds(median(medians))),
      loss: parts.map(lossOf),
      bad: parts.map(({ runs, rank }) => (runs === 0 ? null : rank === WORST)),
      changed: [...new Set(changes.map(({ at }) => Math.floor((at - sinceMs) / width)))],
    };
  }

  /**
   * The parts of a range by their begin. Rows are grouped here, which takes half as long as in SQLite.
   *
   * @param extremes the columns of the least and the greatest time; empty if they are not needed, which is faster
   */
  #parts(name: string, range: Range, extremes = ", least, greatest") {
    const { sinceMs, untilMs } = range;
    const width = widthOf(range);
    const beginOf = (at: number) => at - ((at - sinceMs) % width);
    const all = this.#read<{ id: number; text: string }>("select id, text from word");
    const words = new Map(all.map(({ id, text }) => [id, text]));
    const ranks = new Map(all.map(({ id, text }) => [id, rankOf(text)]));
    const parts = new Map<number, ReturnType<typeof newPart>>();
    let part = newPart();
    let endMs = 0;
    const bounds = [this.#watchId(name), sinceMs, untilMs];
    type Row = LevelRun & { at: number; code: number; least: number; greatest: number };
    const runs = `select at, code, sent, lost, median${extremes} from run
      where watch = ? and at >= ? and at < ?`;
    for (const row of this.#read<Row>(runs, ...bounds)) {
      // Rows come in the order of their time.
      if (row.at >= endMs) {
        const begin = beginOf(row.at);
        part = parts.getOrInsertComputed(begin, newPart);
        endMs = begin + width;
      }
      part.runs++;
      part.sent += row.sent;
      part.lost += row.lost;
      if (row.median !== null) {
        part.medians.push(row.median);
        part.least = Math.min(part.least, row.least);
        part.greatest = Math.max(part.greatest, row.greatest);
      }
      const rank = ranks.get(row.code) ?? 0;
      // The last of those that are equally bad.
      if (rank >= part.rank) [part.rank, part.code] = [rank, words.get(row.code) ?? null];
    }
    const gaps = "select at, ms, reason from gap where watch = ?1 and at + ms >= ?2 and at < ?3";
    type Gap = { at: number; ms: number; reason: number };
    for (const { at, ms, reason } of this.#read<Gap>(gaps, ...bounds)) {
      const end = Math.min(at + ms, untilMs);
      for (let begin = beginOf(Math.max(at, sinceMs)); begin < end; begin += width) {
        parts.getOrInsertComputed(begin, newPart).gap = words.get(reason) ?? null;
      }
    }
    return parts;
  }

  /** The changes of a watch between two Unix times in milliseconds, the oldest first. */
  changes(name: string, sinceMs: number, untilMs: number): WatchChange[] {
    return this.#read<Omit<WatchChange, "at" | "confirmed"> & { at: number; confirmed: number }>(
      `select id, at, kind, text, confirmed from change where watch = ? and at >= ? and at < ? order by at`,
      ...[this.#watchId(name), sinceMs, untilMs],
    ).map((row) => ({ ...row, at: isoOf(row.at), confirmed: row.confirmed === 1 }));
  }

  /** Both sides of a change; null for an unknown one. */
  change(name: string, id: number) {
    type Sides = { diff: string } & Record<"before" | "after" | "evidence", Uint8Array | null>;
    const sql = "select diff, before, after, evidence from change where id = ? and watch = ?";
    const [row] = this.#read<Sides>(sql, id, this.#watchId(name));
    if (row === undefined) return null;
    const { diff, ...sides } = row;
    return { ...mapValues(sides, packed.open), diff: JSON.parse(diff) };
  }

  /** How many confirmed changes each watch has had since two Unix times in milliseconds. */
  counts(dayMs: number, monthMs: number): ReadonlyMap<string, { day: number; month: number }> {
    const rows = this.#read<{ name: string; day: number; month: number }>(
      `select name, sum(at >= ?1) as day, count(*) as month from change join watch on watch.id = change.watch
        where confirmed and at >= ?2 group by name`,
      ...[dayMs, monthMs],
    );
    return new Map(rows.map(({ name, day, month }) => [name, { day, month }]));
  }

  /** The number of changes since a Unix time in milliseconds that a second run did not see. */
  flaps(sinceMs: number): number {
    const sql = "select count(*) as count from change where not confirmed and at >= ?";
    return this.#read<{ count: number }>(sql, sinceMs)[0]?.count ?? 0;
  }

  waiting(): readonly Notification[] {
    const sql = `select change.id, name, at, kind, change.text from change join watch on watch.id = change.watch
      where untold order by change.id`;
    const rows = this.#read<Omit<Notification, "at"> & { at: number }>(sql);
    return rows.map((row) => ({ ...row, at: isoOf(row.at) }));
  }

  forget(id: number): void {
    this.#write((db) => db.query("update change set untold = 0 where id = ?").run(id));
  }

  /** Writes the log to the file, and cuts it. */
  checkpoint(): void {
    this.#db?.run("pragma wal_checkpoint(truncate)");
  }

  [Symbol.dispose](): void {
    this.close();
  }

  close(): void {
    this.#db?.close();
    this.#db = null;
    this.#reader?.close();
    this.#reader = null;
    this.#isRefused = true;
  }

  #putStanding(db: Database, watch: number, { code, text, sinceMs, document }: Standing): void {
    const sql = "update watch set code = ?, text = ?, since = ?, document = ? where id = ?";
    db.query(sql).run(code, text, sinceMs, document, watch);
  }

  #idOf(db: Database, table: "watch" | "word", text: string): number {
    const ids = table === "watch" ? this.#watchIds : this.#wordIds;
    const column = table === "watch" ? "name" : "text";
    return ids.getOrInsertComputed(text, () => {
      db.query(`insert or ignore into ${table} (${column}) values (?)`).run(text);
      const row = db.query<{ id: number }, string>(`select id from ${table} where ${column} = ?`);
      return row.get(text)?.id ?? 0;
    });
  }

  #watchId(name: string): number | null {
    return this.#read<{ id: number }>("select id from watch where name = ?", name)[0]?.id ?? null;
  }

  #read<Row>(sql: string, ...values: (string | number | null)[]): Row[] {
    try {
      const db = this.#db ?? this.#reader;
      return db?.query<Row, typeof values>(sql).all(...values) ?? [];
    } catch (error) {
      // The reason why a file could not be opened is known already.
      if (this.#problem === null) this.#fail(error);
      return [];
    }
  }

  /** Runs a transaction. If the file may not grow, it deletes the oldest rows to make room. */
  #write(action: (db: Database) => void): boolean {
    if (this.#problem === null && this.#inode !== inodeOf(this.#path)) this.#begin();
    if (this.#problem !== null && Date.now() >= this.#retryMs && !this.#isRefused) this.#open();
    const db = this.#db;
    if (db === null) return false;
    for (let prunes = 0; ; prunes++) {
      try {
        db.transaction(action).immediate(db);
        if (this.#problem !== null) this.#log.info("the history is written again");
        this.#problem = null;
        this.#lastWriteMs = Date.now();
        return true;
      } catch (error) {
        this.#watchIds.clear();
        this.#wordIds.clear();
        const isFull = error instanceof SQLiteError && error.code === "SQLITE_FULL";
        if (isFull && prunes < MAX_PRUNES && this.#isAtLimit(db) && this.#prune(db)) continue;
        this.#fail(error);
        return false;
      }
    }
  }

  /** Opens the file that is there now, or a new one. */
  #begin(): void {
    this.#fail(new Error("the file was removed or replaced; what it had is not there any more"));
    this.#db?.close();
    this.#db = null;
    this.#watchIds.clear();
    this.#wordIds.clear();
    this.#open();
  }

  #isAtLimit(db: Database): boolean {
    const pages = db.query<{ page_count: number }, []>("pragma page_count").get()?.page_count ?? 0;
    return pages >= this.#pages - this.#walPages;
  }

  /** Deletes the oldest runs, or the oldest change if there are none. Returns false if nothing is left, or on failure. */
  #prune(db: Database): boolean {
    const prune = () => {
      type Row = { id: number; at: number };
      const oldest = db
        .query<Row, []>(`select id, (select min(at) from run where watch = id) as at from watch
          where at not null order by at`)
        .all();
      const [first] = oldest;
      if (first === undefined) {
        return db.run("delete from change where id = (select min(id) from change)").changes > 0;
      }
      const rows = Math.ceil((this.#walPages * ROWS_A_PAGE) / oldest.length);
      const end = db
        .query<Row, number[]>("select at from run where watch = ? order by at limit 1 offset ?")
        .get(first.id, rows);
      const before = end?.at ?? Number.MAX_SAFE_INTEGER;
      for (const { id, at } of oldest) {
        if (at < before) db.query("delete from run where watch = ? and at < ?").run(id, before);
      }
      db.query("delete from gap where at + ms < ?").run(before);
      db.run(`delete from watch where not exists (select 1 from run where watch = watch.id)
        and not exists (select 1 from change where watch = watch.id)`);
      return true;
    };
    return attempt(db.transaction(prune), SQLiteError) ?? false;
  }

  #open(): void {
    this.#retryMs = Date.now() + RETRY_MS;
    const open = this.#db;
    try {
      const later = versionOf(this.#path);
      if (later > VERSION) {
        this.#isRefused = true;
        throw new Error(
          `it is of version ${later}, and this program knows ${VERSION}; use a later sixscope, or another file`,
        );
      }
      const db = new Database(this.#path, { create: true, strict: true });
      try {
        this.#prepare(db);
      } catch (error) {
        db.close();
        throw error;
      }
      this.#db = db;
      this.#inode = inodeOf(this.#path);
      open?.close();
      this.#reader?.close();
      this.#reader = null;
    } catch (error) {
      this.#fail(error);
      if (this.#isRefused || this.#db !== null) return;
      this.#reader ??= readerOf(this.#path, "mode=ro") ?? readerOf(this.#path, "immutable=1");
    }
  }

  #prepare(db: Database): void {
    const all = Math.floor(this.#maxBytes / PAGE_BYTES);
    this.#walPages = Math.min(WAL.most, Math.max(WAL.least, Math.round(all * WAL.part)));
    this.#pages = all - 4 * this.#walPages;
    const number = (name: string) =>
      Object.values(db.query<Record<string, number>, []>(`pragma ${name}`).get() ?? {})[0] ?? 0;
    const isNew = number("user_version") === 0;
    if (isNew && db.query("select 1 from sqlite_schema").get() !== null) {
      this.#isRefused = true;
      throw new Error("it is a file of another program");
    }
    db.run("pragma busy_timeout = 100");
    if (isNew) db.run("pragma auto_vacuum = incremental");
    db.run("pragma journal_mode = wal");
    // The log is synced when it is written to the file: a killed process loses nothing, a power cut the last seconds.
    db.run("pragma synchronous = normal");
    db.run(`pragma wal_autocheckpoint = ${this.#walPages}`);
    db.run(`pragma journal_size_limit = ${this.#walPages * PAGE_BYTES}`);
    if (isNew) db.transaction(() => db.run(TABLES)).immediate();
    else db.transaction(() => db.run(`pragma user_version = ${VERSION}`)).immediate();
    const isTooLarge = () => number("page_count") - number("freelist_count") > this.#pages;
    while (isTooLarge() && this.#prune(db));
    if (number("page_count") > this.#pages) {
      db.run("pragma incremental_vacuum");
      db.run("pragma wal_checkpoint(truncate)");
    }
    db.run(`pragma max_page_count = ${this.#pages}`);
  }

  #fail(error: unknown): void {
    const problem = `${this.#path}: ${reasonOf(error)}`;
    if (this.#problem !== problem) this.#log.error(`the history cannot be used: ${problem}`);
    this.#problem = problem;
  }
}

/**
 * Opens a file to read it; null if that fails. `mode=ro` reads the log too, but needs the log's files, which do not
 * exist after a clean end and cannot be made on a read-only disk.
 */
function readerOf(path: string, how: "mode=ro" | "immutable=1"): Database | null {
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
  const db = attempt(() => new Database(`file:${encodeURI(path)}?${how}`, flags));
  if (attempt(() => db?.query("select 1 from sqlite_schema").all())) return db ?? null;
  db?.close();
  return null;
}

const inodeOf = (path: string) => attempt(() => statSync(path).ino);

/** The version of the tables in a file, without opening it as a database; 0 for a new one. */
function versionOf(path: string): number {
  const file = attempt(() => openSync(path, "r"));
  if (file === undefined) return 0;
  try {
    const header = Buffer.alloc(HEADER.bytes);
    readSync(file, header, 0, HEADER.bytes, 0);
    const isDatabase = header.toString("latin1", 0, HEADER.magic.length) === HEADER.magic;
    return isDatabase ? header.readUInt32BE(HEADER.versionAt) : 0;
  } finally {
    closeSync(file);
  }
}
