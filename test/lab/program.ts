/** The programs that tests start, compiled as they are shipped: a process of one starts in a sixth of the time that its sources take. */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BunPlugin } from "bun";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { readSource } from "../../scripts/build/source.ts";
import { patient } from "./patient.ts";

/** The environment variable with the folder of the programs, which `scripts/test.ts` makes for all test files. */
const FOLDER_VARIABLE = "TEST_PROGRAMS";

const PROGRAMS: Readonly<Record<string, readonly BunPlugin[]>> = {
  sixscope: [],
  patient: [patient],
};

/** The command that is sixscope. */
export const sixscopeProgram = () => program("sixscope");

/** The command that is sixscope, but waits for Valkey on a busy machine too. */
export const patientProgram = () => program("patient");

const made = new Map<string, Promise<readonly string[]>>();

function program(name: string): Promise<readonly string[]> {
  return made.getOrInsertComputed(name, make);
}

async function make(name: string): Promise<readonly string[]> {
  const file = join(folder(), name);
  const entry = "src/main.ts";
  if (!existsSync(file))
    await compile(hostTarget(), await readSource(), file, entry, PROGRAMS[name]);
  return [file];
}

function folder(): string {
  process.env[FOLDER_VARIABLE] ??= ownFolder();
  return process.env[FOLDER_VARIABLE];
}

/** A folder for this process and its children, in which every user may run programs. */
function ownFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "sixscope-programs-"));
  chmodSync(path, 0o755);
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}
