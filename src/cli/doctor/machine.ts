import { existsSync, readdirSync, readFileSync } from "node:fs";
import { type Config, RESOLVER_NAMES, type ResolverName } from "../../config/settings.ts";
import { createDnsClient } from "../../dns/client.ts";
import { certificateFault } from "../../dns/codes.ts";
import { type DnsServer, formatDnsServer } from "../../dns/server.ts";
import { openIcmpIfAllowed } from "../../icmp/engine.ts";
import { libc } from "../../platform/libc.ts";
import { listText } from "../../util/text.ts";
import { rawSocketRemedy } from "../terminal.ts";
import { type Finding, trying } from "./finding.ts";
import { AUTHORITIES, type SetVariable } from "./repair.ts";

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

const CONF = "/proc/sys/net/ipv6/conf";

/** Files that podman and Docker create in every container. */
const CONTAINER_MARKS = ["/run/.containerenv", "/.dockerenv"];

/** Looks for an IPv6 address of global scope; a row of the table ends with scope, flags and name. */
export function checkAddress(
  table: string | null = readText("/proc/net/if_inet6"),
  disabled: readonly string[] = disabledOn(),
  isContainer: boolean = CONTAINER_MARKS.some((path) => existsSync(path)),
): Finding {
  const GLOBAL_SCOPE = "00";
  const { ok, problem } = trying("find an IPv6 address of this machine");
  const inContainer = "run the container with --network=host, or in a network that has IPv6";
  const missing = (outcome: string, advice: string, run: string | null = null) =>
    isContainer ? problem(outcome, inContainer) : problem(outcome, advice, run);
  if (table === null) return missing("the kernel has no IPv6", "boot without ipv6.disable=1");
  const found = rowsOf(table).filter(([, , , scope, , name]) => scope === GLOBAL_SCOPE && name);
  if (disabled.length > 0 && found.length === 0) {
    const names = disabled.map((name) => `net.ipv6.conf.${name}.disable_ipv6`);
    const advice = "enable it, also for the next boot; set addresses again that were set by hand";
    const files = "grep -ls disable_ipv6 /etc/sysctl.conf /etc/sysctl.d/*";
    const forget = `${files} | xargs -r sed -i '/disable_ipv6/s/^/#/'`;
    const switches = disabled.map((name) => `${CONF}/${name}/disable_ipv6`);
    const run = `${forget}; echo 0 | tee ${switches.join(" ")}`;
    return missing(`${listText(names)} is 1`, advice, run);
  }
  return found.length > 0
    ? ok(`found on ${lastColumns(found)}`)
    : missing(
        "only loopback and link-local addresses",
        "ask your provider for an IPv6 address and gateway; see ip -6 address",
        "ip -6 address add ADDRESS/64 dev DEVICE",
      );
}

/** The interfaces where IPv6 is disabled, and `all` and `default`. */
function disabledOn(): string[] {
  const names = existsSync(CONF) ? readdirSync(CONF) : [];
  return names.filter((name) => readText(`${CONF}/${name}/disable_ipv6`)?.trim() === "1");
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

/**
 * Checks that a time service keeps the clock right, and that it is not behind what files say.
 *
 * @param latestMs a time that has passed: the newest of the service's files
 */
export function checkClock(latestMs: number, nowMs = Date.now()): Finding {
  /** The size of `struct timex`, and the result of a clock that is not synchronised; adjtimex(2). */
  const TIMEX_BYTES = 208;
  const TIME_ERROR = 5;
  const now = new Date(nowMs).toISOString();
  const { ok, problem, warning } = trying(`see whether the clock (${now}) is right`);
  const depends = "certificates and the expiry of keys depend on it";
  if (nowMs < latestMs) {
    const then = new Date(latestMs).toISOString();
    const advice = `set it to the time in UTC; ${depends}`;
    return problem(`it is behind: a file was written at ${then}`, advice, "date --utc --set=TIME");
  }
  const state = libc().adjtimex(new Uint8Array(new ArrayBuffer(TIMEX_BYTES)));
  if (state !== TIME_ERROR) return ok("a time service sets it");
  return warning("no time service sets it", depends, timeService());
}

/** The command that starts a time service; null if this machine has none to start, or gets its time from a host. */
function timeService(): string | null {
  const marks = [...CONTAINER_MARKS, "/run/systemd/container"];
  if (marks.some((path) => existsSync(path))) return null;
  const shown = Bun.which("timedatectl") && ["timedatectl", "show", "--property=CanNTP", "--value"];
  const can = shown && Bun.spawnSync(shown, { stderr: "ignore" }).stdout.toString().trim();
  if (can === "yes") return "timedatectl set-ntp true";
  return Bun.which("apt-get") && "apt-get install systemd-timesyncd";
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
        "the unit gives the capability to the service alone",
        `setcap -r ${path}`,
      )
    : ok("it has none, as it should be");
}

/** A nearby resolver answers well within this time. */
export const RESOLVER_TIMEOUT_MS = 2000;

/** Checks that each resolver answers, over each family that it has addresses of. */
export async function checkResolvers(
  resolvers: Config["resolvers"],
  set: SetVariable,
): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    RESOLVER_NAMES.map(async (name) => {
      const found = await Promise.all(
        ([6, 4] as const).flatMap((version) => {
          const servers = resolvers[name].filter(({ address }) => address.version === version);
          return servers.length === 0 ? [] : [checkResolver(name, version, servers, set)];
        }),
      );
      // One family is enough.
      return found.some(({ state }) => state === "ok") ? found.map(asWarning) : found;
    }),
  );
  return findings.flat();
}

async function checkResolver(
  name: ResolverName,
  version: 4 | 6,
  servers: readonly DnsServer[],
  set: SetVariable,
) {
  const at = servers.map(formatDnsServer).join(", ");
  const { ok, problem, warning } = trying(`ask ${name} over IPv${version} (${at})`);
  const variable = `SIXSCOPE_${name.toUpperCase()}`;
  const own = set(variable, "ADDRESS");
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
        own,
      );
    case "unreachable": {
      const certificate = certificateFault(outcome.reason);
      if (certificate) {
        const isUntrusted = certificate.advice.includes(AUTHORITIES);
        const run = isUntrusted ? set(AUTHORITIES, "AUTHORITY.pem") : own;
        return problem(certificate.fault, certificate.advice, run);
      }
      return problem(
        `it cannot be reached (${outcome.reason})`,
        outcome.reason.startsWith("ECONNREFUSED")
          ? `start a resolver there, or set ${variable}`
          : `see ip -${version} route, or set ${variable} to your own resolver`,
        own,
      );
    }
    case "timeout":
    case "aborted":
      return problem(
        `no answer within ${timeoutMs / 1000} s`,
        `allow UDP and TCP port 53, or set ${variable} to your own resolver`,
        own,
      );
  }
}

function asWarning(finding: Finding): Finding {
  return finding.state === "problem"
    ? {
        ...finding,
        state: "warning",
        advice: `the other family is used; ${finding.advice}`,
        run: null,
      }
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
