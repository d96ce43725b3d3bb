import { existsSync, readFileSync } from "node:fs";
import { type Config, RESOLVER_NAMES, type ResolverName } from "../../config/settings.ts";
import { createDnsClient } from "../../dns/client.ts";
import { certificateFault } from "../../dns/codes.ts";
import { type DnsServer, formatDnsServer } from "../../dns/server.ts";
import { openIcmpIfAllowed } from "../../icmp/engine.ts";
import { libc } from "../../platform/libc.ts";
import { rawSocketRemedy } from "../terminal.ts";
import { type Finding, trying } from "./finding.ts";

/** Checks that this process may open the raw socket that all probes but pings need. */
export function checkRawSocket(environment: NodeJS.ProcessEnv): Finding {
  const { ok, problem, warning } = trying("open a raw ICMPv6 socket");
  const icmp = openIcmpIfAllowed();
  if ("unavailable" in icmp) {
    const remedy = rawSocketRemedy(icmp, environment);
    return problem(icmp.unavailable, `${remedy}; without it no target can be probed`);
  }
  icmp.close();
  if (icmp.withoutRaw === null) return ok("it opens");
  const remedy = rawSocketRemedy(icmp.withoutRaw, environment);
  return warning(`${icmp.withoutRaw.unavailable}, so targets can only be pinged`, remedy);
}

const DISABLED = "net.ipv6.conf.all.disable_ipv6";

/** Files that podman and Docker create in every container. */
const CONTAINER_MARKS = ["/run/.containerenv", "/.dockerenv"];

/** Looks for an IPv6 address of global scope; a row of the table ends with scope, flags and name. */
export function checkAddress(
  table: string | null = readText("/proc/net/if_inet6"),
  isDisabled: boolean = readText(`/proc/sys/${DISABLED.replaceAll(".", "/")}`)?.trim() === "1",
  isContainer: boolean = CONTAINER_MARKS.some((path) => existsSync(path)),
): Finding {
  const GLOBAL_SCOPE = "00";
  const { ok, problem } = trying("find an IPv6 address of this machine");
  const inContainer = "run the container with --network=host, or in a network that has IPv6";
  const missing = (outcome: string, advice: string) =>
    problem(outcome, isContainer ? inContainer : advice);
  if (table === null) return missing("the kernel has no IPv6", "boot without ipv6.disable=1");
  if (isDisabled) {
    const advice = `sysctl -w ${DISABLED}=0, and remove it from /etc/sysctl.conf and /etc/sysctl.d`;
    return missing(`${DISABLED} is 1`, advice);
  }
  const found = rowsOf(table).filter(([, , , scope, , name]) => scope === GLOBAL_SCOPE && name);
  const advice = "ask your provider for an IPv6 prefix; see ip -6 address";
  return found.length > 0
    ? ok(`found on ${lastColumns(found)}`)
    : missing("only loopback and link-local addresses", advice);
}

/** Flags of /proc/net/ipv6_route; linux/ipv6_route.h and linux/route.h. */
const ROUTE = { up: 0x1, reject: 0x200 } as const;

/** Looks for a usable IPv6 default route. */
export function checkDefaultRoute(table: string | null = readText("/proc/net/ipv6_route")) {
  const { ok, warning } = trying("find an IPv6 default route");
  const found = rowsOf(table ?? "").filter(
    ([destination = "", length, , , , , , , flags = "0", name]) => {
      const bits = Number.parseInt(flags, 16);
      const isUsable = (bits & ROUTE.up) !== 0 && (bits & ROUTE.reject) === 0;
      return length === "00" && /^0+$/.test(destination) && isUsable && name;
    },
  );
  const advice = "targets beyond your own networks answer NETWORK_UNREACHABLE; see ip -6 route";
  return found.length > 0
    ? ok(`found on ${lastColumns(found)}`)
    : warning("there is no default route", advice);
}

