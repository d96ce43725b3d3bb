/**
 * Builds the commit that is checked out in two folders, and shows that the results are the same to the
 * byte:
 *
 *     bun scripts/reproduce.ts           executable and package for this machine
 *     bun scripts/reproduce.ts --all     everything that is shipped
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./build/source.ts";

const mode = Bun.argv.includes("--all") ? "--all" : "--deb";

async function run(command: readonly string[], folder: string): Promise<void> {
  const child = Bun.spawn([...command], { cwd: folder, stdout: "ignore", stderr: "pipe" });
  const [complaint, status] = await Promise.all([child.stderr.text(), child.exited]);
  if (status !== 0) throw new Error(`${command.join(" ")}: ${complaint}`);
}

/** Builds in a folder; returns the SHA-256 of each file by its name. */
async function build(folder: string): Promise<Map<string, string>> {
  await run([process.execPath, "run", "build", mode], folder);
  const sums = new Map<string, string>();
  for (const name of (await readdir(join(folder, "dist"))).sort()) {
    const bytes = await Bun.file(join(folder, "dist", name)).bytes();
    sums.set(name, Bun.SHA256.hash(bytes, "hex"));
  }
  return sums;
}

const folder = await mkdtemp(join(tmpdir(), "sixscope-reproduce-"));
try {
  const [one, another] = [join(folder, "one"), join(folder, "another/place")];
  // The second is a clone of the first: whoever commits meanwhile changes neither.
  await run(["git", "clone", "--quiet", ROOT, one], ROOT);
  await run(["git", "clone", "--quiet", one, another], ROOT);
  const first = await build(one);
  const second = await build(another);
  const names = [...new Set([...first.keys(), ...second.keys()])];
  for (const name of names) {
    const isSame = first.get(name) === second.get(name);
    console.log(`${isSame ? "same" : "DIFFERENT"} ${first.get(name)} ${name}`);
    if (!isSame) process.exitCode = 1;
  }
} finally {
  await rm(folder, { recursive: true });
}
