/** The message of an error, or any other thrown value as text. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * The result of an action; undefined if it throws and the reason does not matter.
 *
 * @param kind the errors that are expected; others are thrown on
 */
export function attempt<T>(action: () => T, kind?: new (...args: never[]) => Error): T | undefined {
  try {
    return action();
  } catch (error) {
    if (kind && !(error instanceof kind)) throw error;
    return undefined;
  }
}

/** The result of an action; if it throws, throws the error that `make` makes of the reason. */
export function orThrow<T>(action: () => T, make: (reason: string, cause: unknown) => Error): T {
  try {
    return action();
  } catch (error) {
    throw make(reasonOf(error), error);
  }
}

/** The stack trace of an error, for the log; its message if it has none. */
export function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The system's code of an error, such as `ENOENT`, or undefined. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}
