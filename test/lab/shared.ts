/** What test files share. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The environment variable with the folder, which `scripts/test.ts` makes for all test files; without it, each makes its own. */
const FOLDER_VARIABLE = "TEST_SHARED";

const ready = new Map<string, Promise<string>>();
let ownFolder: string | undefined;

/** The path of a file that `make` writes if no test file has before. */
export function shared(name: string, make: (file: string) => Promise<unknown>): Promise<string> {
  return ready.getOrInsertComputed(name, async () => {
    const file = join(folder(), name);
    if (!existsSync(file)) await make(file);
    return file;
  });
}

/** Removes the folder if this process has made it, as its end does but that of `bun test`. */
export function removeShared(): void {
  if (ownFolder !== undefined) rmSync(ownFolder, { recursive: true, force: true });
}

function folder(): string {
  process.env[FOLDER_VARIABLE] ??= makeFolder();
  return process.env[FOLDER_VARIABLE];
}

/** A folder for this process and its children, in which every user may run programs. */
function makeFolder(): string {
  ownFolder = mkdtempSync(join(tmpdir(), "sixscope-shared-"));
  chmodSync(ownFolder, 0o755);
  process.on("exit", removeShared);
  return ownFolder;
}
