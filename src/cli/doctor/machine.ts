import { existsSync } from "node:fs";
import type { DnsServer } from "../../dns/server.ts";
import { openIcmpIfAllowed } from "../../icmp/icmp.ts";
import { libc } from "../../platform/libc.ts";
import { lookHere } from "../../tools/here/engine.ts";
import type { HereStep } from "../../tools/here/result.ts";
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

/** The attempts of the steps of `here` that doctor shows; doctor asks the resolvers itself. */
const TRIED: Readonly<Partial<Record<HereStep["name"], string>>> = {
  kernel: "see whether the kernel has IPv6",
  link: "see whether the link is up",
  address: "find an IPv6 address of this machine",
  routers: "solicit the routers of the link",
  route: "find an IPv6 default route",
  gateway: "solicit the gateway",
  firewall: "see what the firewall drops",
  source: "see from which address packets leave",
  beyond: "reach what is beyond the gateway",
};

const STATES = { ok: "ok", warn: "warning", fail: "problem", skipped: "unknown" } as const;

/** Files that podman and Docker create in every container. */
const CONTAINER_MARKS = ["/run/.containerenv", "/.dockerenv"];

const CONTAINER_ADVICE = "a container without IPv6 needs --network=host or a network that has it";

/**
 * Checks the network of the machine, which takes four to six seconds.
 *
 * @param servers the resolvers of the settings, to test the path beyond the gateway; none if they are not known
 */
export async function checkMachine(
  servers: readonly DnsServer[] = [],
): Promise<readonly Finding[]> {
  const icmp = openIcmpIfAllowed();
  const prober = "unavailable" in icmp ? null : icmp;
  const { steps } = await lookHere(servers, null, prober, new AbortController().signal);
  prober?.close();
  const isContainer = CONTAINER_MARKS.some((path) => existsSync(path));
  const findings = steps.flatMap(({ name, status, text }): Finding[] => {
    const [tried, state] = [TRIED[name], STATES[status]];
    const advice = isContainer && state === "problem" ? CONTAINER_ADVICE : null;
    return tried ? [{ state, tried, outcome: text.replace(/\.$/, ""), advice, run: null }] : [];
  });
  const isBlind = prober === null || prober.withoutRaw !== null;
  // Other steps were skipped because they do not matter, or because the problem explains them.
  const hasUnknown = isBlind && findings.every(({ state }) => state !== "problem");
  return [...findings.filter(({ state }) => hasUnknown || state !== "unknown"), checkClock()];
}

/**
 * Checks that a time service keeps the clock right.
 *
 * @param errorUs the kernel's bound on the error of the clock, in microseconds
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
