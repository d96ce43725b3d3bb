/**
 * The thread of a simulated internet: it reads packets from the device, and writes each answer when
 * its time has come. It never returns to its event loop before it is told to end, so that nothing
 * but the kernel decides when it runs.
 */
import { addressOf, C, loadLibc } from "../../src/platform/libc.ts";
import type { InternetDescription } from "./internet-description.ts";
import { ProbeLog } from "./probe-log.ts";
import { createSimulation } from "./simulation.ts";

declare const self: Worker;

/** The input of the thread; the thread that opened the descriptors still owns them. */
export type WorkerTask = {
  readonly description: InternetDescription;
  /** The other end of the TUN device. */
  readonly tun: number;
  /** Ends the thread when it becomes readable. */
  readonly wake: number;
  readonly log: SharedArrayBuffer;
};

/** bits/time.h, poll.h, sys/prctl.h, sched.h */
const CLOCK_MONOTONIC = 1;
const POLLIN = 1;
const POLLFD_BYTES = 8;
const EVENTS_AT = 4;
const REVENTS_AT = 6;
const PR_SET_TIMERSLACK = 29;
const SCHED_FIFO_RESET_ON_FORK = 1 | 0x40000000;

const MAX_PACKET_BYTES = 65_535;

const libc = loadLibc({
  clock_gettime: { args: [C.int, C.pointer], returns: C.int },
  ppoll: { args: [C.pointer, C.long, C.pointer, C.pointer], returns: C.int },
  prctl: { args: [C.int, C.long, C.long, C.long, C.long], returns: C.int },
  sched_setscheduler: { args: [C.int, C.int, C.pointer], returns: C.int },
  read: { args: [C.int, C.pointer, C.size], returns: C.long },
  write: { args: [C.int, C.pointer, C.size], returns: C.long },
});

/** Seconds and nanoseconds. */
const timespec = new BigInt64Array(2);

function nowNs(): number {
  libc.clock_gettime(CLOCK_MONOTONIC, addressOf(timespec));
  return Number(timespec[0]) * 1e9 + Number(timespec[1]);
}

/** Packets waiting for their time, the next one last; of equal times the first added is first. */
class Schedule {
  readonly #waiting: { readonly dueNs: number; readonly packet: Uint8Array }[] = [];

  /** When the next packet is due; infinity for none. */
  get nextNs(): number {
    return this.#waiting.at(-1)?.dueNs ?? Number.POSITIVE_INFINITY;
  }

  add(dueNs: number, packet: Uint8Array): void {
    let low = 0;
    let high = this.#waiting.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#waiting[middle]?.dueNs ?? 0) > dueNs) low = middle + 1;
      else high = middle;
    }
    this.#waiting.splice(low, 0, { dueNs, packet });
  }

  take(): Uint8Array | undefined {
    return this.#waiting.pop()?.packet;
  }
}

function serve({ description, tun, wake, log: memory }: WorkerTask): void {
  const simulate = createSimulation(description);
  const log = new ProbeLog(memory);
  const schedule = new Schedule();
  const buffer = new Uint8Array(new ArrayBuffer(MAX_PACKET_BYTES));
  const timeout = new BigInt64Array(2);
  const pollfds = new DataView(new ArrayBuffer(2 * POLLFD_BYTES));
  for (const [index, descriptor] of [wake, tun].entries()) {
    pollfds.setInt32(index * POLLFD_BYTES, descriptor, true);
    pollfds.setInt16(index * POLLFD_BYTES + EVENTS_AT, POLLIN, true);
  }
  const isReadable = (index: number) =>
    pollfds.getInt16(index * POLLFD_BYTES + REVENTS_AT, true) > 0;

  /** Waits until something is readable or an answer is due. */
  const wait = () => {
    const waitNs = Math.max(0, schedule.nextNs - nowNs());
    const hasEnd = Number.isFinite(waitNs);
    if (hasEnd) {
      timeout[0] = BigInt(Math.floor(waitNs / 1e9));
      timeout[1] = BigInt(Math.floor(waitNs % 1e9));
    }
    libc.ppoll(addressOf(pollfds), 2, hasEnd ? addressOf(timeout) : null, null);
  };

  /** Reads one packet and plans what it brings about; false when there is none. */
  const receive = () => {
    const length = Number(libc.read(tun, addressOf(buffer), buffer.length));
    if (length <= 0) return false;
    const arrivedNs = nowNs();
    const bytes = buffer.subarray(0, length);
    log.write(bytes, arrivedNs);
    for (const { afterMs, packet } of simulate(bytes, arrivedNs / 1e6)) {
      schedule.add(arrivedNs + afterMs * 1e6, packet);
    }
    return true;
  };

  /** Writes every answer that is due; one that the kernel refuses is a packet lost. */
  const answer = () => {
    while (schedule.nextNs <= nowNs()) {
      const packet = schedule.take();
      if (packet) libc.write(tun, addressOf(packet), packet.length);
    }
  };

  do {
    wait();
    answer();
    while (receive()) answer();
  } while (!isReadable(0));
}

/**
 * Lets the kernel wake this thread to the microsecond, and before all ordinary ones where this
 * process may ask for that (root may): on a busy machine answers are then 0.1 ms late, not 5 ms.
 */
function preferPunctuality(): void {
  libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  libc.sched_setscheduler(0, SCHED_FIFO_RESET_ON_FORK, addressOf(new Int32Array([1])));
}

self.onmessage = ({ data }: MessageEvent<WorkerTask>) => {
  preferPunctuality();
  self.postMessage("ready");
  serve(data);
  process.exit(0);
};
