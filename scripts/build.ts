/**
 * Builds what is shipped, in `dist`:
 *
 *     bun run build           the executable for this machine, and the licences of the software inside
 *     bun run build --deb     also its Debian package
 *     bun run build --all     executables and archives for all targets, Debian packages, SHA256SUMS,
 *                             and the bill of materials
 */
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { compile, hostTarget, TARGETS, type Target } from "./build/compile.ts";
import { thirdPartyNotices } from "./build/notices.ts";
import { DEBIAN_ARCHITECTURES, makeArchive, makeDebianPackage } from "./build/package.ts";
import { billOfMaterials } from "./build/sbom.ts";
import { ROOT, readSource } from "./build/source.ts";

const DIST = join(ROOT, "dist");
const MODES = [undefined, "--deb", "--all"];

const [mode, ...more] = Bun.argv.slice(2);
if (!MODES.includes(mode) || more.length > 0) {
  console.error("usage: bun run build [--deb|--all]");
  process.exit(2);
}

const source = await readSource();
await rm(DIST, { recursive: true, force: true });
await mkdir(DIST);

const packages = new Set<string>();
const targets = mode === "--all" ? TARGETS : [hostTarget()];
const executableOf = (target: Target) =>
  join(DIST, mode === "--all" ? `sixscope-${target}` : "sixscope");
for (const target of targets) {
  for (const name of await compile(target, source, executableOf(target))) packages.add(name);
}

const notices = join(DIST, "THIRD-PARTY-NOTICES");
await Bun.write(notices, await thirdPartyNotices([...packages].sort()));

for (const target of targets) {
  const contents = { executable: executableOf(target), notices };
  const architecture = DEBIAN_ARCHITECTURES[target];
  if (mode !== undefined && architecture !== undefined) {
    const deb = `sixscope_${source.version}_${architecture}.deb`;
    await makeDebianPackage(contents, architecture, source, join(DIST, deb));
  }
  if (mode === "--all") {
    const archive = `sixscope-${source.version}-${target}.tar.xz`;
    await makeArchive(contents, target, source, join(DIST, archive));
  }
}

if (mode === "--all") {
  await copyFile(join(DIST, `sixscope-${hostTarget()}`), join(DIST, "sixscope"));
  await Bun.write(
    join(DIST, `sixscope-${source.version}.cdx.json`),
    `${JSON.stringify(await billOfMaterials(source, [...packages]), null, 2)}\n`,
  );
  const sums = await Promise.all(
    (await readdir(DIST)).sort().map(async (name) => {
      const bytes = await Bun.file(join(DIST, name)).bytes();
      return `${Bun.SHA256.hash(bytes, "hex")}  ${name}\n`;
    }),
  );
  await Bun.write(join(DIST, "SHA256SUMS"), sums.join(""));
}

for (const name of (await readdir(DIST)).sort()) {
  console.log(`dist/${name} ${(Bun.file(join(DIST, name)).size / 1024 / 1024).toFixed(1)} MiB`);
}
