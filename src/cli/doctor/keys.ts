import { existsSync } from "node:fs";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "../../keys/key-file.ts";
import { ownName } from "../../platform/users.ts";
import type { Command } from "../../util/command.ts";
import { errorCode } from "../../util/errors.ts";
import { valkeyStore } from "../key-store.ts";
import { invocation } from "../terminal.ts";
import { type Finding, type Scene, trying } from "./finding.ts";

const ADD_KEY: Command = [...invocation().split(" "), "keys", "add", "NAME"];

/** Checks that the service can read its keys, and has an active one. */
export async function checkKeys(scene: Scene): Promise<readonly Finding[]> {
  const { role, setting, environment, files } = scene;
  const { valkey, keysFile } = scene.config;
  if (role === "agent") return [];
  if (valkey === null) return [checkKeysFile(keysFile)];
  const { place, read } = valkeyStore(valkey, keysFile);
  const tried = `read the keys in ${place}`;
  try {
    return [activeKeys(tried, await read())];
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    const [outcome = ""] = error.message.split("; ");
    const sources = [environment, ...files.map(({ variables }) => variables)];
    const isInFile = sources.some((variables) => variables["SIXSCOPE_VALKEY_URL_FILE"]);
    const where = setting(`SIXSCOPE_VALKEY_URL${isInFile ? "_FILE" : ""}`);
    const advice = `check Valkey itself and ${where}; until then each instance allows its part of what is left, and keys stay as last read for a day`;
    return [trying(tried).problem(outcome, advice)];
  }
}

/** Checks the keys in a file. */
export function checkKeysFile(path: string): Finding {
  const tried = `read the keys file ${path}`;
  const { problem, warning } = trying(tried);
  try {
    return existsSync(path)
      ? activeKeys(tried, readKeyFile(path))
      : warning("it does not exist", "restore it from a backup, or create a key", ADD_KEY);
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    if (errorCode(error.cause) === "EACCES") {
      const [outcome = ""] = error.message.split("; ");
      return problem(outcome, "give it to the service", ["chown", `${ownName()}:`, path]);
    }
    const advice = "restore it from a backup; after a restart, no key is valid without it";
    return problem(error.message, advice);
  }
}

/** Counts the keys that are active. */
function activeKeys(tried: string, keys: readonly KeyRecord[]): Finding {
  const { ok, warning } = trying(tried);
  const active = keys.filter((key) => isActive(key, Date.now())).length;
  return active === 0
    ? warning("no key is active", "create one", ADD_KEY)
    : ok(`active keys: ${active}`);
}
