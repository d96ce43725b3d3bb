import { type Clock, pause, systemClock } from "../util/clock.ts";
import { Bounds, type Departure, portKey, RETRY_MS, SYN_PAUSE_MS } from "./bounds.ts";
import { FairSlots } from "./fair-slots.ts";

/** A run, or another sender of packets and connections. */
export interface Caller {
  /** The client whose share it uses; the runs of one client share it. */
  readonly client: string;
  /** Called when its first departure begins to wait for a bound. */
  readonly onWaiting?: (() => void) | undefined;
  /** Called when none of its departures waits any more, with the milliseconds since `onWaiting`. */
  readonly onWaited?: ((ms: number) => void) | undefined;
}

/** A departure, and its caller. */
export interface Leaving extends Departure {
  /** Absent if there is only one client. */
  readonly caller?: Caller | undefined;
}

const NOBODY: Caller = { client: "" };

/**
 * The one way out: everything that leaves this machine for a target asks `mayLeave`. Departures that must wait for a
 * bound take turns by client, first at their port and then at their network, so that no client waits for all packets
 * of another.
 */
export class Gate {
  readonly bounds = new Bounds();
  readonly #clock: Clock;
  /** The turns at each port and network that has waiting departures. */
  readonly #turns = new Map<string, FairSlots>();
  /** The SYNs and connections that callers have announced and not sent yet, by port. */
  readonly #expected = new Map<string, Map<Caller, number>>();
  /** The milliseconds that runs of each client have waited since the last `takeLongestWait`. */
  #waitedMs = new Map<string, number>();
  /** The callers with waiting departures: the number of these, and the start of the wait. */
  readonly #waiting = new Map<Caller, { count: number; readonly sinceMs: number }>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /**
   * Counts a departure and returns true if it may leave now. Otherwise returns a promise: of true when it may leave, or
   * of false if the signal aborts before.
   */
  mayLeave(leaving: Leaving, signal: AbortSignal): true | Promise<boolean> {
    const mustQueue =
      this.#turns.size > 0 && this.bounds.of(leaving).some(({ key }) => this.#turns.has(key));
    return (!mustQueue && this.#take(leaving)) || this.#wait(leaving, signal);
  }

  /**
   * Announces SYNs and connections of a caller to a port, until `forget`. Returns the milliseconds until all of them
   * have left, if clients with announced departures to this port take turns.
   */
  expect(departure: Departure, caller: Caller, count: number): number {
    const callers = this.#expected.getOrInsertComputed(portKey(departure) ?? "", () => new Map());
    callers.set(caller, (callers.get(caller) ?? 0) + count);
    const byClient = new Map<string, number>();
    for (const [{ client }, expected] of callers) {
      byClient.set(client, (byClient.get(client) ?? 0) + expected);
    }
    const own = byClient.get(caller.client) ?? 0;
    const turns = byClient.values().reduce((sum, expected) => sum + Math.min(expected, own), 0);
    return turns * SYN_PAUSE_MS;
  }

  /** Expects nothing more of a caller. */
  forget(caller: Caller): void {
    for (const [port, callers] of this.#expected) {
      if (callers.delete(caller) && callers.size === 0) this.#expected.delete(port);
    }
  }

  /** Counts a departure that did not ask, such as a SYN that the kernel sends again. */
  left(departure: Departure): void {
    this.bounds.note(departure, this.#clock.nowMs());
  }

  /** Notes that a SYN has reached its port. */
  reached(departure: Departure): void {
    this.bounds.reached(departure, this.#clock.nowMs());
  }

  /** Adds the time that a run has waited for a slot or for others, in milliseconds. */
  waited(client: string, ms: number): void {
    this.#waitedMs.set(client, (this.#waitedMs.get(client) ?? 0) + ms);
  }

  /** The client whose runs have waited longest since the last call, and the milliseconds; undefined if none has. */
  takeLongestWait(): readonly [client: string, ms: number] | undefined {
    const waitedMs = this.#waitedMs;
    this.#waitedMs = new Map();
    return [...waitedMs].toSorted(([, a], [, b]) => b - a)[0];
  }

  /** The numbers of callers that wait, and of ports with announced departures. */
  counts() {
    return { waiting: this.#waiting.size, expected: this.#expected.size };
  }

  #take(leaving: Leaving): boolean {
    if (!this.bounds.take(leaving, this.#clock.nowMs())) return false;
    const { caller = NOBODY } = leaving;
    const callers = this.#expected.get(portKey(leaving) ?? "");
    const expected = callers?.get(caller);
    if (expected) callers?.set(caller, expected - 1);
    return true;
  }

  async #wait(leaving: Leaving, signal: AbortSignal): Promise<boolean> {
    const { caller = NOBODY } = leaving;
    const bounds = this.bounds.of(leaving);
    using held = new DisposableStack();
    this.#noteWait(caller, 1);
    held.defer(() => this.#noteWait(caller, -1));
    for (const { bound, key } of bounds) {
      const slots = this.#turns.getOrInsertComputed(key, () => new FairSlots(1));
      held.defer(() => this.#turns.get(key)?.isIdle && this.#turns.delete(key));
      const turn = await slots.wait(caller.client, signal);
      if (turn === null) return false;
      held.defer(turn);
      const waitMs = () => bound.waitMs(key, this.#clock.nowMs());
      for (let ms = waitMs(); ms > 0 && !signal.aborted; ms = waitMs())
        await pause(this.#clock, ms, signal);
    }
    // Its port may have another distance by now.
    while (!signal.aborted && !this.#take(leaving)) await pause(this.#clock, RETRY_MS, signal);
    return !signal.aborted;
  }

  #noteWait(caller: Caller, change: 1 | -1): void {
    const nowMs = this.#clock.nowMs();
    const waiting = this.#waiting.getOrInsertComputed(caller, () => ({ count: 0, sinceMs: nowMs }));
    waiting.count += change;
    if (change === 1 && waiting.count === 1) caller.onWaiting?.();
    if (waiting.count > 0) return;
    this.#waiting.delete(caller);
    caller.onWaited?.(nowMs - waiting.sinceMs);
  }
}
