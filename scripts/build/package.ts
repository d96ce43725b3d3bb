import { chmod, copyFile, mkdir, mkdtemp, readdir, rm, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { run } from "../../test/lab/run.ts";
import type { Target } from "./compile.ts";
import { ROOT, type Source } from "./source.ts";

/** Debian's name for the processor of each target that has a package. */
export const DEBIAN_ARCHITECTURES: Readonly<Partial<Record<Target, string>>> = {
  "linux-x64": "amd64",
  "linux-arm64": "arm64",
};

const EXECUTABLE_MODE = 0o755;
const FILE_MODE = 0o644;
const PRIVATE_FOLDER_MODE = 0o700;

/** A file of a package: its path in the package, its source, and its mode. */
type PackagedFile = readonly [path: string, from: string, mode: number];

/** The paths of the files that were built for a package. */
export interface Contents {
  /** The compiled executable, packed unchanged because stripping destroys it. */
  readonly executable: string;
  /** The licences of the parts of the executable. */
  readonly notices: string;
}

const inProject = (path: string) => join(ROOT, path);

/** README and all pages that it links to, as they are in the project. */
const documentation = (folder: string): readonly PackagedFile[] =>
  ["*.md", "docs/*.md"]
    .flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)])
    .map((path) => [join(folder, path), inProject(path), FILE_MODE]);

/** Makes a Debian package. */
export async function makeDebianPackage(
  { executable, notices }: Contents,
  architecture: string,
  source: Source,
  outfile: string,
): Promise<void> {
  await staged(outfile, async (stage) => {
    await place(stage, [
      ["usr/bin/sixscope", executable, EXECUTABLE_MODE],
      ["usr/lib/systemd/system/sixscope.service", inProject("systemd/sixscope.service"), FILE_MODE],
      ["usr/lib/sysusers.d/sixscope.conf", inProject("systemd/sixscope.sysusers"), FILE_MODE],
      ["etc/sixscope/sixscope.env", inProject("systemd/sixscope.env"), FILE_MODE],
      ...documentation("usr/share/doc/sixscope"),
      ["usr/share/doc/sixscope/copyright", inProject("LICENSE"), FILE_MODE],
      ["usr/share/doc/sixscope/THIRD-PARTY-NOTICES", notices, FILE_MODE],
      ...(["postinst", "prerm", "postrm"] as const).map(
        (script): PackagedFile => [
          `DEBIAN/${script}`,
          inProject(`scripts/build/debian/${script}`),
          EXECUTABLE_MODE,
        ],
      ),
    ]);
    await mkdir(join(stage, "etc/sixscope/tls"), { mode: PRIVATE_FOLDER_MODE });
    await Bun.write(join(stage, "DEBIAN/conffiles"), "/etc/sixscope/sixscope.env\n");
    const kibibytes = Math.ceil(Bun.file(executable).size / 1024);
    await Bun.write(
      join(stage, "DEBIAN/control"),
      [
        "Package: sixscope",
        `Version: ${source.version}`,
        `Architecture: ${architecture}`,
        "Maintainer: The sixscope authors <sixscope@localhost>",
        `Installed-Size: ${kibibytes}`,
        // LoadCredential= accepts a folder since 250.
        "Depends: libc6 (>= 2.17), init-system-helpers, procps, systemd (>= 250)",
        "Section: net",
        "Priority: optional",
        "Description: IPv6 diagnostics as a JSON HTTP API",
        " My address, address validation, DNS, ping and traceroute, from one service",
        " that you host yourself.",
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
      ...documentation("."),
      ["LICENSE", inProject("LICENSE"), FILE_MODE],
      ["THIRD-PARTY-NOTICES", notices, FILE_MODE],
    ]);
    await stampTimes(stage, source);
    await run([
      "tar",
      "--create",
      ...["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=ustar"],
      // xz splits its output by the number of threads, which must not depend on the machine.
      "--use-compress-program=xz --threads=2",
      `--file=${outfile}`,
      `--directory=${stage}`,
      folder,
    ]);
  });
}

/** Runs `make` with an empty folder beside the output, and removes the folder. */
async function staged(outfile: string, make: (stage: string) => Promise<void>): Promise<void> {
  const stage = await mkdtemp(join(dirname(outfile), ".stage-"));
  // The modes in the package must not depend on who builds it.
  const umask = process.umask(0o022);
  try {
    await chmod(stage, EXECUTABLE_MODE);
    await make(stage);
  } finally {
    process.umask(umask);
    await rm(stage, { recursive: true });
  }
}

async function place(folder: string, files: readonly PackagedFile[]): Promise<void> {
  for (const [path, from, mode] of files) {
    const to = join(folder, path);
    await mkdir(dirname(to), { recursive: true, mode: EXECUTABLE_MODE });
    await copyFile(from, to);
    await chmod(to, mode);
  }
}

/** Sets the time of every file and folder to that of the sources. */
async function stampTimes(folder: string, { epochSeconds }: Source): Promise<void> {
  const paths = (await readdir(folder, { recursive: true })).map((path) => join(folder, path));
  for (const path of [...paths, folder]) await utimes(path, epochSeconds, epochSeconds);
}
