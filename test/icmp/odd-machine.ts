/**
 * Pings and traces on a machine with an unusual configuration, and prints the outcomes. Run by
 * `odd-machine.test.ts` in a network namespace of its own.
 *
 * Arguments: `exclusive-label`, `no-descriptor`, `no-trace`, or nothing; the target; and for how many
 * milliseconds to wait for each answer.
 */

import { openSync } from "node:fs";
import { interfaceIndex } from "../../src/icmp/socket/interfaces.ts";
import { C, loadLibc } from "../../src/platform/libc.ts";
import { AF_INET6, SOCK } from "../../src/platform/linux.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { openIcmp } from "./engines.ts";

/** ipv6(7): IPV6_FLOWLABEL_MGR, and the `struct in6_flowlabel_req` that leases a label for one socket alone. */
function leaseExclusiveLabel(): void {
  const LEVEL_IPV6 = 41;
  const FLOWLABEL_MGR = 32;
  const [label, share, flags] = [0x123, 1, 1];
  const request = new Uint8Array(new ArrayBuffer(32));
  const view = new DataView(request.buffer);
  request[15] = 1;
  view.setUint32(16, label);
  view.setUint8(21, share);
  view.setUint16(22, flags, true);
  const libc = loadLibc({
    socket: { args: [C.int, C.int, C.int], returns: C.int },
    setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.uint], returns: C.int },
  });
  const socket = libc.socket(AF_INET6, SOCK.dgram, 0);
  if (libc.setsockopt(socket, LEVEL_IPV6, FLOWLABEL_MGR, request, request.length) !== 0) {
    throw new Error(`no exclusive label: errno ${libc.errno()}`);
  }
}

function useAllDescriptors(): void {
  try {
    for (;;) openSync("/dev/null", "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EMFILE") throw error;
  }
}

function zoneOrError(zone: string): number | string | null {
  try {
    return interfaceIndex(zone);
  } catch (error) {
    return (error as Error).message;
  }
}

const [what, text = "::1", wait] = process.argv.slice(2);
const timeoutMs = Number(wait);
if (what === "exclusive-label") leaseExclusiveLabel();
const engine = openIcmp();
if (what === "no-descriptor") useAllDescriptors();
const target = parseIpv6(text);
const pinged = await engine.ping({ target, count: 2, intervalMs: 10, timeoutMs });
const trace = { target, maxHops: 2, timeoutMs };
const isTraced = what !== "no-trace";
const traced = isTraced && (await engine.traceroute(trace));
const found = isTraced && (await engine.paths({ ...trace, flowLabel: 7, paths: 2 }));
// Without its findings, which refer to each other.
const searched = found && { ...found, path: null, paths: null };
const zone = zoneOrError("lo");
await engine.close();
console.log(JSON.stringify({ pinged, traced, searched, zone }));
