/** The tries beyond the links of this machine: of its resolvers, which it asks anyway. */
import type { Ipv6Address } from "../../addr/ipv6.ts";
import { LOOPBACK, prefixContains } from "../../addr/prefix.ts";
import { createDnsClient } from "../../dns/client.ts";
import type { DnsServer } from "../../dns/server.ts";
import { type Way, wayTo } from "../../here/machine.ts";
import type { ProbeRequest, Prober } from "../../icmp/prober/prober.ts";
import { interfaceIndex } from "../../icmp/socket/interfaces.ts";
import { HEADER_BYTES, IPV6_HEADER_BYTES, TYPE } from "../../icmp/wire/packet.ts";

/** Resolvers that are tried; a system has three. */
const MAX_RESOLVERS = 3;
/** Milliseconds that each question to a resolver waits: addresses may be tentative at first, and a resolver may be slow. */
const TRIES_MS = [1400, 1400, 3000];
/** Milliseconds that every other packet waits for its answer. */
const TRY_MS = 1400;
/** Three large packets go only where small ones have come back. With all small packets they are less than 64 KB. */
const MAX_LARGE_BYTES = 9000;
const HOP_LIMIT = 64;

/** The outcome of the tries of a resolver. */
export interface ResolverTry {
  readonly server: DnsServer;
  /** The kernel's way to it; if it is silent, at the first question. Null if there is none, or if it is not asked over IPv6 on another machine. */
  readonly way: Way | null;
  readonly outcome: "answers" | "silent" | "port-closed" | "not-sent" | "refused";
  /** True if its address gives another answer: an echo reply, or that its port is closed. */
  readonly echoes: boolean;
  /** The packets to it that a rule of this machine refuses, such as `DNS queries`; null if none. */
  readonly refused: string | null;
  /** Whether packets of the size that the kernel sends come back; null if that was not tried, or is not known. */
  readonly large: boolean | null;
}

export const isLoopback = ({ address }: DnsServer) =>
  LOOPBACK.some((prefix) => prefixContains(prefix, address));

/** True for a resolver that is asked over IPv6 on another machine. */
export const isOutside = (
  server: DnsServer,
): server is DnsServer & { readonly address: Ipv6Address } =>
  server.address.version === 6 && !isLoopback(server);

/** Tries each resolver: questions and echo requests, and large packets to the first from which small ones come back. */
export function tryResolvers(
  servers: readonly DnsServer[],
  prober: Prober | null,
  signal: AbortSignal,
): Promise<readonly ResolverTry[]> {
  let isLargeTried = false;
  const tryResolver = async (server: DnsServer): Promise<ResolverTry> => {
    const { zone, protocol, port } = server;
    const scopeId = zone === undefined ? 0 : (interfaceIndex(zone) ?? 0);
    const asked = { server, scopeId, prober, signal };
    const wayNow = () => (isOutside(server) ? wayTo(server.address, scopeId) : null);
    const firstWay = wayNow();
    let isIterative = true;
    const ask = (timeoutMs: number, dataBytes?: number) =>
      Promise.all([
        query(asked, isIterative, timeoutMs, dataBytes),
        echo(asked, dataBytes ? { payloadBytes: dataBytes } : {}),
      ]);
    let outcome: ResolverTry["outcome"] = "silent";
    let isEchoed = false;
    for (const timeoutMs of TRIES_MS) {
      if (outcome === "answers" || signal.aborted) break;
      // A resolver of a closed network cannot ask others, so an answer from its own data is enough.
      isIterative = !isIterative;
      const [answered, echoed] = await ask(timeoutMs);
      outcome = answered;
      isEchoed ||= echoed === "reply";
    }
    // A router or a firewall, also that of this machine, can say in its place that the port is closed.
    const isClosed = async () =>
      protocol !== undefined ||
      (await echo(asked, { probedPort: { protocol: "udp", port } })) === "reply";
    const echoes = isEchoed || (outcome === "port-closed" && (await isClosed()));
    const isAnswered = outcome === "answers" || echoes;
    // The kernel gives up a silent gateway for another route, if there is one.
    const way = (isAnswered ? null : firstWay) ?? wayNow();
    const refused = outcome === "refused" ? "DNS queries" : null;
    const tried = { server, way, outcome, echoes, refused };
    const isSmallBack = outcome === "answers" && isEchoed;
    const isLargeDue = isSmallBack && !isLargeTried && protocol === undefined;
    if (!isLargeDue || !way?.via || way.mtu === null) return { ...tried, large: null };
    isLargeTried = true;
    const largeBytes = Math.min(way.mtu, MAX_LARGE_BYTES);
    const [answered, echoed] = await ask(TRY_MS, largeBytes - IPV6_HEADER_BYTES - HEADER_BYTES);
    const isBack = answered === "answers" || echoed === "reply" || echoed === "too-big";
    if (answered === "refused")
      return { ...tried, refused: `packets of ${largeBytes} bytes`, large: null };
    return { ...tried, large: isBack || (echoed === "unknown" || signal.aborted ? null : false) };
  };
  return Promise.all(servers.slice(0, MAX_RESOLVERS).map(tryResolver));
}

/** A resolver that is tried, and the means. */
interface Asked {
  readonly server: DnsServer;
  readonly scopeId: number;
  readonly prober: Prober | null;
  readonly signal: AbortSignal;
}

/** One question, padded to `paddedBytes`. If it cannot be sent, it still takes `TRY_MS`: an address may be ready by then. */
async function query(
  { server, signal }: Asked,
  isIterative: boolean,
  timeoutMs: number,
  paddedBytes?: number,
) {
  const startMs = performance.now();
  const options = { timeoutMs, signal, isIterative, ...(paddedBytes && { paddedBytes }) };
  // Every resolver knows the name servers of the root.
  const outcome = await createDnsClient({ servers: [server] }).query(".", "NS", options);
  if (outcome.kind === "unreachable") {
    if (outcome.reason === "ECONNREFUSED") return "port-closed";
    await Bun.sleep(Math.max(0, TRY_MS - (performance.now() - startMs)));
    return outcome.reason === "EPERM" ? "refused" : "not-sent";
  }
  return outcome.kind === "timeout" || outcome.kind === "aborted" ? "silent" : "answers";
}

/** Sends an echo request, or a probe of a port. */
async function echo({ server, scopeId, prober, signal }: Asked, more: Partial<ProbeRequest>) {
  const { address: target } = server;
  if (prober === null || target.version === 4) return "unknown";
  const route = prober.route(target, scopeId);
  if (typeof route === "string") return "none";
  const request = { target, scopeId, hopLimit: HOP_LIMIT, timeoutMs: TRY_MS, signal, ...route };
  const answer = await prober.probe({ ...request, ...more });
  if (answer.kind === "reply" || answer.kind === "unknown") return answer.kind;
  return answer.kind === "error" && answer.type === TYPE.packetTooBig ? "too-big" : "none";
}
