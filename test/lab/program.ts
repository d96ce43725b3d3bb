/** The programs that tests start, compiled as they are shipped: a process of one takes a sixth of the processor time of its sources. */
import type { BunPlugin } from "bun";
import { version } from "../../package.json";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { patient } from "./patient.ts";
import { shared } from "./shared.ts";

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
