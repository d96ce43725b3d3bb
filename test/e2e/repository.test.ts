/** The repository for apt: how long apt takes its lists for current, and what goes on when they no longer are. */
import { afterAll, beforeAll, expect } from "bun:test";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeRepository } from "../../scripts/build/repository.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";

const missing =
  ["apt-get", "gpg", "dpkg-deb"].map(programMissing).find((reason) => reason !== null) ?? null;
const aptTest = testWith(missing);

const SIGNER = "sixscope-test@localhost";
const DAY_MS = 86_400_000;

let folder: string;
let gpg: readonly string[];

beforeAll(async () => {
  if (missing !== null) return;
  folder = await mkdtemp(join(tmpdir(), "sixscope-apt-"));
  // For the user that apt reads it with.
  await chmod(folder, 0o755);
  gpg = ["gpg", "--homedir", join(folder, "gnupg")];
  await mkdir(join(folder, "gnupg"), { mode: 0o700 });
  const made = ["--batch", "--passphrase", "", "--quick-generate-key", SIGNER, "default", "sign"];
  await run([...gpg, ...made]);
  await mkdir(join(folder, "package/DEBIAN"), { recursive: true });
  const control = "Package: sixscope\nVersion: 1\nArchitecture: all\nMaintainer: x <x@localhost>\n";
  await writeFile(join(folder, "package/DEBIAN/control"), `${control}Description: x\n`);
  await run(["dpkg-deb", "--build", join(folder, "package"), join(folder, "sixscope.deb")]);
});

afterAll(async () => {
  if (folder) await rm(folder, { recursive: true });
});

/** What `apt-get update` says of a repository that was signed some days ago, with more lines in its source. */
async function update(daysAgo: number, more = "") {
  const root = join(folder, `root-${crypto.randomUUID()}`);
  const repository = join(root, "repository");
  const signedMs = Date.now() - daysAgo * DAY_MS;
  await makeRepository(repository, [[join(folder, "sixscope.deb"), "all"]], SIGNER, gpg, signedMs);
  for (const path of ["lists/partial", "cache/archives/partial", "sources"])
    await mkdir(join(root, path), { recursive: true });
  await writeFile(join(root, "status"), "");
  await writeFile(
    join(root, "sources/sixscope.sources"),
    `Types: deb\nURIs: file://${repository}\nSuites: stable\nComponents: main\nSigned-By: ${repository}/sixscope.gpg\n${more}`,
  );
  const options = {
    "Dir::State": root,
    "Dir::State::status": join(root, "status"),
    "Dir::Cache": join(root, "cache"),
    "Dir::Etc::sourcelist": "/dev/null",
    "Dir::Etc::sourceparts": join(root, "sources"),
    "Dir::Log": root,
    "APT::Sandbox::User": "root",
    // Images of containers may not check it.
    "Acquire::Check-Date": "true",
    "Acquire::Check-Valid-Until": "true",
  };
  const words = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const child = Bun.spawn(["apt-get", ...words, "update", "--error-on=any"], {
    env: { ...process.env, LC_ALL: "C" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const texts = [new Response(child.stdout).text(), new Response(child.stderr).text()];
  const text = (await Promise.all(texts)).join("");
  return { status: await child.exited, text };
}

aptTest(
  "apt takes lists that were signed half a year ago for current, and no older ones",
  async () => {
    expect(await update(0)).toMatchObject({ status: 0 });
    expect(await update(179)).toMatchObject({ status: 0 });
    expect(await update(181)).toMatchObject({
      status: 100,
      text: expect.stringContaining("expired"),
    });
  },
);

aptTest("a closed network can use lists that have expired", async () => {
  expect(await update(181, "Check-Valid-Until: no\n")).toMatchObject({ status: 0 });
});
