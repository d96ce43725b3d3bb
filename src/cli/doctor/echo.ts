import { formatIp } from "../../addr/ip.ts";
import { type Ipv6Address, ipv6FromBytes } from "../../addr/ipv6.ts";
import { openIcmpIfAllowed } from "../../icmp/icmp.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import { cString, libc } from "../../platform/libc.ts";
import { ping } from "../../tools/ping/engine.ts";
import { type Finding, trying } from "./finding.ts";
import { defaultRoutes } from "./machine.ts";

/** A host on the own link answers in a few milliseconds, after neighbour discovery. */
const TIMEOUT_MS = 1000;

/** Pings this machine and its gateways. */
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
  const once = { count: 1, intervalMs: 0, timeoutMs: TIMEOUT_MS };
  const outcome = await ping(prober, { target, scopeId, ...once });
  if (outcome.kind === "done" && outcome.results.length > 0) return ok("it answers");
  const code = outcome.kind === "unreachable" ? outcome.code : null;
  const isRefused = code === "EPERM" || code === "EACCES";
  if (code !== null && !isRefused) {
    return problem(`it cannot be sent (${code})`, "see ip -6 route and ip -6 address");
  }
  if (isHere || isRefused) {
    return problem(
      `the firewall of this machine drops ICMPv6${isRefused ? ` on its way out (${code})` : ""}`,
      "accept it as RFC 4890 says, also in what loads the firewall at boot; nft list ruleset shows all rules",
    );
  }
  const reason = outcome.kind === "done" ? outcome.lost[0]?.reason : outcome.kind;
  return warning(
    `no answer (${reason})`,
    "some gateways answer no pings; see ip -6 neighbour, and the firewalls of this machine and of the gateway",
  );
}
