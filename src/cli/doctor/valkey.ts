import { isActive } from "../../keys/key-file.ts";
import { readSharedKeys } from "../../keys/shared-keys.ts";
import { reasonOf } from "../../util/errors.ts";
import { namesBelow, publicUrl, type ValkeyAddress } from "../../valkey/address.ts";
import { Connection, script } from "../../valkey/connection.ts";
import { GIVE_UP_MS } from "../../valkey/valkey.ts";
import { invocation } from "../terminal.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** How long the check waits for an answer, in milliseconds. */
const ANSWER_MS = 2_000;

/** Whether it can be written to, and how many instances are there. */
const CHECK = script(`
redis.call('SET', KEYS[1], '', 'PX', 1)
return redis.call('ZCARD', KEYS[2])
`);

/** Whether Valkey can be used, answers fast enough, and has keys. */
export async function checkValkey(
  { url, prefix }: ValkeyAddress,
  nowMs: number,
): Promise<readonly Finding[]> {
  const names = namesBelow(prefix);
  const place = publicUrl(url);
  const tried = `write to Valkey at ${place}`;
  const triedKeys = `read the keys in ${place}`;
  const connection = new Connection(url);
  const ask = () => connection.run(CHECK, [`${prefix}doctor`, names.instances], [], ANSWER_MS);
  try {
    await ask();
    const startMs = performance.now();
    const instances = await ask();
    const ms = performance.now() - startMs;
    const answer = `it answers in ${ms.toFixed(1)} ms; instances now: ${instances}`;
    const slow = `give it a faster way or machine: an instance waits ${GIVE_UP_MS} ms, and then decides alone`;
    const found = ms < GIVE_UP_MS ? ok(tried, answer) : warning(tried, answer, slow);
    return [found, await checkKeys()];
  } catch (error) {
    const advice =
      "check SIXSCOPE_VALKEY_URL, its password, and Valkey itself; until then each instance allows its part of the limits, and keys stay as last read for a day";
    return [problem(tried, reasonOf(error), advice)];
  } finally {
    connection.close();
  }

  async function checkKeys(): Promise<Finding> {
    const { keys } = await readSharedKeys(
      (...call) => connection.run(...call, ANSWER_MS),
      names.keys,
    );
    const active = keys.filter((key) => isActive(key, nowMs)).length;
    const add = `create one: ${invocation()} keys add NAME, or copy those of a file: ${invocation()} keys import FILE`;
    return active === 0
      ? warning(triedKeys, "no key is active", add)
      : ok(triedKeys, `active keys: ${active}`);
  }
}
