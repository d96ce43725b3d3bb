import { copyFile, mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { run } from "../../test/lab/run.ts";

/** The suite and its only component, as `sources.list` names them; deb822 stanzas in docs/operations.md. */
const SUITE = "stable";
const COMPONENT = "main";

/**
 * How long apt takes the lists for current, in milliseconds: who stands between a machine and the repository can hold
 * a fix back as long, and a repository that is signed each quarter never expires.
 */
const VALID_MS = 180 * 86_400_000;

/** A package, by the path of its file, and Debian's name for its processor. */
export type PackageFile = readonly [file: string, architecture: string];

/**
 * Makes a repository for apt as a folder of files, which any web server or a file system can offer:
 * https://wiki.debian.org/DebianRepository/Format. `Release` is signed, and has the SHA-256 of the lists,
 * which have those of the packages.
 *
 * @param key the name or fingerprint of a secret key of `gpg`; its public key becomes `sixscope.gpg`
 * @param program `gpg`, perhaps with options
 * @param nowMs when it is signed, in Unix milliseconds
 * @throws Error if `gpg` has no such key
 */
export async function makeRepository(
  folder: string,
  packages: readonly PackageFile[],
  key: string,
  program: readonly string[] = ["gpg"],
  nowMs = Date.now(),
): Promise<void> {
  const suite = join(folder, "dists", SUITE);
  const lists: string[] = [];
  for (const architecture of new Set(packages.map(([, each]) => each))) {
    const own = packages.filter(([, each]) => each === architecture);
    const stanzas = await Promise.all(own.map(([file]) => addPackage(folder, file)));
    const text = stanzas.join("\n");
    const path = `${COMPONENT}/binary-${architecture}/Packages`;
    for (const [name, bytes] of [
      [path, Buffer.from(text)],
      [`${path}.gz`, Bun.gzipSync(text, { level: 9 })],
    ] as const) {
      await Bun.write(join(suite, name), bytes);
      lists.push(` ${Bun.SHA256.hash(bytes, "hex")} ${bytes.length} ${name}`);
    }
  }
  const release = join(suite, "Release");
  const fields = [
    "Origin: sixscope",
    "Label: sixscope",
    `Suite: ${SUITE}`,
    `Codename: ${SUITE}`,
    `Date: ${new Date(nowMs).toUTCString()}`,
    `Valid-Until: ${new Date(nowMs + VALID_MS).toUTCString()}`,
    `Architectures: ${[...new Set(packages.map(([, each]) => each))].join(" ")}`,
    `Components: ${COMPONENT}`,
    "Description: IPv6 diagnostics",
    "SHA256:",
    ...lists,
  ];
  await Bun.write(release, `${fields.join("\n")}\n`);
  const gpg = [...program, "--batch", "--yes", "--local-user", key];
  await run([...gpg, "--clearsign", "--output", join(suite, "InRelease"), release]);
  await run([...gpg, "--armor", "--detach-sign", "--output", `${release}.gpg`, release]);
  await run([...gpg, "--output", join(folder, "sixscope.gpg"), "--export", key]);
}

/** Copies a package into the pool, and returns its stanza for the list. */
async function addPackage(folder: string, file: string): Promise<string> {
  const path = join("pool", basename(file));
  await mkdir(join(folder, "pool"), { recursive: true });
  await copyFile(file, join(folder, path));
  const bytes = await Bun.file(file).bytes();
  const control = (await run(["dpkg-deb", "--field", file])).trim();
  const about = [
    `Filename: ${path}`,
    `Size: ${bytes.length}`,
    `SHA256: ${Bun.SHA256.hash(bytes, "hex")}`,
  ];
  return `${[control, ...about].join("\n")}\n`;
}
