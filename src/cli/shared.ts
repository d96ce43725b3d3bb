import type { Config } from "../config/settings.ts";
import { Keyring } from "../keys/keyring.ts";
import { SharedKeys } from "../keys/shared-keys.ts";
import { SharedRateLimiter } from "../limits/shared-limiter.ts";
import { TargetLeases } from "../limits/target-leases.ts";
import { RateLimiter } from "../limits/token-bucket.ts";
import type { Log } from "../util/log.ts";
import type { ValkeyAddress } from "../valkey/address.ts";
import { Valkey } from "../valkey/valkey.ts";

/** What `openShared` returns. */
export type SharedService = ReturnType<typeof openShared>;

/** The copy of the keys in Valkey, beside the file that an instance alone would use. */
export function copyOf(keysFile: string): string {
  return `${keysFile}.copy`;
}

/** Makes what instances share. It is loaded only if Valkey is configured, and connects only in `start`. */
export function openShared(
  address: ValkeyAddress,
  { keysFile, rate }: Pick<Config, "keysFile" | "rate">,
  log: Log,
) {
  const valkey = new Valkey(address, log);
  const copy = copyOf(keysFile);
  const keyring = new Keyring(copy, log);
  const run = valkey.run.bind(valkey);
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
