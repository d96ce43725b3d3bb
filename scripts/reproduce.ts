/**
 * Builds the commit that is checked out in two folders, with two values of `umask`, and shows that the
 * results are identical to the byte:
 *
 *     bun scripts/reproduce.ts           executable and package for this machine
 *     bun scripts/reproduce.ts --all     everything that is shipped
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../test/lab/run.ts";
import { ROOT } from "./build/source.ts";

const mode = Bun.argv.includes("--all") ? "--all" : "--deb";

/** Clones and builds in a new folder; returns the SHA-256 of each file by its name. */
async function build(from: string, folder: string, umask: string): Promise<Map<string, string>> {
  const script = `umask ${umask}; git clone --quiet "$1" "$2"; cd "$2"; exec "$3" run build "$4"`;
  await run(["sh", "-ec", script, "sh", from, folder, process.execPath, mode]);
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
  // The second is a clone of the first, so a commit in the meantime changes neither.
  const first = await build(ROOT, one, "022");
  const second = await build(one, another, "077");
  const names = [...new Set([...first.keys(), ...second.keys()])];
  for (const name of names) {
    const isSame = first.get(name) === second.get(name);
    console.log(`${isSame ? "same" : "DIFFERENT"} ${first.get(name)} ${name}`);
    if (!isSame) process.exitCode = 1;
  }
} finally {
  await rm(folder, { recursive: true });
}
