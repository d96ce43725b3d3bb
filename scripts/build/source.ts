import { join } from "node:path";
import { $ } from "bun";

/** The project's folder. */
export const ROOT = join(import.meta.dir, "../..");

/** `git archive` writes the commit, its time and its tags into this file, for those who build without git. */
const ARCHIVED = join(import.meta.dir, "archived-commit");

/** The identity of the sources of a build. */
export interface Source {
  /**
   * The version in package.json if the commit has its tag, such as `v0.1.0`; otherwise followed by the time of
   * the commit in UTC and the commit, `0.1.0+git20261122.084415.29ba8a3`, so that later builds are upgrades.
   */
  readonly version: string;
  /** The commit, followed by `-dirty` if files differ from it; null if neither git nor an archive of it says. */
  readonly commit: string | null;
  /** When the commit was made, in Unix seconds; the time of every file in the packages. */
  readonly epochSeconds: number;
}

/** Reads version, commit and time; SOURCE_DATE_EPOCH overrides the time of the commit for the files. */
export async function readSource(): Promise<Source> {
  const { version } = await Bun.file(join(ROOT, "package.json")).json();
  const git = async (...words: string[]) => {
    const { exitCode, stdout } = await $`git ${words}`.cwd(ROOT).nothrow().quiet();
    return exitCode === 0 ? stdout.toString().trim() : "";
  };
  // Not those of a project around an unpacked archive.
  const isOwn = (await git("rev-parse", "--show-prefix", "--is-inside-work-tree")) === "true";
  const text = isOwn
    ? await git("log", "-1", "--format=%H %ct %D")
    : (await Bun.file(ARCHIVED).text()).trim();
  const [, hash, time = "0", refs = ""] = /^([0-9a-f]{40}) (\d+) ?(.*)$/.exec(text) ?? [];
  const isDirty = isOwn && (await git("status", "--porcelain", "--untracked-files=no")) !== "";
  const epochSeconds = Number(process.env["SOURCE_DATE_EPOCH"] ?? time);
  if (hash === undefined) return { version, commit: null, epochSeconds };
  const isRelease = !isDirty && refs.split(", ").includes(`tag: v${version}`);
  return {
    version: isRelease ? version : `${version}+git${stampOf(Number(time))}.${hash.slice(0, 7)}`,
    commit: `${hash.slice(0, 12)}${isDirty ? "-dirty" : ""}`,
    epochSeconds,
  };
}

/** A time in UTC, in an order that versions have too: `20261122.084415`. */
function stampOf(seconds: number): string {
  const [date = "", time = ""] = new Date(seconds * 1000).toISOString().split("T");
  return `${date.replaceAll("-", "")}.${time.slice(0, 8).replaceAll(":", "")}`;
}
