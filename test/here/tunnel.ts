import { closeSync } from "node:fs";
import { addressOf, C, loadLibc } from "../../src/platform/libc.ts";
import { insideNamespace } from "../lab/namespace.ts";
import { openTun } from "../lab/tun.ts";

const MAX_PACKET_BYTES = 2048;
const POLL_MS = 2;

/** A point-to-point link: a TUN device of the same name in two namespaces, until it is disposed of. */
export function startTunnel(device: string, namespaces: readonly [string, string]): Disposable {
  const libc = loadLibc({
    read: { args: [C.int, C.pointer, C.size], returns: C.long },
    write: { args: [C.int, C.pointer, C.size], returns: C.long },
  });
  const [near, far] = namespaces.map((name) => insideNamespace(name, () => openTun(device)));
  if (near === undefined || far === undefined) throw new Error("a tunnel has two ends");
  const buffer = new Uint8Array(new ArrayBuffer(MAX_PACKET_BYTES));
  const carry = (from: number, to: number) => {
    for (;;) {
      const bytes = Number(libc.read(from, addressOf(buffer), buffer.length));
      if (bytes <= 0) return;
      libc.write(to, addressOf(buffer), bytes);
    }
  };
  const timer = setInterval(() => {
    carry(near, far);
    carry(far, near);
  }, POLL_MS);
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      closeSync(near);
      closeSync(far);
    },
  };
}
