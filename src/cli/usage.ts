/** A command line that cannot be run; `usage` shows how it is written. Exit status 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly usage: string;

  constructor(message: string, usage: string) {
    super(message);
    this.usage = usage;
  }
}
