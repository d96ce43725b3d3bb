import { readFileSync } from "node:fs";
import { RawSocket } from "../../icmp/socket.ts";
import { libc, SystemError } from "../../platform/libc.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** Whether this process may open the raw socket that ping and traceroute need. */
export async function checkRawSocket(): Promise<Finding> {
  const tried = "open a raw ICMPv6 socket";
  try {
    new RawSocket(0).close();
    return ok(tried, "it opens");
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    const advice =
      {
        EPERM:
          "run it as a service, or as root; without CAP_NET_RAW ping and traceroute do not work",
        EAFNOSUPPORT: "switch IPv6 on in the kernel; without it ping and traceroute do not work",
      }[error.code] ?? "ping and traceroute do not work without it";
    return problem(tried, error.message, advice);
  }
}

/** A line of /proc/net/if_inet6: address, index, prefix length, scope, flags, name. */
const GLOBAL_SCOPE = "00";

const DISABLED = "net.ipv6.conf.all.disable_ipv6";

/** Whether the machine has an IPv6 address that is valid beyond its links. */
export function checkAddress(
  table: string | null = readTable("/proc/net/if_inet6"),
  isDisabled: boolean = readTable(`/proc/sys/${DISABLED.replaceAll(".", "/")}`)?.trim() === "1",
): Finding {
  const tried = "find an IPv6 address of this machine";
  if (table === null) {
    return problem(tried, "the kernel has no IPv6", "boot without ipv6.disable=1");
  }
  if (isDisabled) {
    return problem(
      tried,
      `${DISABLED} is 1`,
      `sysctl -w ${DISABLED}=0, and take it out of /etc/sysctl.conf and /etc/sysctl.d`,
    );
  }
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  const names = rows.flatMap(([, , , scope, , name]) =>
    scope === GLOBAL_SCOPE && name !== undefined ? [name] : [],
  );
  return names.length > 0
    ? ok(tried, `there is one on ${[...new Set(names)].join(", ")}`)
    : problem(
        tried,
        "there is none but loopback and link-local",
        "ask your provider for an IPv6 prefix, and see ip -6 address",
      );
}

/** Flags of /proc/net/ipv6_route; linux/ipv6_route.h and linux/route.h. */
const ROUTE = { up: 0x1, reject: 0x200 } as const;

/** Whether the machine knows a way to addresses that are not its neighbours'. */
export function checkDefaultRoute(
  table: string | null = readTable("/proc/net/ipv6_route"),
): Finding {
  const tried = "find an IPv6 default route";
  const rows = (table ?? "").split("\n").map((line) => line.trim().split(/\s+/));
  const devices = rows.flatMap(([destination, length, , , , , , , flags = "0", device]) => {
    const bits = Number.parseInt(flags, 16);
    const isUsable = (bits & ROUTE.up) !== 0 && (bits & ROUTE.reject) === 0;
    const isDefault = length === "00" && /^0+$/.test(destination ?? "");
    return isDefault && isUsable && device !== undefined ? [device] : [];
  });
  return devices.length > 0
    ? ok(tried, `there is one by ${[...new Set(devices)].join(", ")}`)
    : warning(
        tried,
        "there is none",
        "beyond your own networks every target is NETWORK_UNREACHABLE; see ip -6 route",
      );
}

/** adjtimex(2): the size of `struct timex`, and the answer that nobody keeps the clock right. */
const TIMEX_BYTES = 208;
const TIME_ERROR = 5;

/** Whether something keeps the clock right. */
export function checkClock(): Finding {
  const tried = `compare the clock, ${new Date().toISOString()}, with a time server's`;
  const state = libc().adjtimex(new Uint8Array(new ArrayBuffer(TIMEX_BYTES)));
  return state === TIME_ERROR
    ? warning(
        tried,
        "no time service has set it",
        "timedatectl set-ntp true; certificates and the expiry of keys depend on it",
      )
    : ok(tried, "a time service keeps it right");
}

function readTable(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