/** Checks that a time service keeps the clock right. */
export function checkClock(): Finding {
  /** The size of `struct timex`, and the result of a clock that is not synchronised; adjtimex(2). */
  const TIMEX_BYTES = 208;
  const TIME_ERROR = 5;
  const now = new Date().toISOString();
  const { ok, warning } = trying(`see whether the clock (${now}) is synchronised`);
  const state = libc().adjtimex(new Uint8Array(new ArrayBuffer(TIMEX_BYTES)));
  const advice =
    "timedatectl set-ntp true; certificates and the expiry of keys depend on the clock";
  return state === TIME_ERROR
    ? warning("no time service sets it", advice)
    : ok("a time service sets it");
}

/**
 * Checks that the executable has no file capabilities: they would give raw sockets to every user
 * of the machine, while the unit gives them to the service alone.
 */
export function checkExecutable(path: string): Finding {
  const { ok, problem } = trying(`look for capabilities on ${path}`);
  const text = (value: string) => new TextEncoder().encode(`${value}\0`);
  const length = libc().getxattr(text(path), text("security.capability"), null, 0);
  return length > 0
    ? problem(
        "it has some, which gives every user of this machine raw sockets",
        `setcap -r ${path}; the unit gives the capability to the service alone`,
      )
    : ok("it has none, as it should be");
}

/** A nearby resolver answers well within this time. */
export const RESOLVER_TIMEOUT_MS = 2000;

/** Checks that each resolver answers, over each family that it has addresses of. */
export async function checkResolvers(resolvers: Config["resolvers"]): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    RESOLVER_NAMES.map(async (name) => {
      const found = await Promise.all(
        ([6, 4] as const).flatMap((version) => {
          const servers = resolvers[name].filter(({ address }) => address.version === version);
          return servers.length === 0 ? [] : [checkResolver(name, version, servers)];
        }),
      );
      // One family is enough.
      return found.some(({ state }) => state === "ok") ? found.map(asWarning) : found;
    }),
  );
  return findings.flat();
}

async function checkResolver(name: ResolverName, version: 4 | 6, servers: readonly DnsServer[]) {
  const at = servers.map(formatDnsServer).join(", ");
  const { ok, problem, warning } = trying(`ask ${name} over IPv${version} (${at})`);
  const variable = `SIXSCOPE_${name.toUpperCase()}`;
  const timeoutMs = RESOLVER_TIMEOUT_MS;
  // Every resolver knows the name servers of the root.
  const outcome = await createDnsClient({ servers }).query(".", "NS", { timeoutMs });
  switch (outcome.kind) {
    case "answer":
    case "no-data":
    case "name-error":
      return ok(`${outcome.server} answers in ${outcome.queryTimeMs} ms`);
    case "failure":
    case "malformed":
      return warning(
        `${outcome.server} answers ${outcome.rcode}`,
        `ask its operator whether it serves this machine, or set ${variable}`,
      );
    case "unreachable": {
      const certificate = certificateFault(outcome.reason);
      if (certificate) return problem(certificate.fault, certificate.advice);
      return problem(
        `it cannot be reached (${outcome.reason})`,
        outcome.reason.startsWith("ECONNREFUSED")
          ? `start a resolver there, or set ${variable}`
          : `see ip -${version} route, or set ${variable} to your own resolver`,
      );
    }
    case "timeout":
    case "aborted":
      return problem(
        `no answer within ${timeoutMs / 1000} s`,
        `allow UDP and TCP port 53, or set ${variable} to your own resolver`,
      );
  }
}

function asWarning(finding: Finding): Finding {
  return finding.state === "problem"
    ? { ...finding, state: "warning", advice: `the other family is used; ${finding.advice}` }
    : finding;
}

function rowsOf(table: string): string[][] {
  return table.split("\n").map((line) => line.trim().split(/\s+/));
}

/** The names of interfaces, which are at the end of rows, each once. */
function lastColumns(rows: readonly string[][]): string {
  return [...new Set(rows.map((row) => row.at(-1)))].join(", ");
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
