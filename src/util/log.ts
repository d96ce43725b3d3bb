import { printable } from "./text.ts";

/** Levels in ascending order; a log writes its own level and all higher ones. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** `text` is logfmt, `name=value` pairs; `json` is one object per line. */
export const LOG_FORMATS = ["text", "json"] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** Named values of a log line; undefined ones are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The service's log; each call writes one line, with line breaks escaped. */
export interface Log extends Record<LogLevel, (message: string, fields?: LogFields) => void> {
  /** True if lines of this level are written. */
  writes(level: LogLevel): boolean;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** True if each line starts with its priority. */
  readonly priorities: boolean;
  /** Takes lines, each with its newline. */
  readonly write: (line: string) => void;
}

/** syslog(3) priorities; journald reads `<3>` at the start of a line; sd-daemon(3). */
const PRIORITIES = { debug: 7, info: 6, warn: 4, error: 3 } as const;

/** A value that needs no quotes in logfmt: printable ASCII without space, quote, `=` and backslash. */
const PLAIN = /^[!#-<>-[\]-~]+$/;

function logfmt(value: LogFields[string]): string {
  if (typeof value !== "string" || PLAIN.test(value)) return String(value);
  return printable(JSON.stringify(value));
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const line = { "@timestamp": time, level: level.toUpperCase(), message, logger: "sixscope" };
  return printable(JSON.stringify(Object.assign(line, fields)));
}

function textLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const name = level === "warn" ? "warning" : level;
  let line = `time=${time} level=${name} logger=sixscope msg=${logfmt(message)}`;
  for (const field in fields) {
    if (fields[field] !== undefined) line += ` ${field}=${logfmt(fields[field])}`;
  }
  return line;
}

/** Creates a log. */
export function createLog({ level, format, priorities, write }: LogOptions): Log {
  const lineOf = format === "json" ? jsonLine : textLine;
  const writes = (other: LogLevel) => LOG_LEVELS.indexOf(other) >= LOG_LEVELS.indexOf(level);
  const at = (own: LogLevel) => {
    if (!writes(own)) return () => {};
    const priority = priorities ? `<${PRIORITIES[own]}>` : "";
    return (message: string, fields: LogFields = {}) => {
      const time = new Date().toISOString();
      write(`${priority}${lineOf(time, own, message, fields)}\n`);
    };
  };
  return { writes, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The time that a line waits for others, so that many lines share one write. */
const GATHER_MS = 10;

/** Characters that may wait for a reader that has stopped reading; further lines are dropped and counted. */
const MAX_WAITING = 1024 * 1024;

/** The destination of lines; standard error as `Bun.stderr.writer()` returns it. */
export interface LineSink {
  write(text: string): unknown;
  flush(): unknown;
}

/** Writes lines without blocking the service and within bounded memory. */
export class LineWriter {
  readonly #sink: LineSink;
  #waiting = "";
  #dropped = 0;
  #writing: Promise<void> | null = null;

  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  /** @param line with its newline */
  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_WAITING) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += line;
    this.#writing ??= this.#writeAll();
  }

  /** Resolves when the sink has every line. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting !== "") {
      await Bun.sleep(GATHER_MS);
      const [lines, dropped] = [this.#waiting, this.#dropped];
      this.#waiting = "";
      this.#dropped = 0;
      try {
        if (dropped > 0)
          this.#sink.write(`${dropped} lines were dropped: the reader was too slow\n`);
        this.#sink.write(lines);
        await this.#sink.flush();
      } catch {
        // The reader has gone; there is nowhere to report it.
      }
    }
    this.#writing = null;
  }
}
