import type { Config } from "../config/settings.ts";
import type { ValkeyAddress } from "../config/valkey-address.ts";
import type { Log } from "../util/log.ts";
import type { RunScript } from "./connection.ts";
import { createSharedKeys } from "./keys.ts";
import { createSharedLimiter } from "./limiter.ts";
import { createValkey } from "./valkey.ts";

/** The time to read the keys, which can be many, in milliseconds. */
const KEYS_MS = 2_000;

/** See `openShared`. */
export type Shared = Awaited<ReturnType<typeof openShared>>;

/** Opens the limits and keys that instances share. Loaded only if Valkey is configured; connects only in `start`. */
export async function openShared(
  address: ValkeyAddress,
  { keysFile, rate }: Pick<Config, "keysFile" | "rate">,
  log: Log,
) {
  const valkey = createValkey(address, log);
  // The file that a single instance would use is not touched.
  const copy = `${keysFile}.copy`;
  const run: RunScript = (wanted, keys, args) => valkey.run(wanted, keys, args, KEYS_MS);
  const keys = await createSharedKeys(run, valkey.names.keys, copy, log);
  const rateLimiter = createSharedLimiter(rate, valkey);
  const start = () => valkey.start(keys.follow);
  return { valkey, keys, rateLimiter, start, stop: valkey.close };
}
