/**
 * Every packet that arrives at a node of a kernel chain, with the kernel's time: `watchArrivals` runs this file
 * inside the node, where it prints a line for each.
 */
import { formatIp } from "../../src/addr/ip.ts";
import { ipv6FromBytes } from "../../src/addr/ipv6.ts";
import { addressOf, C, loadLibc } from "../../src/platform/libc.ts";
import type { KernelChain } from "./kernel-chain.ts";
import { labEnvironment } from "./run.ts";

/** A packet of IPv6 or IPv4 as it arrived. */
export interface Arrival {
  /** When the kernel got it, in milliseconds of the real-time clock. */
  readonly atMs: number;
  readonly to: string;
  readonly hopLimit: number;
  /** Of a SYN that opens a connection, or asks to: its port, and what the kernel keeps when it sends it again. */
  readonly syn?: { readonly port: number; readonly id: string };
}

/** What arrives at a node. */
export interface Watch extends AsyncDisposable {
  /** All packets that have arrived before the call. */
  arrivals(): Promise<readonly Arrival[]>;
}

/** Watches what arrives at a node. */
export async function watchArrivals(chain: KernelChain, node: number): Promise<Watch> {
  const child = Bun.spawn(chain.inside(node, [process.execPath, import.meta.path]), {
    env: labEnvironment,
    stdin: "pipe",
    stdout: "pipe",
  });
  const arrivals: Arrival[] = [];
  let onMark = () => {};
  const { promise: ready, resolve } = Promise.withResolvers<void>();
  onMark = resolve;
  void (async () => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      const lines = (text + decoder.decode(chunk, { stream: true })).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) {
        if (line === MARK) onMark();
        else arrivals.push(JSON.parse(line));
      }
    }
  })();
  await ready;
  return {
    async arrivals() {
      const { promise, resolve } = Promise.withResolvers<void>();
      onMark = resolve;
      child.stdin.write("\n");
      child.stdin.flush();
      await promise;
      return arrivals;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** The line behind all that has arrived before it was asked for, and before anything has. */
const MARK = "until here";

/** linux/if_packet.h, linux/if_ether.h, asm-generic/sockios.h */
const AF_PACKET = 17;
const SOCK_DGRAM_NONBLOCK_CLOEXEC = 2 | 0x800 | 0x80000;
const ETH_P_ALL = 0x0003;
const SIOCGSTAMPNS = 0x8907;
const SOL_SOCKET = 1;
const SO_RCVBUFFORCE = 33;
const RECEIVE_BUFFER_BYTES = 64 * 2 ** 20;

/** struct sockaddr_ll: where the kind of a packet is, and that of those which leave. */
const SOCKADDR_BYTES = 20;
const KIND_AT = 10;
const PACKET_OUTGOING = 4;

const NEXT_HEADER_TCP = 6;
const [SYN, ACK] = [0x02, 0x10];
const POLL_MS = 10;

/** Describes a packet; null if it is neither IPv6 nor IPv4. */
function describe(packet: Uint8Array, atMs: number): Arrival | null {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const version = (packet[0] ?? 0) >>> 4;
  const about =
    version === 6
      ? {
          to: formatIp(ipv6FromBytes(packet.subarray(24, 40))),
          hopLimit: packet[7] ?? 0,
          ...{ protocol: packet[6], length: 40 },
        }
      : {
          to: packet.subarray(16, 20).join("."),
          hopLimit: packet[8] ?? 0,
          ...{ protocol: packet[9], length: 4 * ((packet[0] ?? 0) & 15) },
        };
  if (version !== 6 && version !== 4) return null;
  const { to, hopLimit, protocol, length } = about;
  const flags = packet[length + 13] ?? 0;
  if (protocol !== NEXT_HEADER_TCP || (flags & (SYN | ACK)) !== SYN) return { atMs, to, hopLimit };
  const id = `${view.getUint16(length)} ${view.getUint32(length + 4)}`;
  return { atMs, to, hopLimit, syn: { port: view.getUint16(length + 2), id } };
}

if (import.meta.main) {
  const libc = loadLibc({
    ioctl: { args: [C.int, C.long, C.pointer], returns: C.int },
    recvfrom: { args: [C.int, C.pointer, C.size, C.int, C.pointer, C.pointer], returns: C.long },
    setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.int], returns: C.int },
    socket: { args: [C.int, C.int, C.int], returns: C.int },
  });
  // All protocols, in network byte order.
  const socket = libc.socket(AF_PACKET, SOCK_DGRAM_NONBLOCK_CLOEXEC, ETH_P_ALL << 8);
  if (socket < 0) throw new Error(`socket(AF_PACKET): errno ${libc.errno()}`);
  const room = Int32Array.of(RECEIVE_BUFFER_BYTES);
  libc.setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, addressOf(room), room.byteLength);
  const packet = new Uint8Array(2048);
  const from = new Uint8Array(SOCKADDR_BYTES);
  const fromBytes = new Int32Array(1);
  const time = new BigInt64Array(2);
  const readAll = () => {
    const lines: string[] = [];
    for (;;) {
      fromBytes[0] = SOCKADDR_BYTES;
      const at = [addressOf(packet), addressOf(from), addressOf(fromBytes)] as const;
      const length = Number(libc.recvfrom(socket, at[0], packet.length, 0, at[1], at[2]));
      if (length < 0) break;
      libc.ioctl(socket, SIOCGSTAMPNS, addressOf(time));
      const atMs = Number(time[0]) * 1000 + Number(time[1]) / 1e6;
      const arrival =
        from[KIND_AT] === PACKET_OUTGOING ? null : describe(packet.subarray(0, length), atMs);
      if (arrival !== null) lines.push(`${JSON.stringify(arrival)}\n`);
    }
    if (lines.length > 0) process.stdout.write(lines.join(""));
  };
  // The first question for a time makes the kernel stamp what comes.
  libc.ioctl(socket, SIOCGSTAMPNS, addressOf(time));
  setInterval(readAll, POLL_MS);
  process.stdin.on("data", () => {
    readAll();
    process.stdout.write(`${MARK}\n`);
  });
  process.stdout.write(`${MARK}\n`);
}
