import { join } from "node:path";
import { $ } from "bun";

/** The project's folder. */
export const ROOT = join(import.meta.dir, "../..");

/** The identity of the sources of a build. */
export interface Source {
  readonly version: string;
  /** The commit, followed by `-dirty` if files differ from it; null outside a git repository. */
  readonly commit: string | null;
  /** When the commit was made, in Unix seconds; the time of every file in the packages. */
  readonly epochSeconds: number;
}

/** Reads version, commit and time; SOURCE_DATE_EPOCH overrides the time of the commit. */
export async function readSource(): Promise<Source> {
  const git = $.cwd(ROOT).nothrow();
  const { version } = await Bun.file(join(ROOT, "package.json")).json();
  const head = await git`git rev-parse --short=12 HEAD`.quiet();
  const changes = await git`git status --porcelain --untracked-files=no`.quiet();
  const time = await git`git log -1 --format=%ct`.quiet();
  return {
    version,
    commit:
      head.exitCode === 0 ? `${head.text().trim()}${changes.text() === "" ? "" : "-dirty"}` : null,
    epochSeconds: Number(process.env["SOURCE_DATE_EPOCH"] ?? (time.text().trim() || 0)),
  };
}
