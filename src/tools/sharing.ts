import type { Call } from "../api/endpoint.ts";
import { clientGone } from "../api/errors.ts";
import type { Gate } from "../gate/gate.ts";

/** A run that one caller or several wait for. */
interface SharedRun<Row, Outcome> {
  readonly outcome: Promise<Outcome>;
  readonly controller: AbortController;
  /** Rows reported so far, for callers that join later. */
  readonly rows: Row[];
  /** One for each caller. */
  readonly listeners: Set<(row: Row) => void>;
  /** False if it is too late for others to join. */
  readonly isOpen: () => boolean;
}

/**
 * Makes a function that joins a run, or starts it if none with its key is under way. So many callers cost a target no
 * more than one does.
 *
 * The run's signal aborts when the last caller has the outcome or has gone. A caller whose signal aborts gets
 * `aborted`. Others join a run only while the `isOpen` of the caller who started it returns true.
 */
export function createSharing<Row, Outcome>(aborted: Outcome) {
  const running = new Map<string, SharedRun<Row, Outcome>>();

  return async (
    key: string,
    start: (signal: AbortSignal, onRow: (row: Row) => void) => Promise<Outcome>,
    signal?: AbortSignal,
    onRow: (row: Row) => void = () => {},
    isOpen: () => boolean = () => true,
  ): Promise<Outcome> => {
    if (signal?.aborted) return aborted;
    const begin = (): SharedRun<Row, Outcome> => {
      const controller = new AbortController();
      const rows: Row[] = [];
      const listeners = new Set<(row: Row) => void>();
      const tell = (row: Row) => {
        rows.push(row);
        for (const listener of listeners) listener(row);
      };
      const outcome = start(controller.signal, tell).finally(() => forget(run));
      const run = { outcome, controller, rows, listeners, isOpen };
      running.set(key, run);
      return run;
    };
    const forget = (run: SharedRun<Row, Outcome>) => {
      if (running.get(key) === run) running.delete(key);
    };
    const found = running.get(key);
    const run = found?.isOpen() ? found : begin();
    const { promise: gone, resolve } = Promise.withResolvers<Outcome>();
    const leave = () => {
      signal?.removeEventListener("abort", leave);
      run.listeners.delete(listener);
      if (run.listeners.size === 0) {
        forget(run);
        run.controller.abort();
      }
      resolve(aborted);
    };
    const listener = (row: Row) => onRow(row);
    signal?.addEventListener("abort", leave);
    run.rows.forEach(listener);
    run.listeners.add(listener);
    try {
      return await Promise.race([run.outcome, gone]);
    } finally {
      leave();
    }
  };
}

/** An event of a run: its name and data. */
type Event = Parameters<NonNullable<Call["onEvent"]>>;

/**
 * Makes a function that shares the runs of an endpoint among the calls with the same key whose packets leave through
 * the same gate: their document, and all of their events. See `createSharing`.
 *
 * @throws ApiError if the client goes away
 */
export function createRunSharing<Outcome>() {
  const newSharing = () => createSharing<Event, Outcome | null>(null);
  const underWay = new WeakMap<Gate, ReturnType<typeof newSharing>>();

  return async (
    gate: Gate,
    key: string,
    call: Call,
    start: (shared: Call) => Promise<Outcome>,
    isOpen?: () => boolean,
  ): Promise<Outcome> => {
    const share = underWay.getOrInsertComputed(gate, newSharing);
    const outcome = await share(
      key,
      (signal, onRow) => start({ ...call, signal, onEvent: (...event) => onRow(event) }),
      call.signal,
      (event) => call.onEvent?.(...event),
      isOpen,
    );
    if (outcome === null) throw clientGone();
    return outcome;
  };
}
