/** Environment variables by their names, as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;
