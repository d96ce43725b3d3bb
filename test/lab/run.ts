/** Debian keeps `ip`, `nft` and their like where an ordinary user's PATH may not look. */
const PATH = `${process.env["PATH"]}:/usr/local/sbin:/usr/sbin:/sbin`;

/** The environment variable that says "inside" in the test namespace, or else why there is none. */
export const LAB_VARIABLE = "TEST_LABORATORY";

/** The mark of `bun run test:quick`. */
export const QUICK = "bun run test:quick leaves it out";

/** How long a test may take on a busy machine. Only an argument of the runner reaches hooks too. */
export const TIMEOUT = "--timeout=300000";

/** The environment for programs of the laboratory. */
export const labEnvironment: Readonly<Record<string, string | undefined>> = {
  ...process.env,
  PATH,
};

/** The browser of the page tests, if both are installed: without windows, it takes a third of the time. */
const BROWSER = process.env["TEST_BROWSER"] ?? "chromium-headless-shell";

/** The full path of an installed program, also one for administrators; null where there is none. */
export function findProgram(program: string): string | null {
  const preferred = program === "chromium" ? Bun.which(BROWSER, { PATH }) : null;
  return preferred ?? Bun.which(program, { PATH });
}

/**
 * Runs a program to its end and returns what it printed.
 *
 * @throws Error with the command, its status and its standard error when the status is not 0
 */
export async function run(command: readonly string[], input = ""): Promise<string> {
  const child = Bun.spawn([...command], {
    env: labEnvironment,
    stdin: new TextEncoder().encode(input),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, complaint, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) {
    throw new Error(`${command.join(" ")}: status ${status}: ${complaint.trim() || output.trim()}`);
  }
  return output;
}

/** True if a program ends with status 0. */
export async function succeeds(command: readonly string[]): Promise<boolean> {
  return await run(command).then(
    () => true,
    () => false,
  );
}

/** A shell command that waits until another prints something; status 124 after 30 s. */
function awaitOutput(command: string): string {
  return `timeout 30 sh -c 'until ${command} | grep -q .; do sleep 0.01; done'`;
}

/**
 * A shell command that waits until packets to an address just added are accepted. The kernel does
 * that later, also without duplicate address detection, and drops those that come before.
 */
export function awaitAddress(address: string): string {
  return awaitOutput(`ip -6 route show table local ${address}`);
}

/**
 * A shell command that waits until a link just set up lets packets pass; those before are lost, and
 * Neighbour Discovery asks again only after a second.
 */
export function awaitLink(device: string): string {
  return awaitOutput(`ip -o link show dev ${device} | grep "state UP"`);
}

/**
 * Runs many `ip` commands, each without its leading `ip`, in one process, and waits until packets to the IPv6
 * addresses that they add are accepted; stops at the first that fails.
 */
export async function runIp(commands: readonly string[]): Promise<void> {
  const added = commands.flatMap(
    (command) => /^addr(?:ess)? add ([^/]*:[^/]*)\//.exec(command)?.[1] ?? [],
  );
  const script = ["ip -batch -", ...added.map(awaitAddress)].join(" && ");
  await run(["sh", "-c", script], `${commands.join("\n")}\n`);
}
