import { readdirSync } from "node:fs";
import { addressOf, C, errnoName, loadLibc, SystemError } from "./libc.ts";

/** socket(7) on Linux, alike on x86_64 and arm64. */
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;

/** bpf(4): `ret #k`. */
const BPF_RETURN_CONSTANT = 0x06;

/** Bytes of a `struct sock_fprog`, and of a `struct sock_filter` that it points to. */
const PROGRAM_BYTES = 16;
const INSTRUCTION_BYTES = 8;

/** Descriptors of this process's sockets that listen for connections. */
export function listeningSockets(): ReadonlySet<number> {
  const libc = loadSocketOptions();
  const value = new Int32Array(1);
  const length = new Uint32Array(1);
  const listens = (descriptor: number) => {
    length[0] = value.byteLength;
    const { getsockopt } = libc;
    return (
      getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, addressOf(value), addressOf(length)) ===
        0 && value[0] === 1
    );
  };
  return new Set(readdirSync("/proc/self/fd").map(Number).filter(listens));
}

/**
 * Hands all new connections of a port that several sockets share (SO_REUSEPORT) to one of them.
 *
 * @param descriptor any socket of the group
 * @param index the chosen one's place in the order in which they began to listen; where the group
 *   has become smaller than that, the kernel spreads connections again
 * @throws SystemError
 */
export function steerConnections(descriptor: number, index: number): void {
  const libc = loadSocketOptions();
  // Both in one buffer, which stays where it is for as long as the call has it.
  const program = new DataView(new ArrayBuffer(PROGRAM_BYTES + INSTRUCTION_BYTES));
  program.setUint16(0, 1, true);
  program.setBigUint64(8, BigInt(addressOf(program) + PROGRAM_BYTES), true);
  program.setUint16(PROGRAM_BYTES, BPF_RETURN_CONSTANT, true);
  program.setUint32(PROGRAM_BYTES + 4, index, true);
  const result = libc.setsockopt(
    descriptor,
    SOL_SOCKET,
    SO_ATTACH_REUSEPORT_CBPF,
    addressOf(program),
    PROGRAM_BYTES,
  );
  if (result !== 0) throw new SystemError("setsockopt", errnoName(libc.errno()));
}

function loadSocketOptions() {
  return loadLibc({
    getsockopt: { args: [C.int, C.int, C.int, C.pointer, C.pointer], returns: C.int },
    setsockopt: { args: [C.int, C.int, C.int, C.pointer, C.uint], returns: C.int },
  });
}
