import type { Call } from "../../api/endpoint.ts";
import { integerParameter } from "../../api/parameters.ts";
import type { Names } from "../hop-names.ts";
import { named, nameOf, openPathRun, pathParameters } from "../hops.ts";
import { PROBING, protocolParameters, TRACE_SYNS, targetParameter } from "../run.ts";
import { endpoint, type Services } from "../services.ts";
import { certainHops, type TraceHop } from "../trace/responses.ts";
import { waitingEvent } from "../turn.ts";
import { mtr as runMtr } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import {
  MAX_ROUNDS,
  MAX_ROUNDS_ALONE,
  type MtrHop,
  type MtrRound,
  mtrResult,
  mtrRound,
} from "./result.ts";
import { type MtrReport, Row } from "./rounds.ts";
import { mtrVerdict } from "./verdict.ts";

/** `GET /mtr/{target}`: loss and times of every hop on the path to the target. */
export const mtr = endpoint({
  path: "/mtr/{target}",
  operationId: "mtr",
  summary: "Loss and round-trip times of every hop (beta)",
  description:
    "Traces the target, and then probes every hop once a round. Where probes of a hop were lost, `cause` says whether the path loses them or the hop does not answer all, as far as the numbers prove it.",
  ...PROBING,
  parameters: {
    target: targetParameter,
    rounds: integerParameter({
      minimum: 1,
      maximum: MAX_ROUNDS,
      maximumAlone: MAX_ROUNDS_ALONE,
      default: 10,
      description: "Probes of each hop.",
      example: 10,
      option: { flags: "-c, --rounds" },
      label: "Rounds",
    }),
    intervalMs: integerParameter({
      minimum: 100,
      maximum: 1000,
      default: 200,
      description: "Milliseconds between two rounds.",
      example: 200,
      option: { flags: "-i, --interval", help: "time between two rounds" },
      isInSeconds: true,
      label: "Interval in ms",
    }),
    ...pathParameters,
    ...protocolParameters,
  },
  response: mtrResult,
  example,
  events: () => ({ waiting: waitingEvent(), round: mtrRound() }),
  async handle({ rounds, intervalMs, maxHops, flowLabel: label, ...probed }, call, services) {
    const { target } = probed;
    const longestMs = (rounds - 1) * intervalMs + services.config.probeTimeoutMs;
    const syns = TRACE_SYNS + rounds;
    using run = await openPathRun({ ...probed, syns }, longestMs, call, services);
    const { names } = run;
    const shown = (hops: readonly MtrHop[]) =>
      hops.map((hop) => withNames(hop, names.names, services));
    let counted = 0;
    const tell = run.onEvent && roundEvents(run.onEvent);
    const traced: TraceHop[] = [];
    const onHop = (hop: TraceHop) => {
      traced[hop.hop - 1] = hop;
      if (hop.ip) names.ask(hop.ip);
      tell?.(0, shown(certainHops(traced).map(unasked)));
    };
    const onRound = (round: number, report: MtrReport) => {
      counted = round;
      for (const { ip } of report.hops.flatMap((hop) => hop.addresses)) names.ask(ip);
      const hops = shown(report.hops);
      const { reached, toTarget } = report;
      tell?.(round, hops, mtrVerdict(hops, { reached, toTarget }, report));
    };
    const request = { ...run.request, rounds, intervalMs, maxHops, flowLabel: label };
    const options = { ...run.options, onHop, onRound, mayGoOn: call.mayGoOn };
    const outcome = await run.outcome(runMtr(run.prober, request, options));
    const { reached, error, toTarget, paths, otherRounds, flowLabel } = outcome;
    await names.known();
    const hops = shown(outcome.hops);
    const end = { reached, ...(error && { error }), toTarget };
    const others = otherRounds > 0 && { otherRounds };
    const port = { answers: outcome.answers, error: end.error };
    const known = await run.details(outcome, mtrVerdict(hops, end, outcome), port);
    const details = { ...end, paths, ...others, ...known, flowLabel };
    const done = run.budget.enough.aborted ? counted : rounds;
    return { target, ip: run.ip, rounds: done, hops, details };
  },
});

/** The row of a hop before the first round, with the time of its answer to the trace, which does not count. */
function unasked({ hop, ip, rtt, details: { zone } = {} }: TraceHop): MtrHop {
  const row = new Row();
  if (rtt !== null) row.times.add(rtt);
  return { ...row.describe(hop, "unclear"), ip, ...(zone && { details: { zone } }) };
}

function withNames(hop: MtrHop, names: Names, services: Services): MtrHop {
  const addresses = hop.addresses.map((each) => ({ ...each, hostname: nameOf(each.ip, names) }));
  return { ...named(hop, names, services), addresses };
}

/** Makes a function that sends the changes of each round: rows, and in each row the addresses that answered or got a name. */
function roundEvents(onEvent: NonNullable<Call["onEvent"]>) {
  const told = new Map<number, MtrHop>();
  return (round: number, rows: readonly MtrHop[], verdict?: MtrRound["verdict"]) => {
    const hops = rows.flatMap((row) => {
      const before = told.get(row.hop);
      told.set(row.hop, row);
      const addresses = row.addresses.filter(
        ({ share: _, ...address }) =>
          !before?.addresses.some(({ share, ...other }) => Bun.deepEquals(other, address)),
      );
      const isSame = Bun.deepEquals({ ...before, addresses }, { ...row, addresses });
      return isSame && addresses.length === 0 ? [] : [{ ...row, addresses }];
    });
    const length = rows.at(-1)?.hop ?? 0;
    // A dropped row is sent again when it comes back.
    for (const hop of told.keys()) if (hop > length) told.delete(hop);
    if (hops.length > 0) onEvent("round", { round, length, hops, ...(verdict && { verdict }) });
  };
}
