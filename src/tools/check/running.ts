/** The records of a check while it runs, and its questions to other tools. */
import type { Call } from "../../api/endpoint.ts";
import { apiErrorOf } from "../../api/errors.ts";
import { readTexts } from "../../api/parameters.ts";
import { FairSlots } from "../../gate/fair-slots.ts";
import type { Caller } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { pause, systemClock } from "../../util/clock.ts";
import { ENOUGH } from "../budget.ts";
import type { Endpoint, Services } from "../services.ts";
import type { Target } from "../target.ts";
import { type Attempt, byFamily, worked } from "./ledger.ts";
import type { Ended, Seen, Step } from "./result.ts";
import { stepOf, type View, viewsOf } from "./views.ts";

/** The longest time of a check in milliseconds; a step that has not ended by then is skipped. */
export const LONGEST_MS = 20_000;

/** Milliseconds after which the rounds of mtr end, so that their result comes in time. */
const ROUNDS_MS = 16_000;

/** The text of a step that was cut. */
export const OVER = "Not finished in time.";

type Texts = Readonly<Record<string, string>>;

/** Begins a check; it ends when it is disposed of, when the caller has gone, or after `LONGEST_MS`. */
export function beginCheck(
  target: Target,
  port: number,
  call: Call,
  services: Services,
  caller: Caller,
) {
  const limit = abortedBy(call.signal, LONGEST_MS);
  const { signal } = limit;
  const startMs = performance.now();
  const rows: Attempt[] = [];
  const steps: Step[] = [];
  const enough = new AbortController();
  void pause(systemClock, ROUNDS_MS, signal).then(() => enough.abort(ENOUGH));
  const begin = (name: Step["name"], ip: string | null) =>
    call.onEvent?.("begin", { name, ...(ip !== null && { ip }) });
  return {
    ...{ target, port, services, caller, signal, rows, steps },
    name: "name" in target ? target.name : null,
    onEvent: call.onEvent,
    /** Writes down an attempt. */
    add(row: Omit<Attempt, "atMs">, leftMs = performance.now() - row.ms) {
      rows.push({ ...row, atMs: leftMs - startMs });
    },
    isIpv6Heard: () => byFamily(rows)[0].some(worked),
    /** Asks a tool of the table, within the slot of the check. */
    async ask<Result>(tool: Endpoint, texts: Texts, more: Partial<Call> = {}) {
      const values = readTexts(tool.parameters, texts);
      const own = { signal, enough: enough.signal, onEvent: undefined, allowSeconds() {} };
      const within = { ...services, probeSlots: new FairSlots(1) };
      return (await tool.handle(values, { ...call, ...own, ...more }, within)) as Result;
    },
    /** Takes a step, and leaves it out if `run` returns null. Returns false if the step failed. */
    async take(name: Step["name"], ip: string | null, run: () => Promise<Ended | null>) {
      const beganMs = performance.now();
      begin(name, ip);
      const seen = await run().catch((error: unknown): Seen => {
        return { status: "skipped", text: signal.aborted ? OVER : apiErrorOf(error).message };
      });
      if (seen === null) return true;
      const step = stepOf(name, ip, seen, performance.now() - beganMs);
      steps.push(step);
      call.onEvent?.("step", step);
      return step.status !== "fail";
    },
    /** Shows a view of the ledger once its attempts have ended; `why` says why there were none. */
    async show(name: View, ip: string, ended: Promise<unknown>, why = () => OVER) {
      begin(name, ip);
      await ended;
      const view = viewsOf(rows.filter((row) => row.ip === ip)).find((each) => each.name === name);
      const step = view ?? stepOf(name, ip, { status: "skipped", text: why() }, 0);
      if (!view) steps.push(step);
      call.onEvent?.("step", step);
    },
    [Symbol.dispose]: () => limit[Symbol.dispose](),
  };
}

/** A check that runs. */
export type RunningCheck = ReturnType<typeof beginCheck>;
