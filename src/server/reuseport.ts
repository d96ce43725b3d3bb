import { readdirSync } from "node:fs";
import { addressOf, errnoName, libc, SystemError } from "../platform/libc.ts";
import { BPF, bpfOption, encodeBpf, OPTION } from "../platform/linux.ts";

/** Descriptors of this process's sockets that listen for connections. */
export function listeningSockets(): ReadonlySet<number> {
  const value = new Int32Array(1);
  const length = new Uint32Array(1);
  const listens = (descriptor: number) => {
    length[0] = value.byteLength;
    const status = libc().getsockopt(
      descriptor,
      ...OPTION.acceptsConnections,
      addressOf(value),
      addressOf(length),
    );
    return status === 0 && value[0] === 1;
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
  const program = bpfOption(encodeBpf([[BPF.returnConstant, index]]));
  const result = libc().setsockopt(
    descriptor,
    ...OPTION.attachReusePortFilter,
    program,
    program.length,
  );
  if (result !== 0) throw new SystemError("setsockopt", errnoName(libc().errno()));
}
