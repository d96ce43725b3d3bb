import { writeFileSync } from "node:fs";
import { newKey } from "../locations/link.ts";
import { orThrow } from "../util/errors.ts";
import { runServe } from "./serve.ts";
import { print } from "./terminal.ts";

/**
 * `sixscope agent`: measures for instances elsewhere, or makes its key.
 *
 * @param file for a new NKey, instead of running
 * @throws ConfigError; Error if a listener cannot be opened, or the key cannot be written
 */
export async function runAgent(file: string | undefined, environment: NodeJS.ProcessEnv) {
  if (file === undefined) return await runServe(environment, "agent");
  const { seed, publicKey } = await newKey();
  orThrow(
    () => writeFileSync(file, `${seed}\n`, { mode: 0o600, flag: "wx" }),
    (reason, cause) => new Error(`cannot write the new key to ${file}: ${reason}`, { cause }),
  );
  await print(publicKey);
}
