/** Questions to the kernel over rtnetlink; rtnetlink(7). */
import { type Ipv6Address, ipv6ToBytes } from "../addr/ipv6.ts";
import { openSocket } from "../icmp/socket/socket.ts";
import { lastError, libc } from "../platform/libc.ts";
import { AF_INET6, AF_NETLINK, MSG_DONTWAIT, SOCK } from "../platform/linux.ts";
import { type KernelMessage, MESSAGE, splitMessages, TABLES } from "./kernel.ts";

/** NLM_F_REQUEST alone, and with NLM_F_DUMP for all rows; linux/netlink.h. */
const REQUEST = 0x1;
const DUMP = 0x301;
/** The kernel fills no larger buffer in one call. */
const BUFFER_BYTES = 64 * 1024;
/** Bytes of one table that are read; 4,096 routes take half of it. */
const MAX_TABLE_BYTES = 2 * 1024 * 1024;

/** The rows of a table of this machine, as far as they fit into 2 MiB. Throws SystemError if the kernel refuses. */
export function dumpTable(table: keyof typeof TABLES): readonly KernelMessage[] {
  const body = new Uint8Array(TABLES[table].bytes);
  // Links are of all families.
  body[0] = table === "link" ? 0 : AF_INET6;
  return exchange(table, DUMP, body);
}

/**
 * Asks for the route of a packet by all rules and tables; the kernel may answer with a route that refuses the packet.
 *
 * @param source null for any
 */
export function askRoute(destination: Ipv6Address, source: Ipv6Address | null) {
  const fixed = new Uint8Array(TABLES.route.bytes);
  fixed.set([AF_INET6, 128, source ? 128 : 0]);
  // RTA_DST and RTA_SRC with their lengths.
  const attributes = [destination, source].flatMap((ip, at) =>
    ip ? [20, 0, at + 1, 0, ...ipv6ToBytes(ip)] : [],
  );
  return exchange("route", REQUEST, Uint8Array.of(...fixed, ...attributes));
}

function exchange(
  table: keyof typeof TABLES,
  flags: number,
  body: Uint8Array,
): readonly KernelMessage[] {
  const { sendto, recvfrom, close } = libc();
  const fd = openSocket(SOCK.raw, 0, AF_NETLINK);
  using _ = { [Symbol.dispose]: () => close(fd) };
  // A request has a type two greater than its rows.
  const type = TABLES[table].type + 2;
  const header = Uint32Array.of(MESSAGE.headerBytes + body.length, type | (flags << 16), 0, 0);
  const request = Uint8Array.of(...new Uint8Array(header.buffer), ...body);
  if (sendto(fd, request, request.length, 0, null, 0) < 0) throw lastError("sendto(AF_NETLINK)");
  const messages: KernelMessage[] = [];
  for (let read = 0; read < MAX_TABLE_BYTES; ) {
    const buffer = new Uint8Array(new ArrayBuffer(BUFFER_BYTES));
    // The kernel answers within the call, so there is nothing to wait for.
    const length = Number(recvfrom(fd, buffer, buffer.length, MSG_DONTWAIT, null, null));
    if (length < 0) throw lastError("recvfrom(AF_NETLINK)");
    read += length;
    const part = splitMessages(buffer.subarray(0, length));
    messages.push(...part.filter((message) => message.type !== MESSAGE.done));
    if (flags !== DUMP || length === 0 || part.some((each) => each.type <= MESSAGE.done)) break;
  }
  return messages;
}
