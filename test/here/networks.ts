import { HEALTHY } from "./healthy-networks.ts";
import { LINK_FAULTS } from "./link-faults.ts";
import { PATH_FAULTS } from "./path-faults.ts";
import type { Trial } from "./trial.ts";

/** The networks on which `sixscope here` is tried: what each is, and what is to be said of it. */
export const TRIALS: readonly Trial[] = [...HEALTHY, ...LINK_FAULTS, ...PATH_FAULTS];
