/** Levels in order of weight; a log at one level writes that level and all heavier ones. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

/** Facts that belong to a log line; written as `name=value`, values as JSON where they need quotes. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Where the service says what happens; one line a call. */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/**
 * Makes a log that writes lines of at least the given level.
 *
 * @param write takes one line without its newline; standard error by default
 */
export function createLog(
  level: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(`${line}\n`),
): Log {
  const threshold = LOG_LEVELS.indexOf(level);
  const at =
    (own: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LOG_LEVELS.indexOf(own) < threshold) return;
      write([own, message, ...Object.entries(fields).flatMap(formatField)].join(" "));
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function formatField([name, value]: [string, LogFields[string]]): string[] {
  if (value === undefined) return [];
  const text = String(value);
  return [`${name}=${/^[\w.:/@%[\]-]+$/.test(text) ? text : JSON.stringify(text)}`];
}
