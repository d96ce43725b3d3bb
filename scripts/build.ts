/**
 * Builds what is shipped, in `dist`:
 *
 *     bun run build           the executable for this machine, and the licences of the software inside
 *     bun run build --deb     also its Debian package, whose path is the last line
 *     bun run build --all     executables and archives for all targets, Debian packages, container images,
 *                             SHA256SUMS, and the bill of materials
 *     bun run release KEY     all that, and a repository for apt, signed by that key of `gpg`
 */
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../test/lab/run.ts";
import { compile, hostTarget, TARGETS, type Target } from "./build/compile.ts";
import { makeImage } from "./build/image.ts";
import { thirdPartyNotices } from "./build/notices.ts";
import { DEBIAN_ARCHITECTURES, makeArchive, makeDebianPackage } from "./build/package.ts";
import { makeRepository, type PackageFile } from "./build/repository.ts";
import { billOfMaterials } from "./build/sbom.ts";
import { ROOT, readSource } from "./build/source.ts";
import { inProject } from "./build/stage.ts";

const DIST = join(ROOT, "dist");
const MODES = [undefined, "--deb", "--all", "--release"];

const [option, key, ...more] = Bun.argv.slice(2);
const isRelease = option === "--release";
if (!MODES.includes(option) || isRelease !== (key !== undefined) || more.length > 0) {
  console.error("usage: bun run build [--deb|--all], or bun run release KEY");
  process.exit(2);
}

// A wrong name is known at once, and not after all archives.
if (key !== undefined) await run(["gpg", "--list-secret-keys", key]);

const mode = isRelease ? "--all" : option;
const source = await readSource();
await rm(DIST, { recursive: true, force: true });
await mkdir(DIST);

const packages = new Set<string>();
const debianPackages: PackageFile[] = [];
const targets = mode === "--all" ? TARGETS : [hostTarget()];
const executableOf = (target: Target) => (mode === "--all" ? `sixscope-${target}` : "sixscope");
for (const target of targets) {
  await make(executableOf(target), async (file) => {
    for (const name of await compile(target, source, file)) packages.add(name);
  });
}

const notices = join(DIST, "THIRD-PARTY-NOTICES");
await make("THIRD-PARTY-NOTICES", async (file) => {
  await Bun.write(file, await thirdPartyNotices([...packages].sort()));
});

for (const target of targets) {
  const contents = { executable: join(DIST, executableOf(target)), notices };
  const architecture = DEBIAN_ARCHITECTURES[target];
  if (mode !== undefined && architecture !== undefined) {
    const name = `sixscope_${source.version}_${architecture}.deb`;
    await make(name, (file) => makeDebianPackage(contents, architecture, source, file));
    debianPackages.push([join(DIST, name), architecture]);
  }
  if (mode === "--all") {
    if (architecture !== undefined) {
      await make(`sixscope-${source.version}-oci-${architecture}.tar`, (file) =>
        makeImage(contents, architecture, source, file),
      );
    }
    await make(`sixscope-${source.version}-${target}.tar.xz`, (file) =>
      makeArchive(contents, target, source, file),
    );
  }
}

if (mode === "--all") {
  await make("sixscope.container", (file) =>
    copyFile(inProject("systemd/sixscope.container"), file),
  );
  await make("sixscope", (file) => copyFile(join(DIST, executableOf(hostTarget())), file));
  await make(`sixscope-${source.version}.cdx.json`, async (file) => {
    const bill = await billOfMaterials(source, [...packages]);
    await Bun.write(file, `${JSON.stringify(bill, null, 2)}\n`);
  });
  await make("SHA256SUMS", async (file) => {
    const sums = await Promise.all(
      (await readdir(DIST)).sort().map(async (name) => {
        const bytes = await Bun.file(join(DIST, name)).bytes();
        return `${Bun.SHA256.hash(bytes, "hex")}  ${name}\n`;
      }),
    );
    await Bun.write(file, sums.join(""));
  });
}
if (key !== undefined) await makeRepository(join(DIST, "apt"), debianPackages, key);
if (mode === "--deb") for (const [path] of debianPackages) console.log(path);

/** Writes a file of `dist`, and says so, because an archive takes minutes. */
async function make(name: string, write: (file: string) => Promise<unknown>): Promise<void> {
  const file = join(DIST, name);
  const startMs = performance.now();
  process.stdout.write(`dist/${name} `);
  await write(file);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  console.log(`${(Bun.file(file).size / 1024 / 1024).toFixed(1)} MiB, ${seconds} s`);
}
