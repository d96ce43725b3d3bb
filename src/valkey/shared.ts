import type { Config } from "../config/settings.ts";
import type { ValkeyAddress } from "../config/valkey-address.ts";
import type { Log } from "../util/log.ts";
import type { RunScript } from "./connection.ts";
import { createSharedKeys } from "./keys.ts";
import { createSharedLimiter } from "./limiter.ts";
import { createValkey } from "./valkey.ts";

/** How long reading the keys may take, which can be many, in milliseconds. */
const KEYS_MS = 2_000;

/** See `openShared`. */
export type Shared = Awaited<ReturnType<typeof openShared>>;

/** Opens all that instances share. It is loaded only if Valkey is configured, and connects only in `start`. */
export async function openShared(
  address: ValkeyAddress,
  { keysFile, rate }: Pick<Config, "keysFile" | "rate">,
  log: Log,
) {
  const valkey = createValkey(address, log);
  // Beside the file that an instance alone would use, which is not touched.
  const copy = `${keysFile}.copy`;
  const run: RunScript = (wanted, keys, args) => valkey.run(wanted, keys, args, KEYS_MS);
  const keys = await createSharedKeys(run, valkey.names.keys, copy, log);
  const rateLimiter = createSharedLimiter(rate, valkey);
  const start = () => valkey.start(keys.follow);
  return { valkey, keys, rateLimiter, start, stop: valkey.close };
}
