import { existsSync, realpathSync } from "node:fs";
import { z } from "zod";
import { namesBelow, publicUrl, type ValkeyAddress } from "../../config/valkey-address.ts";
import { isActive, KeyFileError, type KeyRecord, readKeyFile } from "../../keys/key-file.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { errorCode, reasonOf } from "../../util/errors.ts";
import { createConnection, type RunScript, script } from "../../valkey/connection.ts";
import { readSharedKeys } from "../../valkey/keys.ts";
import { GIVE_UP_MS } from "../../valkey/valkey.ts";
import type { Command } from "../command.ts";
import { invocation } from "../terminal.ts";
import { type Finding, type Scene, type Setting, trying } from "./finding.ts";

const ADD_KEY: Command = [...invocation().split(" "), "keys", "add", "NAME"];

/** Checks the keys where the service has them. */
export async function checkKeys({ config, setting }: Scene): Promise<readonly Finding[]> {
  const { valkey, keysFile } = config;
  if (valkey !== null) return await checkValkey(valkey, setting);
  return [checkKeysFile(keysFile)];
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

/** How long the check waits for an answer, in milliseconds. */
const ANSWER_MS = 2_000;

/** Fails if nothing can be written; returns how many instances are there. */
const CHECK = script(
  `redis.call('SET', KEYS[1], '', 'PX', 1)
return redis.call('ZCARD', KEYS[2])`,
  () => z.int().min(0),
);

/** Checks that Valkey can be used, answers fast enough, and has keys. */
async function checkValkey({ url, prefix }: ValkeyAddress, setting: Setting) {
  const names = namesBelow(prefix);
  const place = publicUrl(url);
  const { ok, problem, warning } = trying(`write to Valkey at ${place}`);
  const connection = createConnection(url);
  const ask = () => connection.run(CHECK, [`${prefix}doctor`, names.instances], [], ANSWER_MS);
  try {
    await ask();
    const startMs = performance.now();
    const instances = await ask();
    const ms = performance.now() - startMs;
    const answer = `it answers in ${ms.toFixed(1)} ms; instances now: ${instances}`;
    const slow = `give it a faster way or machine: an instance waits ${GIVE_UP_MS} ms, and then decides alone`;
    const found = ms < GIVE_UP_MS ? ok(answer) : warning(answer, slow);
    const run: RunScript = (wanted, keys, args) => connection.run(wanted, keys, args, ANSWER_MS);
    const { keys } = await readSharedKeys(run, names.keys);
    return [found, activeKeys(`read the keys in ${place}`, keys)];
  } catch (error) {
    const advice = `check Valkey itself and ${setting("SIXSCOPE_VALKEY_URL")}; until then each instance allows its part of what is left, and keys stay as last read for a day`;
    return [problem(reasonOf(error), advice)];
  } finally {
    connection.close();
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
