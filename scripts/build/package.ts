import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { Glob } from "bun";
import { describeCommands } from "../../src/cli/command-line.ts";
import { SCRIPTS } from "../../src/cli/completion.ts";
import { run } from "../../test/lab/run.ts";
import type { Target } from "./compile.ts";
import { manualPage } from "./manual.ts";
import { ROOT, type Source } from "./source.ts";
import {
  type Contents,
  EXECUTABLE_MODE,
  FILE_MODE,
  inProject,
  type PackagedFile,
  place,
  staged,
  stampTimes,
  tar,
} from "./stage.ts";

/** Debian's name for the processor of each target that has a package. */
export const DEBIAN_ARCHITECTURES: Readonly<Partial<Record<Target, string>>> = {
  "linux-x64": "amd64",
  "linux-arm64": "arm64",
};

/** Of package.json. */
interface Project {
  readonly author: string;
  /** That of whoever releases; without it, the package has none. */
  readonly homepage?: string;
}

const PRIVATE_FOLDER_MODE = 0o700;

/** README, and all pages and pictures that it links to, as they are in the project. */
const documentation = (folder: string): readonly PackagedFile[] =>
  ["*.md", "docs/**"]
    .flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)])
    .map((path) => [join(folder, path), inProject(path), FILE_MODE]);

/** Where Debian's shells look for the completion of a command. */
const DEBIAN_COMPLETIONS: Readonly<Record<keyof typeof SCRIPTS, string>> = {
  bash: "usr/share/bash-completion/completions/sixscope",
  zsh: "usr/share/zsh/vendor-completions/_sixscope",
  fish: "usr/share/fish/vendor_completions.d/sixscope.fish",
};

const ARCHIVE_COMPLETIONS: Readonly<Record<keyof typeof SCRIPTS, string>> = {
  bash: "completions/sixscope",
  zsh: "completions/_sixscope",
  fish: "completions/sixscope.fish",
};

const completions = (
  paths: Readonly<Record<keyof typeof SCRIPTS, string>>,
): readonly PackagedFile[] =>
  (["bash", "zsh", "fish"] as const).map((shell) => [
    paths[shell],
    Buffer.from(`${SCRIPTS[shell].trimEnd()}\n`),
    FILE_MODE,
  ]);

const manual = (source: Source) => Buffer.from(manualPage(describeCommands({}), source));

/** Makes a Debian package. */
export async function makeDebianPackage(
  { executable, notices }: Contents,
  architecture: string,
  source: Source,
  outfile: string,
): Promise<void> {
  const { author, homepage }: Project = await Bun.file(inProject("package.json")).json();
  await staged(outfile, async (stage) => {
    await place(stage, [
      ["usr/bin/sixscope", executable, EXECUTABLE_MODE],
      ["usr/lib/systemd/system/sixscope.service", inProject("systemd/sixscope.service"), FILE_MODE],
      ["usr/lib/sysusers.d/sixscope.conf", inProject("systemd/sixscope.sysusers"), FILE_MODE],
      ["etc/sixscope/sixscope.env", inProject("systemd/sixscope.env"), FILE_MODE],
      ...documentation("usr/share/doc/sixscope"),
      ["usr/share/man/man1/sixscope.1.gz", Bun.gzipSync(manual(source), { level: 9 }), FILE_MODE],
      ...completions(DEBIAN_COMPLETIONS),
      ["usr/share/doc/sixscope/copyright", inProject("LICENSE"), FILE_MODE],
      ["usr/share/doc/sixscope/THIRD-PARTY-NOTICES", notices, FILE_MODE],
      [
        "usr/share/lintian/overrides/sixscope",
        inProject("scripts/build/debian/lintian-overrides"),
        FILE_MODE,
      ],
      ...(["postinst", "prerm", "postrm"] as const).map(
        (script): PackagedFile => [
          `DEBIAN/${script}`,
          inProject(`scripts/build/debian/${script}`),
          EXECUTABLE_MODE,
        ],
      ),
    ]);
    // README links to it; Debian has it under the other name.
    await symlink("copyright", join(stage, "usr/share/doc/sixscope/LICENSE"));
    await mkdir(join(stage, "etc/sixscope/tls"), { mode: PRIVATE_FOLDER_MODE });
    await Bun.write(join(stage, "DEBIAN/conffiles"), "/etc/sixscope/sixscope.env\n");
    const kibibytes = Math.ceil(Bun.file(executable).size / 1024);
    await Bun.write(
      join(stage, "DEBIAN/control"),
      [
        "Package: sixscope",
        `Version: ${source.version}`,
        `Architecture: ${architecture}`,
        `Maintainer: ${author}`,
        ...(homepage === undefined ? [] : [`Homepage: ${homepage}`]),
        `Installed-Size: ${kibibytes}`,
        // LoadCredential= accepts a folder since 250.
        "Depends: libc6 (>= 2.17), systemd (>= 250)",
        "Section: net",
        "Priority: optional",
        "Description: IPv6 diagnostics as a JSON HTTP API",
        " My address, address validation, DNS, ping, traceroute, loss by hop and path",
        " MTU, from one service that you host yourself.",
        "",
      ].join("\n"),
    );
    await stampTimes(stage, source);
    // zstd takes seconds and xz minutes, for 15 % more bytes.
    await run([
      // The index of the package contains a time too.
      ...["env", `SOURCE_DATE_EPOCH=${source.epochSeconds}`],
      ...["dpkg-deb", "--root-owner-group", "-Zzstd", "-z9", "--build", stage, outfile],
    ]);
  });
}

/** Makes an archive with everything that a manual installation needs. */
export async function makeArchive(
  { executable, notices }: Contents,
  target: Target,
  source: Source,
  outfile: string,
): Promise<void> {
  await staged(outfile, async (stage) => {
    const folder = `sixscope-${source.version}-${target}`;
    await place(join(stage, folder), [
      ["sixscope", executable, EXECUTABLE_MODE],
      ["sixscope.service", inProject("systemd/sixscope.service"), FILE_MODE],
      ["sixscope.sysusers", inProject("systemd/sixscope.sysusers"), FILE_MODE],
      ["sixscope.env", inProject("systemd/sixscope.env"), FILE_MODE],
      ["sixscope.1", manual(source), FILE_MODE],
      ...completions(ARCHIVE_COMPLETIONS),
      ...documentation("."),
      ["LICENSE", inProject("LICENSE"), FILE_MODE],
      ["THIRD-PARTY-NOTICES", notices, FILE_MODE],
    ]);
    await stampTimes(stage, source);
    // xz splits its output by the number of threads, which must not depend on the machine.
    await tar(["--create", "--use-compress-program=xz --threads=2"], stage, outfile, [folder]);
  });
}
