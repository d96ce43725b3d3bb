import { z } from "zod";
import { namesBelow, publicUrl, type ValkeyAddress } from "../../config/valkey-address.ts";
import { reasonOf } from "../../util/errors.ts";
import { createConnection, type RunScript, script } from "../../valkey/connection.ts";
import { readSharedKeys } from "../../valkey/keys.ts";
import { GIVE_UP_MS } from "../../valkey/valkey.ts";
import { invocation } from "../terminal.ts";
import { trying } from "./finding.ts";
import type { SetVariable } from "./repair.ts";
import { activeKeys } from "./service.ts";

/** How long the check waits for an answer, in milliseconds. */
const ANSWER_MS = 2_000;

/** Fails if nothing can be written; returns how many instances are there. */
const CHECK = script(
  `redis.call('SET', KEYS[1], '', 'PX', 1)
return redis.call('ZCARD', KEYS[2])`,
  () => z.int().min(0),
);

/** Checks that Valkey can be used, answers fast enough, and has keys. */
export async function checkValkey({ url, prefix }: ValkeyAddress, nowMs: number, set: SetVariable) {
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
    const run: RunScript = (...call) => connection.run(...call, ANSWER_MS);
    const { keys } = await readSharedKeys(run, names.keys);
    const add = `${invocation()} keys add NAME`;
    return [found, activeKeys(trying(`read the keys in ${place}`), keys, nowMs, add)];
  } catch (error) {
    const advice =
      "check SIXSCOPE_VALKEY_URL, its password, and Valkey itself; until then each instance allows its part of what is left, and keys stay as last read for a day";
    const run = set("SIXSCOPE_VALKEY_URL", "URL");
    return [problem(reasonOf(error), advice, run)];
  } finally {
    connection.close();
  }
}
