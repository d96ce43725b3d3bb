/**
 * What test files share: the programs that they start, compiled as they are shipped, because a process of one takes a
 * sixth of the processor time of its sources.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BunPlugin } from "bun";
import { version } from "../../package.json";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { patient } from "./patient.ts";

/** The environment variable with the folder of what is shared. `scripts/test.ts` makes it; without it, each test file does. */
const FOLDER_VARIABLE = "TEST_SHARED";

/** The version of the sources, whatever was committed. */
const SOURCE = { version, commit: null, epochSeconds: 0 };

/** The command that is sixscope. */
export const sixscopeProgram = () => program("sixscope");

/** The command that is sixscope, but waits for Valkey on a busy machine too. */
export const patientProgram = () => program("patient", [patient]);

async function program(name: string, plugins: readonly BunPlugin[] = []) {
  const make = (file: string) => compile(hostTarget(), SOURCE, file, "src/main.ts", plugins);
  return [await shared(name, make)] as const;
}

/** The file with the OpenAPI document. */
export const interfaceFile = () =>
  shared("openapi.json", async (file) => {
    const { interfaceText } = await import("../../src/server/endpoints.ts");
    await Bun.write(file, interfaceText());
  });

const ready = new Map<string, Promise<string>>();

/** The path of a file that `make` writes if no test file has before. */
export function shared(name: string, make: (file: string) => Promise<unknown>): Promise<string> {
  return ready.getOrInsertComputed(name, async () => {
    const file = join(folder(), name);
    if (!existsSync(file)) await make(file);
    return file;
  });
}

function folder(): string {
  process.env[FOLDER_VARIABLE] ??= ownFolder();
  return process.env[FOLDER_VARIABLE];
}

/** A folder for this process and its children, in which every user may run programs. */
function ownFolder(): string {
  const path = mkdtempSync(join(tmpdir(), "sixscope-shared-"));
  chmodSync(path, 0o755);
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}
