import { type Ipv6Address, tryParseIpv6 } from "../addr/ipv6.ts";
import { notGlobal } from "../addr/policy.ts";
import type { SocketAddress } from "../addr/socket-address.ts";
import type { Call } from "../api/endpoint.ts";
import { type DnsClient, lookupHostname } from "../dns/client.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import { type Clock, pause, systemClock } from "../util/clock.ts";

/** Milliseconds that names may take after a trace's last answer: recursion on a cold cache takes this long. */
export const NAMES_MS = 1500;
/** Names of hops asked for at once, over all traces, half of them for one client: a DNS client allows more, so `/dns` goes on. */
const MAX_QUESTIONS = 128;

/** Names that one run asks for. */
const MAX_NAMES = 256;
/** Characters of a name that are kept; a name without escapes has no more. */
const MAX_CHARACTERS = 253;

/** Takes the place of a name that came too late. */
export const LATE = "";

/** Names by address: undefined while the resolver is asked, null if there is none, and `LATE` if it came too late. */
export type Names = ReadonlyMap<string, string | null | undefined>;

const slots = new FairSlots(MAX_QUESTIONS);

/**
 * Asks a resolver for names of hops while a trace runs. It asks for addresses that are not globally reachable only
 * if no server of the resolver is globally reachable either: a private network keeps its names to itself.
 *
 * @param onName called when the name of an address becomes known
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
    /** Asks for the name of a hop that has answered: once for each address, and for `MAX_NAMES` at most. */
    ask(ip: string): void {
      answeredMs = clock.nowMs();
      if (names.size === MAX_NAMES || names.has(ip)) return;
      const address = tryParseIpv6(ip) as Ipv6Address;
      if (!isPrivate && notGlobal(address) !== null) return;
      names.set(ip, undefined);
      pending.push(find(ip, address));
    },
    /**
     * Waits until all names are known, or until `NAMES_MS` after the last hop answered. The names that are missing then
     * are `LATE`.
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
