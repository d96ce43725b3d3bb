/** The engines of all tools over one prober, by default one with a real socket. */
import { formatIpv6 } from "../../src/addr/format.ts";
import { Prober, type ProberOptions } from "../../src/icmp/prober/prober.ts";
import { RawSocket } from "../../src/icmp/socket/raw-socket.ts";
import { mtr } from "../../src/tools/mtr/engine.ts";
import { measureMtu } from "../../src/tools/mtu/engine.ts";
import { ping } from "../../src/tools/ping/engine.ts";
import { type Traced, traceroute } from "../../src/tools/trace/engine.ts";
import { tracePaths } from "../../src/tools/trace/path-search.ts";

export type IcmpEngine = ReturnType<typeof openIcmp>;

/** A prober with a real socket, unless the options have another. */
export const openProber = (options: Partial<ProberOptions> = {}) =>
  new Prober({ openSocket: (tag) => new RawSocket(tag), ...options });

export function openIcmp(options: Partial<ProberOptions> = {}) {
  const prober = openProber(options);
  return {
    prober,
    ping: ping.bind(null, prober),
    traceroute: traceroute.bind(null, prober),
    paths: tracePaths.bind(null, prober),
    mtr: mtr.bind(null, prober),
    mtu: measureMtu.bind(null, prober),
    counters: prober.counters as Readonly<Prober["counters"]>,
    outstanding: () => prober.outstanding,
    close: () => prober.close(),
  };
}

/** The addresses of a trace; at hops that it has given up, those that other traces saw, as where it had no turn for long. */
export const addressesToAll = ({ hops }: Traced) =>
  hops.map(({ ip, others }) => ip ?? (others ? formatIpv6(others.from) : null));
