import {
  configureSync,
  getJsonLinesFormatter,
  getLogfmtFormatter,
  getLogger,
  type LogRecord,
  type TextFormatter,
} from "@logtape/logtape";
import { printable } from "./text.ts";

/** Levels in order of weight; a log at one level writes that level and all heavier ones. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** `text` is logfmt, one `name=value` after the other; `json` is one object a line. */
export const LOG_FORMATS = ["text", "json"] as const;

export type LogFormat = (typeof LOG_FORMATS)[number];

/** Facts that belong to a log line. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Where the service says what happens; one line a call, line breaks in it escaped. */
export interface Log {
  /** Whether lines of a level are written at all. */
  writes(level: LogLevel): boolean;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Whether each line begins with its priority, as journald reads it; sd-daemon(3). */
  readonly priorities: boolean;
  /** Takes lines, each with its newline. */
  readonly write: (line: string) => void;
}

const CATEGORY = "sixscope";

/** syslog(3) priorities, by the library's names of levels. */
const PRIORITIES: Readonly<Record<LogRecord["level"], number>> = {
  trace: 7,
  debug: 7,
  info: 6,
  warning: 4,
  error: 3,
  fatal: 2,
};

/** A message is not a template: what stands in braces was written by somebody else. */
const FORMATTERS: Readonly<Record<LogFormat, TextFormatter>> = {
  text: getLogfmtFormatter({ message: "template" }),
  json: getJsonLinesFormatter({ message: "template", properties: "flatten" }),
};

/** Makes the log of this process; a later one takes the place of an earlier one. */
export function createLog({ level, format, priorities, write }: LogOptions): Log {
  const formatter = FORMATTERS[format];
  configureSync({
    reset: true,
    sinks: {
      lines: (record) => {
        // A stranger's words, escaped by the library as far as a line can break at them.
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
      // The library's own notices are none of the operator's business.
      { category: ["logtape", "meta"], sinks: [] },
    ],
  });
  const logger = getLogger(CATEGORY);
  return {
    writes: (other) => LOG_LEVELS.indexOf(other) >= LOG_LEVELS.indexOf(level),
    debug: (message, fields) => logger.debug(message, fields),
    info: (message, fields) => logger.info(message, fields),
    warn: (message, fields) => logger.warn(message, fields),
    error: (message, fields) => logger.error(message, fields),
  };
}
