/**
 * Runs a program to its end and returns what it printed.
 *
 * @throws Error with the command, its status and what it complained of
 */
export async function run(command: readonly string[], input = ""): Promise<string> {
  const child = Bun.spawn([...command], {
    stdin: new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, complaint, status] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  if (status !== 0) {
    throw new Error(`${command.join(" ")}: status ${status}\n${output}${complaint}`);
  }
  return output;
}

/** Whether a program ends with status 0. */
export async function succeeds(command: readonly string[]): Promise<boolean> {
  return await run(command).then(
    () => true,
    () => false,
  );
}
