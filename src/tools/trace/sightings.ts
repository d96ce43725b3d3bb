import { formatIpv6 } from "../../addr/format.ts";
import { equalIpv6, type Ipv6Address } from "../../addr/ipv6.ts";
import type { Response } from "../../icmp/prober/response.ts";
import type { Route } from "../../icmp/socket/socket.ts";
import type { Clock } from "../../util/clock.ts";

/** Milliseconds before a trace in which the sightings of others count for it: the limits of routers are per second, and routes change. */
export const SIGHTING_MS = 5000;
/** Flow labels that must have met one address: six rule out a second address with 95 %, see `labelsToRuleOut`. */
export const COMMON_LABELS = 6;
/** Answers after which a router may be silent because of its limit: Linux sends six at once. */
const BURST = 6;
/** Hops of networks that are remembered, and sightings of each; together at most about 8 MB. */
const MAX_PLACES = 1024;
const MAX_SIGHTINGS = 64;

/** The answer of a hop, and whether it came to a repeated request. */
type Sighting = { response: Response; flowLabel: number; atMs: number; isRepeat: boolean };

/**
 * The memory that all traces of a prober share; each trace opens it for its route and target. It remembers for a few
 * seconds which routers answered, for traces to which they are silent: by source, hop, and target network (a /48, the
 * longest prefix that networks exchange).
 */
export function createSightings() {
  const places = new Map<string, readonly Sighting[]>();
  return ({ source, flowLabel }: Route, { word0, word1 }: Ipv6Address, clock: Clock) => {
    const network = [formatIpv6(source), word0, word1 >>> 16].join(" ");
    const keyOf = (hop: number) => `${network} ${hop}`;
    const startMs = clock.nowMs();
    const recent = (hop: number) =>
      (places.get(keyOf(hop)) ?? []).filter(({ atMs }) => startMs < atMs + SIGHTING_MS);
    /** True if all answers of a hop came from one address. */
    const isOne = (hop: number) =>
      recent(hop).every(({ response }, _, [first = { response }]) =>
        equalIpv6(response.from, first.response.from),
      );
    return {
      /** Remembers the answer of a hop, and whether it came to a repeated request. */
      note(hop: number, response: Response, isRepeat: boolean): void {
        const seen = { response, flowLabel, atMs: clock.nowMs(), isRepeat };
        const all = [...recent(hop).slice(1 - MAX_SIGHTINGS), seen];
        const key = keyOf(hop);
        // The places that were seen last are the last of the map.
        places.delete(key);
        places.set(key, all);
        if (places.size > MAX_PLACES) places.delete(places.keys().next().value ?? "");
      },
      /**
       * The answer of a silent hop to other traces, if all flows took one path up to there; null if routers there limit
       * their answers and the answer is not certain; undefined if nothing shows a limit.
       */
      at(hop: number): Response | null | undefined {
        const seen = recent(hop);
        if (seen.length < BURST && !seen.some(({ isRepeat }) => isRepeat)) return undefined;
        const isCommon = Array.from({ length: hop }, (_, at) => at + 1).every(isOne);
        const labels = new Set(seen.map((each) => each.flowLabel)).size;
        return isCommon && labels >= COMMON_LABELS ? seen[0]?.response : null;
      },
    };
  };
}
