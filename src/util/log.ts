import {
  configureSync,
  getJsonLinesFormatter,
  getLogfmtFormatter,
  getLogger,
  type LogRecord,
  type TextFormatter,
} from "@logtape/logtape";
import { printable } from "./text.ts";

/** Levels in ascending order; a log writes its own level and all higher ones. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** `text` is logfmt, `name=value` pairs; `json` is one object per line. */
export const LOG_FORMATS = ["text", "json"] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** Named values of a log line. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The service's log; each call writes one line, with line breaks escaped. */
export interface Log {
  /** Whether lines of this level are written. */
  writes(level: LogLevel): boolean;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Whether each line starts with its priority. */
  readonly priorities: boolean;
  /** Takes lines, each with its newline. */
  readonly write: (line: string) => void;
}

const CATEGORY = "sixscope";

/** syslog(3) priorities by the library's level names; journald reads `<3>` at the start of a line; sd-daemon(3). */
export const PRIORITIES: Readonly<Record<LogRecord["level"], number>> = {
  trace: 7,
  debug: 7,
  info: 6,
  warning: 4,
  error: 3,
  fatal: 2,
};

/** Messages are not templates: text in braces comes from outside. */
const FORMATTERS: Readonly<Record<LogFormat, TextFormatter>> = {
  text: getLogfmtFormatter({ message: "template" }),
  json: getJsonLinesFormatter({ message: "template", properties: "flatten" }),
};

/** Creates the log of this process; a later one replaces an earlier one. */
export function createLog({ level, format, priorities, write }: LogOptions): Log {
  const formatter = FORMATTERS[format];
  configureSync({
    reset: true,
    sinks: {
      lines: (record) => {
        // The library escapes only characters that break a line.
        const line = `${printable(formatter(record).trimEnd())}\n`;
        write(priorities ? `<${PRIORITIES[record.level]}>${line}` : line);
      },
    },
    loggers: [
      {
        category: CATEGORY,
        sinks: ["lines"],
        lowestLevel: level === "warn" ? "warning" : level,
      },
      // Silences the library's own notices.
      { category: ["logtape", "meta"], sinks: [] },
    ],
  });
  const logger = getLogger(CATEGORY);
  return {
    writes: (other) => LOG_LEVELS.indexOf(other) >= LOG_LEVELS.indexOf(level),
    info: (message, fields) => logger.info(message, fields),
    warn: (message, fields) => logger.warn(message, fields),
    error: (message, fields) => logger.error(message, fields),
  };
}

/** How long a line waits for others, so that many lines share one write. */
const GATHER_MS = 10;

/** How much may wait for a reader that has stopped reading; further lines are dropped and counted. */
const MAX_WAITING_CHARACTERS = 1024 * 1024;

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
    if (this.#waiting.length + line.length > MAX_WAITING_CHARACTERS) {
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
      const dropped = this.#dropped;
      const notice = dropped > 0 ? `${dropped} lines were dropped: the reader was too slow\n` : "";
      const text = notice + this.#waiting;
      this.#waiting = "";
      this.#dropped = 0;
      try {
        this.#sink.write(text);
        await this.#sink.flush();
      } catch {
        // The reader has gone; there is nowhere to report it.
      }
    }
    this.#writing = null;
  }
}
