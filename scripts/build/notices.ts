import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { BUN_PROJECT, RUNTIME_PARTS, versionOf } from "./runtime.ts";
import { ROOT } from "./source.ts";

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(\.(md|txt))?$/i;
const RULE = "=".repeat(80);

/**
 * The notices that come with the executable: the licence texts of its packages, and the parts of Bun.
 *
 * @param packages names of packages in node_modules
 * @throws Error if a package has no licence text
 */
export async function thirdPartyNotices(packages: readonly string[]): Promise<string> {
  const sections = await Promise.all(packages.map(packageSection));
  return [
    "sixscope is under the MIT licence; see LICENSE. Its executable contains the work of others:\n",
    ...sections,
    runtimeSection(),
  ].join(`\n${RULE}\n\n`);
}

async function packageSection(name: string): Promise<string> {
  const folder = join(ROOT, "node_modules", name);
  const { version } = await Bun.file(join(folder, "package.json")).json();
  const files = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  if (files.length === 0) throw new Error(`${name} has no licence text`);
  const texts = await Promise.all(files.map((file) => Bun.file(join(folder, file)).text()));
  return [`${name} ${version}, https://www.npmjs.com/package/${name}`, ...texts]
    .map((text) => `${text.trim()}\n`)
    .join("\n");
}

function runtimeSection(): string {
  const parts = RUNTIME_PARTS.map((part) => {
    const title = [`${part.name} ${versionOf(part) ?? ""}`.trim(), part.remark ?? []].flat();
    return `${title.join(": ")}\n    ${part.licence}\n    ${part.project}\n`;
  });
  return `Bun ${Bun.version}, revision ${Bun.revision}, ${BUN_PROJECT}

Bun is under the MIT licence; its text is above. The following libraries are linked into Bun for Linux,
or their code was copied into it. Each has its licence as an SPDX expression, and the address of the
project that has the licence text and the sources. Bun's own list is its LICENSE.md; its Cargo.lock names
the Rust packages.

JavaScriptCore and TinyCC are under the GNU Lesser General Public License. To use modified versions of
them, rebuild Bun as its LICENSE.md describes, and then rebuild sixscope with that Bun: "bun run build" in
the sources of sixscope puts the Bun that runs it into the executable.

${parts.join("\n")}`;
}
