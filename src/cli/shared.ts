import type { Config } from "../config/settings.ts";
import { Keyring } from "../keys/keyring.ts";
import { type RunScript, SharedKeys } from "../keys/shared-keys.ts";
import { SharedRateLimiter } from "../limits/shared-limiter.ts";
import { TargetLeases } from "../limits/target-leases.ts";
import { RateLimiter } from "../limits/token-bucket.ts";
import type { Log } from "../util/log.ts";
import type { ValkeyAddress } from "../valkey/address.ts";
import { Valkey } from "../valkey/valkey.ts";

/** How long reading the keys may take, which can be many, in milliseconds. */
const KEYS_MS = 2_000;

/** Makes what instances share. It is loaded only if Valkey is configured, and connects only in `start`. */
export function openShared(
  address: ValkeyAddress,
  { keysFile, rate }: Pick<Config, "keysFile" | "rate">,
  log: Log,
) {
  const valkey = new Valkey(address, log);
  // Beside the file that an instance alone would use, which is not touched.
  const copy = `${keysFile}.copy`;
  const keyring = new Keyring(copy, log);
  const run: RunScript = (...call) => valkey.run(...call, KEYS_MS);
  const keys = new SharedKeys(run, valkey.names.keys, keyring, copy, log);
  return {
    valkey,
    keyring,
    keys,
    rateLimiter: new SharedRateLimiter(new RateLimiter(rate, valkey.nowMs), valkey),
    targetShare: new TargetLeases(valkey),
    readiness: () =>
      valkey.isUp ? "ready" : "ready, without Valkey: this instance allows its part of the limits",
    start: () => valkey.start(keys.follow),
  };
}
