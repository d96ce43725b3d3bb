import { existsSync, readdirSync } from "node:fs";
import { openIcmpIfAllowed } from "../../icmp/icmp.ts";
import { libc } from "../../platform/libc.ts";
import { tryRead } from "../../platform/regular-file.ts";
import { listText } from "../../util/text.ts";
import { rawSocketRemedy } from "../terminal.ts";
import { type Finding, type Scene, trying } from "./finding.ts";

/**
 * Checks that this process may open the raw socket that all probes but pings need. The service's user gets
 * the capability from systemd only, and a running process says what it has.
 */
export function checkRights({
  service,
  status,
  environment,
}: Pick<Scene, "service" | "status" | "environment">): readonly Finding[] {
  if (status !== null || (service !== null && process.geteuid?.() !== 0)) return [];
  const { ok, problem, warning } = trying("open a raw ICMPv6 socket");
  const icmp = openIcmpIfAllowed();
  if ("unavailable" in icmp) {
    const remedy = rawSocketRemedy(icmp, environment);
    return [problem(icmp.unavailable, `${remedy}; without it no target can be probed`)];
  }
  icmp.close();
  if (icmp.withoutRaw === null) return [ok("it opens")];
  const remedy = rawSocketRemedy(icmp.withoutRaw, environment);
  return [warning(`${icmp.withoutRaw.unavailable}, so targets can only be pinged`, remedy)];
}

/** Checks what the machine gives to every program. */
export const checkMachine = () => [checkAddress(), checkDefaultRoute(), checkClock()];

const CONF = "/proc/sys/net/ipv6/conf";

/** Files that podman and Docker create in every container. */
const CONTAINER_MARKS = ["/run/.containerenv", "/.dockerenv"];

const CONTAINER_ADVICE = "run the container with --network=host, or in a network that has IPv6";

/** Where the kernel's command line or an option of the module forbids IPv6. */
const ALLOW_IPV6 =
  "remove ipv6.disable=1 from /etc/default/grub and run update-grub, or remove disable=1 of ipv6 from /etc/modprobe.d; then reboot";

const ENABLE_IPV6 =
  "enable it, and for the next boot in /etc/sysctl.conf and /etc/sysctl.d; set addresses again that were set by hand";

const ADDRESS = trying("find an IPv6 address of this machine");

/** Looks for an IPv6 address of global scope; a row of the table ends with scope, flags and name. */
export function checkAddress(
  table: string | null = tryRead("/proc/net/if_inet6"),
  disabled: readonly string[] = disabledOn(),
  isContainer: boolean = CONTAINER_MARKS.some((path) => existsSync(path)),
): Finding {
  const found = table?.matchAll(/^[0-9a-f]{32} [0-9a-f]+ [0-9a-f]+ 00 [0-9a-f]+ +(\S+)$/gm) ?? [];
  const interfaces = [...new Set(Array.from(found, ([, name]) => name))];
  if (interfaces.length > 0) return ADDRESS.ok(`found on ${interfaces.join(", ")}`);
  const finding = missingAddress(table !== null, disabled);
  return isContainer ? { ...finding, advice: CONTAINER_ADVICE, run: null } : finding;
}

function missingAddress(hasIpv6: boolean, disabled: readonly string[]): Finding {
  const { problem } = ADDRESS;
  if (!hasIpv6) return problem("the kernel has no IPv6", ALLOW_IPV6);
  if (disabled.length === 0) {
    const advice = "ask your provider for an IPv6 address and gateway; see ip -6 address";
    return problem("only loopback and link-local addresses", advice);
  }
  // With slashes, the name of an interface may have dots.
  const switches = disabled.map((name) => `net/ipv6/conf/${name}/disable_ipv6`);
  const run = ["sysctl", "-w", ...switches.map((name) => `${name}=0`)];
  return problem(`${listText(switches)} is 1`, ENABLE_IPV6, run);
}

/** The interfaces where IPv6 is disabled, and `all` and `default`. */
function disabledOn(): string[] {
  const names = existsSync(CONF) ? readdirSync(CONF) : [];
  return names.filter((name) => tryRead(`${CONF}/${name}/disable_ipv6`)?.trim() === "1");
}

/** Flags of /proc/net/ipv6_route; linux/ipv6_route.h and linux/route.h. */
const ROUTE = { up: 0x1, reject: 0x200 } as const;

/** The usable default routes in the table of the kernel: the gateway in hex, and the interface. */
export function defaultRoutes(table: string | null = tryRead("/proc/net/ipv6_route")) {
  const ROW = /^0{32} 00 0{32} 00 (\w{32}) \w+ \w+ \w+ (\w+) +(\S+)$/gm;
  return Array.from((table ?? "").matchAll(ROW)).flatMap(
    ([, gateway = "", flags = "", device = ""]) =>
      (Number.parseInt(flags, 16) & (ROUTE.up | ROUTE.reject)) === ROUTE.up
        ? [{ gateway, device }]
        : [],
  );
}

/** Looks for a usable IPv6 default route. */
export function checkDefaultRoute(routes = defaultRoutes()): Finding {
  const { ok, warning } = trying("find an IPv6 default route");
  const names = [...new Set(routes.map(({ device }) => device))];
  const advice = "targets beyond your own networks answer NETWORK_UNREACHABLE; see ip -6 route";
  return names.length > 0
    ? ok(`found on ${names.join(", ")}`)
    : warning("there is no default route", advice);
}

/**
 * Checks that a time service keeps the clock right.
 *
 * @param errorUs how far off the clock is at most, as far as the kernel knows
 */
export function checkClock(errorUs: number = clockErrorUs()): Finding {
  /** The kernel counts up to this error while nothing sets the clock; linux/timex.h, NTP_PHASE_LIMIT. */
  const UNKNOWN_US = 16_000_000;
  const { ok, warning } = trying(`see whether the clock (${new Date().toISOString()}) is right`);
  return errorUs < UNKNOWN_US
    ? ok("a time service sets it")
    : warning(
        "no time service sets it",
        "start one, such as systemd-timesyncd, in a container on its host; certificates and the expiry of keys depend on it",
      );
}

/** The kernel's bound on the error of the clock; adjtimex(2), `maxerror` of `struct timex`. */
function clockErrorUs(): number {
  const [TIMEX_WORDS, MAX_ERROR] = [26, 3];
  const timex = new BigInt64Array(new ArrayBuffer(TIMEX_WORDS * BigInt64Array.BYTES_PER_ELEMENT));
  libc().adjtimex(timex);
  return Number(timex[MAX_ERROR]);
}
