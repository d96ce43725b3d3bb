/** The turn of a run: its slot, and how long it waits for that and for others who send to the same target. */
import type { Call } from "../api/endpoint.ts";
import { ApiError, clientGone } from "../api/errors.ts";
import { oneOf, shape } from "../api/schemas.ts";
import { type Departure, SYN_PAUSE_MS } from "../gate/bounds.ts";
import type { FairSlots } from "../gate/fair-slots.ts";
import type { Caller } from "../gate/gate.ts";
import type { Services } from "./services.ts";

/** Milliseconds that a run may wait for a slot, and that its SYNs may wait for those of others to the same port. */
export const MAX_TURN_MS = 20_000;

/** A wait that is worth telling, in milliseconds. */
const WORTH_TELLING_MS = 1_000;

/** SYNs and connections to a port in a second, over all clients. */
const SYNS_PER_SECOND = 1000 / SYN_PAUSE_MS;

const BUSY = `A port gets ${SYNS_PER_SECOND} SYNs a second, and those of other measurements come before yours`;

/** The error of a run whose packets would wait, or have waited, for too long. */
export const tooBusy = (retryAfterSeconds: number) =>
  new ApiError("TOO_MANY_PROBES", { limit: SYNS_PER_SECOND, retryAfterSeconds }, BUSY);

/** Most runs end within seconds. */
const RETRY_AFTER_SECONDS = 2;

/** The error of a run for which there is no slot, with the reason. */
export const noSlot = ({ limit }: Pick<FairSlots, "limit">, reason: string) =>
  new ApiError("TOO_MANY_PROBES", { limit, retryAfterSeconds: RETRY_AFTER_SECONDS }, reason);

/** The event of a run that has to wait. */
export const waitingEvent = shape("Waiting", "A run that has to wait.", () => ({
  for: oneOf(
    ["slot", "target"],
    "Whether it waits for a probe slot, or for its turn at the port or network of the target.",
  ),
}));

/**
 * Takes a slot, for which the client may have to wait, and returns the function that gives it back.
 *
 * @param noun what the slots are for, in the words of the message
 * @throws ApiError TOO_MANY_PROBES
 */
export async function takeSlot(
  slots: FairSlots,
  { client, signal }: Pick<Call, "client" | "signal">,
  noun: string,
  longestMs?: number,
  onWait?: () => void,
): Promise<() => void> {
  const release = await slots.take(client, signal, longestMs, onWait);
  if (release !== null) return release;
  if (signal.aborted) throw clientGone();
  const { running, limit } = slots;
  const rest = running < limit ? ", and the others are kept for other clients" : "";
  throw noSlot(slots, `The server is busy: ${running} of ${limit} ${noun} are running${rest}`);
}

/**
 * Takes a probe slot for a run, and makes the caller for whom its packets leave.
 *
 * @throws ApiError TOO_MANY_PROBES
 */
export async function takeTurn(
  { probeSlots, gate }: Pick<Services, "probeSlots" | "gate">,
  call: Pick<Call, "client" | "signal" | "onEvent">,
) {
  const { client, onEvent } = call;
  const askedMs = performance.now();
  const onWait = () => onEvent?.("waiting", { for: "slot" });
  const release = await takeSlot(probeSlots, call, "measurements", MAX_TURN_MS, onWait);
  let waitedMs = performance.now() - askedMs;
  let announced: Timer | undefined;
  const caller: Caller = {
    client,
    onWaiting() {
      announced = setTimeout(() => onEvent?.("waiting", { for: "target" }), WORTH_TELLING_MS);
    },
    onWaited(ms) {
      clearTimeout(announced);
      waitedMs += ms;
    },
  };
  return {
    caller,
    /**
     * Announces the SYNs and connections of the run to a port, which take some milliseconds if they do not wait.
     *
     * @throws ApiError TOO_MANY_PROBES if they would have to wait for too long
     */
    expect(departure: Departure, count: number, longestMs: number): void {
      const overMs = gate.expect(departure, caller, count) - longestMs - MAX_TURN_MS;
      if (overMs > 0) throw tooBusy(Math.ceil(overMs / 1000));
    },
    /** The milliseconds that the run has waited, if they are worth telling. */
    waited: () => waitedMs >= WORTH_TELLING_MS && { waitedMs: Math.round(waitedMs) },
    /** Gives the slot back. */
    [Symbol.dispose](): void {
      clearTimeout(announced);
      gate.forget(caller);
      if (waitedMs >= WORTH_TELLING_MS) gate.waited(client, waitedMs);
      release();
    },
  };
}
