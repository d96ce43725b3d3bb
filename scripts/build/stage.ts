import { chmod, copyFile, lutimes, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { run } from "../../test/lab/run.ts";
import { compile, type Target } from "./compile.ts";
import { thirdPartyNotices } from "./notices.ts";
import { ROOT, type Source } from "./source.ts";

export const EXECUTABLE_MODE = 0o755;
export const FILE_MODE = 0o644;

/** A file of a package: its path in the package, the path or the bytes of its source, and its mode. */
export type PackagedFile = readonly [path: string, from: string | Uint8Array, mode: number];

/** The paths of the files that were built for a package. */
export interface Contents {
  /** The compiled executable, packed unchanged because stripping destroys it. */
  readonly executable: string;
  /** The licences of the parts of the executable. */
  readonly notices: string;
}

/** Builds what goes into the package of one target, in a folder. */
export async function makeContents(
  target: Target,
  source: Source,
  folder: string,
): Promise<Contents> {
  const contents = {
    executable: join(folder, "sixscope"),
    notices: join(folder, "THIRD-PARTY-NOTICES"),
  };
  const packages = await compile(target, source, contents.executable);
  await Bun.write(contents.notices, await thirdPartyNotices(packages));
  return contents;
}

/** The full path of a file of the project. */
export const inProject = (path: string) => join(ROOT, path);

/** Runs `make` with an empty folder beside the output, and removes the folder. */
export async function staged(
  outfile: string,
  make: (stage: string) => Promise<void>,
): Promise<void> {
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

/** Copies or writes files into a folder, and creates the folders between. */
export async function place(folder: string, files: readonly PackagedFile[]): Promise<void> {
  for (const [path, from, mode] of files) {
    const to = join(folder, path);
    await mkdir(dirname(to), { recursive: true, mode: EXECUTABLE_MODE });
    await (typeof from === "string" ? copyFile(from, to) : Bun.write(to, from));
    await chmod(to, mode);
  }
}

/** Sets the time of every file, link and folder to that of the sources. */
export async function stampTimes(folder: string, { epochSeconds }: Source): Promise<void> {
  const paths = (await readdir(folder, { recursive: true })).map((path) => join(folder, path));
  for (const path of [...paths, folder]) await lutimes(path, epochSeconds, epochSeconds);
}

/**
 * Writes files into a tar archive; the same files give the same bytes.
 *
 * @param options `--create` or `--append`, and others of tar(1)
 * @param owner the user and group of everything that is written
 */
export async function tar(
  options: readonly string[],
  stage: string,
  outfile: string,
  paths: readonly string[],
  owner = 0,
): Promise<void> {
  await run([
    ...["tar", ...options, `--file=${outfile}`, `--directory=${stage}`, "--format=ustar"],
    ...["--sort=name", "--numeric-owner", `--owner=${owner}`, `--group=${owner}`, ...paths],
  ]);
}
