import { existsSync, realpathSync } from "node:fs";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "../../keys/key-file.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { errorCode } from "../../util/errors.ts";
import type { Command } from "../command.ts";
import { type KeyStore, valkeyStore } from "../key-store.ts";
import { invocation } from "../terminal.ts";
import { type Finding, type Scene, type Setting, trying } from "./finding.ts";

const ADD_KEY: Command = [...invocation().split(" "), "keys", "add", "NAME"];

/** Checks the keys where the service has them. */
export async function checkKeys({ config, role, setting }: Scene): Promise<readonly Finding[]> {
  const { valkey, keysFile } = config;
  if (role === "agent") return [];
  if (valkey === null) return [checkKeysFile(keysFile)];
  return [await checkValkey(valkeyStore(valkey, keysFile), setting)];
}

/** Checks that the keys file can be read and has an active key. */
export function checkKeysFile(path: string): Finding {
  const tried = `read the keys file ${path}`;
  const { problem, warning } = trying(tried);
  try {
    if (!existsSync(path)) {
      return warning("it does not exist", "restore it from a backup, or create a key", ADD_KEY);
    }
    if (everyUserMay("write", realpathSync(path))) {
      const advice = `see which keys are in it: ${invocation()} keys list`;
      const run = ["chmod", "o-w", path];
      return problem("every user of this machine can add keys to it", advice, run);
    }
    return activeKeys(tried, readKeyFile(path));
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    const [outcome = ""] = error.message.split("; ");
    if (errorCode(error.cause) === "EACCES") {
      return problem(outcome, "give it to the service", ["chown", `${ownName()}:`, path]);
    }
    return problem(
      error.message,
      "restore it from a backup; after a restart, no key is valid without it",
    );
  }
}

/** Checks that Valkey answers, and has keys. The log says why it cannot be written to. */
async function checkValkey(store: KeyStore, setting: Setting): Promise<Finding> {
  const tried = `read the keys in ${store.place}`;
  try {
    return activeKeys(tried, await store.read());
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    const [outcome = ""] = error.message.split("; ");
    const advice = `check Valkey itself and ${setting("SIXSCOPE_VALKEY_URL")}; until then each instance allows its part of what is left, and keys stay as last read for a day`;
    return trying(tried).problem(outcome, advice);
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
