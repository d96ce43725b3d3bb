import { type Ipv6Address, tryParseIpv6 } from "../addr/ipv6.ts";
import { notGlobal } from "../addr/policy.ts";
import type { SocketAddress } from "../addr/socket-address.ts";
import type { Call } from "../api/endpoint.ts";
import { type DnsClient, lookupHostname } from "../dns/client.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";

/** How long after a trace's last answer names are waited for, in milliseconds: recursion on a cold cache takes so long. */
export const NAMES_MS = 1500;
/** Names of hops asked for at once, over all traces, half of them for one client: a part of what a resolver's client allows, so that `/dns` goes on. */
const MAX_QUESTIONS = 128;

/** Names that are asked for in one run, and characters of a name that are kept: one without escapes has no more. */
const MAX_NAMES = 256;
const MAX_CHARACTERS = 253;

/** The name of a hop whose name came too late. */
export const LATE = "";

/** Names by address; undefined as long as one is waited for, null without one, and `LATE` if it came too late. */
export type Names = ReadonlyMap<string, string | null | undefined>;

const slots = new FairSlots(MAX_QUESTIONS);

/**
 * Asks a resolver for names of hops while a trace runs. Addresses that are not globally reachable are
 * asked for only if no server of the resolver is: a private network keeps its names to itself.
 *
 * @param onName called whenever the name of an address has become known
 */
export function hopNames(
  dnsClient: DnsClient,
  servers: readonly SocketAddress[],
  { signal, client }: Pick<Call, "signal" | "client">,
  onName: (ip: string) => void,
  clock: Clock = systemClock,
) {
  const isPrivate = servers.every(({ address }) => notGlobal(address) !== null);
  const end = new AbortController();
  const stop = AbortSignal.any([signal, end.signal]);
  const names = new Map<string, string | null | undefined>();
  const pending: Promise<void>[] = [];
  let answeredMs = clock.nowMs();
  const find = async (ip: string, address: Ipv6Address) => {
    const leave = await slots.wait(client, stop);
    if (leave === null) return;
    const name = await lookupHostname(dnsClient, address, { signal: stop, client });
    leave();
    if (stop.aborted) return;
    names.set(ip, name?.slice(0, MAX_CHARACTERS) ?? null);
    if (name !== null) onName(ip);
  };
  return {
    /** The names by address that are known now. */
    names: names as Names,
    /** Begins to ask for the name of a hop that has answered, unless that has begun, or for `MAX_NAMES` of them. */
    ask(ip: string): void {
      answeredMs = clock.nowMs();
      if (names.size === MAX_NAMES || names.has(ip)) return;
      const address = tryParseIpv6(ip) as Ipv6Address;
      if (!isPrivate && notGlobal(address) !== null) return;
      names.set(ip, undefined);
      pending.push(find(ip, address));
    },
    /**
     * The names `NAMES_MS` after the last hop answered, or as soon as each is known. Gives up the others, which are
     * `LATE` from then on.
     */
    async known(): Promise<Names> {
      const waitMs = Math.max(0, answeredMs + NAMES_MS - clock.nowMs());
      await Promise.race([Promise.all(pending), pause(clock, waitMs, stop)]);
      end.abort();
      for (const [ip, name] of names) if (name === undefined) names.set(ip, LATE);
      return names;
    },
  };
}
