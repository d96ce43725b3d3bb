import { addressOf, C, loadLibc } from "../platform/libc.ts";

/** Time and timers as the ICMPv6 module uses them. */
export interface Clock {
  /** Nanoseconds of CLOCK_MONOTONIC: exact for 104 days of uptime, to 2 ns for twice that. */
  nowNs(): number;
  /** Calls back once after a delay in milliseconds; the function returned takes the timer back. */
  after(delayMs: number, callback: () => void): () => void;
}

/** A moment of the wall clock. */
export interface Timespec {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/** Nanoseconds in a millisecond. */
export const NS_PER_MS = 1e6;
const NS_PER_SECOND = 1e9;
const REALTIME = 0;
const MONOTONIC = 1;

/** A reading of the wall clock further from the monotonic one than this is taken again: another thread ran in between. */
const MAX_APART_NS = 10_000;
const MAX_READINGS = 5;

/** A packet does not lie in the socket for longer than this in nanoseconds; a difference above is a step of the wall clock. */
const MAX_AGE_NS = 10 * NS_PER_SECOND;

/** Reads the system's clocks through the C library. */
export class SystemClock implements Clock {
  readonly #libc = loadLibc({
    clock_gettime: { args: [C.int, C.pointer], returns: C.int },
  });
  readonly #timespec = new DataView(new ArrayBuffer(16));
  readonly #address = addressOf(this.#timespec.buffer);

  nowNs(): number {
    const { seconds, nanoseconds } = this.#read(MONOTONIC);
    return seconds * NS_PER_SECOND + nanoseconds;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = setTimeout(callback, Math.ceil(delayMs));
    return () => clearTimeout(timer);
  }

  /** Both clocks at one moment, as nearly as the scheduler allows. */
  readBoth(): { readonly realtime: Timespec; readonly monotonicNs: number } {
    for (let reading = 1; ; reading++) {
      const before = this.nowNs();
      const realtime = this.#read(REALTIME);
      const after = this.nowNs();
      if (after - before <= MAX_APART_NS || reading === MAX_READINGS) {
        return { realtime, monotonicNs: (before + after) / 2 };
      }
    }
  }

  #read(clock: number): Timespec {
    this.#libc.clock_gettime(clock, this.#address);
    const view = this.#timespec;
    return { seconds: readSeconds(view, 0), nanoseconds: view.getUint32(8, true) };
  }
}

/** The seconds of a `struct timespec` at an offset: 64 bits, little-endian, exact as a number. */
export function readSeconds(view: DataView, offset: number): number {
  return view.getInt32(offset + 4, true) * 2 ** 32 + view.getUint32(offset, true);
}

/**
 * The moment of the monotonic clock at which the kernel stamped a packet with the wall clock.
 *
 * The age of the packet is taken from the wall clock, read just after the packet; so a step of the
 * wall clock while the packet was on its way changes nothing. One between the stamp and the reading
 * shows as a negative or huge age, and the reading itself is then the answer.
 */
export function receivedAtNs(stamp: Timespec, realtime: Timespec, monotonicNs: number): number {
  const ageNs =
    (realtime.seconds - stamp.seconds) * NS_PER_SECOND + (realtime.nanoseconds - stamp.nanoseconds);
  return ageNs >= 0 && ageNs <= MAX_AGE_NS ? monotonicNs - ageNs : monotonicNs;
}
