import { formatIp } from "../../addr/ip.ts";
import { type Ipv6Address, ipv6FromBytes, ipv6ToBytes } from "../../addr/ipv6.ts";
import { openIcmpIfAllowed } from "../../icmp/icmp.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import { cString, libc } from "../../platform/libc.ts";
import { SOCK } from "../../platform/linux.ts";
import { ping } from "../../tools/ping/engine.ts";
import { type Finding, trying } from "./finding.ts";
import { defaultRoutes } from "./machine.ts";

/** A host on the own link answers in a few milliseconds, after neighbour discovery. */
const TIMEOUT_MS = 1000;

/** Types of ICMPv6 messages, RFC 4443 and RFC 4861. */
const TYPE = { request: 128, reply: 129, neighbour: 136 } as const;

/** Pings this machine and its gateways, and says where a request or a reply is lost. */
export async function checkEcho(): Promise<readonly Finding[]> {
  const icmp = openIcmpIfAllowed();
  // Another check reports it.
  if ("unavailable" in icmp) return [];
  const here = { gateway: "1".padStart(32, "0"), device: "lo" };
  const findings = [];
  for (const { gateway, device } of [here, ...defaultRoutes()]) {
    // A route without a gateway leads to the link itself.
    if (/^0+$/.test(gateway)) continue;
    findings.push(await checkTarget(icmp, ipv6FromBytes(Uint8Array.fromHex(gateway)), device));
  }
  icmp.close();
  return findings;
}

async function checkTarget(prober: Prober, target: Ipv6Address, device: string) {
  const isHere = device === "lo";
  const { ok, problem, warning } = trying(
    `ping ${isHere ? "this machine" : "the gateway"} at ${formatIp(target)}`,
  );
  const scopeId = formatIp(target).startsWith("fe80:") ? libc().if_nametoindex(cString(device)) : 0;
  const typesSeen = watchWire(target);
  const once = { count: 1, intervalMs: 0, timeoutMs: TIMEOUT_MS };
  const outcome = await ping(prober, { target, scopeId, ...once });
  const seen = typesSeen();
  if (outcome.kind === "done" && outcome.results.length > 0) return ok("it answers");
  const dropped = (how: string) =>
    problem(
      `the firewall of this machine drops ICMPv6${how}`,
      "accept it as RFC 4890 says, also in what loads the firewall at boot; nft list ruleset shows all rules",
    );
  const code = outcome.kind === "unreachable" ? outcome.code : null;
  if (code === "EPERM" || code === "EACCES") return dropped(` on its way out (${code})`);
  if (code !== null) {
    return problem(`it cannot be sent (${code})`, "see ip -6 route and ip -6 address");
  }
  if (seen?.has(TYPE.reply)) return dropped(" on its way in: the reply came to the interface");
  if (isHere) return dropped("");
  if (seen?.has(TYPE.neighbour) && !seen.has(TYPE.request)) {
    return dropped(" on its way in: the gateway's neighbour advertisement came to the interface");
  }
  const reason = outcome.kind === "done" ? outcome.lost[0]?.reason : outcome.kind;
  return warning(
    `no answer (${reason})`,
    "some gateways answer no pings; see ip -6 neighbour, and the gateway's firewall",
  );
}

/**
 * Watches the interfaces. They see a packet that comes before the firewall of this machine does, and one
 * that leaves after it; packet(7). The function returned gives the types of the ICMPv6 messages to or from
 * the target; null without the right to watch.
 */
function watchWire(target: Ipv6Address): () => ReadonlySet<number> | null {
  const [AF_PACKET, ETH_P_IPV6, HEADER_BYTES] = [17, 0xdd86, 40];
  const fd = libc().socket(AF_PACKET, SOCK.dgram | SOCK.nonblock | SOCK.cloexec, ETH_P_IPV6);
  return () => {
    if (fd < 0) return null;
    const types = new Set<number>();
    const packet = new Uint8Array(new ArrayBuffer(2048));
    const wanted = ipv6ToBytes(target).toHex();
    while (Number(libc().recv(fd, packet, packet.length, 0)) > HEADER_BYTES) {
      const type = packet[HEADER_BYTES] ?? 0;
      const at = type === TYPE.request ? 24 : 8;
      if (packet.subarray(at, at + 16).toHex() === wanted) types.add(type);
    }
    libc().close(fd);
    return types;
  };
}
