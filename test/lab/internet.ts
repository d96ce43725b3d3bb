import { closeSync } from "node:fs";
import { addressOf, C, loadLibc } from "../../src/platform/libc.ts";
import type { InternetDescription } from "./internet-description.ts";
import type { WorkerTask } from "./internet-worker.ts";
import { type Probe, ProbeLog } from "./probe-log.ts";
import { runIp } from "./run.ts";
import { openTun } from "./tun.ts";

/** A running simulated internet. */
export type Internet = AsyncDisposable & {
  /** The test host's address on it. */
  readonly source: string;
  /** The TUN device that leads to it. */
  readonly device: string;
  /** How many probes have arrived. */
  count(): number;
  /** The probes that have arrived, in order; of very many only the newest. */
  seen(): Probe[];
  /** Sends the test host a packet that no probe asked for, IPv6 header included. */
  inject(packet: Uint8Array): void;
  /** Removes device, routes and thread, and returns what `seen()` would. */
  stop(): Promise<Probe[]>;
};

const DEFAULT_SOURCE = "2001:db8::1";
const DEFAULT_MTU = 1500;

/** Packets that may wait for the simulation: more than a test sends at once. */
const QUEUE_PACKETS = 10_000;

/** The value that makes an eventfd readable. */
const WAKE_UP = new BigUint64Array([1n]);

let internetsStarted = 0;

/**
 * Starts a simulated internet behind a TUN device of this network namespace and routes the described
 * destinations into it. It runs on a thread of its own, whose clock the test's event loop does not
 * disturb; answers leave at their time or up to about a tenth of a millisecond later.
 */
export async function startInternet(description: InternetDescription): Promise<Internet> {
  const { source = DEFAULT_SOURCE, mtu = DEFAULT_MTU, destinations } = description;
  const libc = loadLibc({
    eventfd: { args: [C.uint, C.int], returns: C.int },
    write: { args: [C.int, C.pointer, C.size], returns: C.long },
  });
  const device = `internet${++internetsStarted}`;
  const log = new ProbeLog();
  const tun = openTun(device);
  try {
    const commands = [
      `link set dev ${device} addrgenmode none`,
      `link set dev ${device} mtu ${mtu} txqueuelen ${QUEUE_PACKETS} up`,
      `addr add ${source}/128 dev ${device} nodad`,
      ...destinations.map(({ to }) => `route add ${to} dev ${device} src ${source}`),
    ];
    await runIp(commands);
  } catch (error) {
    closeSync(tun);
    throw error;
  }
  const wake = libc.eventfd(0, 0);
  let isOpen = true;

  const worker = new Worker(new URL("./internet-worker.ts", import.meta.url).href);
  const ready = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let failure: Error | null = null;
  worker.addEventListener("message", () => ready.resolve());
  worker.addEventListener("error", ({ message }) => {
    failure = new Error(`the simulated internet failed: ${message}`);
  });
  worker.addEventListener("close", () => {
    isOpen = false;
    closeSync(wake);
    closeSync(tun);
    ready.reject(failure);
    closed.resolve();
  });
  worker.postMessage({ description, tun, wake, log: log.memory } satisfies WorkerTask);
  await ready.promise;

  const stop = async () => {
    if (isOpen) libc.write(wake, addressOf(WAKE_UP), WAKE_UP.byteLength);
    await closed.promise;
    if (failure) throw failure;
    return log.read();
  };
  return {
    source,
    device,
    count: () => log.count,
    seen: () => log.read(),
    inject: (packet) => {
      if (isOpen) libc.write(tun, addressOf(packet), packet.length);
    },
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop();
    },
  };
}
