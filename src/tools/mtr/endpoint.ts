import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import type { Call } from "../../api/endpoint.ts";
import { integerParameter } from "../../api/parameters.ts";
import {
  amount,
  flag,
  ipv6Text,
  list,
  named,
  once,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { round } from "../../util/numbers.ts";
import { mapValues } from "../../util/objects.ts";
import { shareInterval } from "../../util/statistics.ts";
import { firstTrue, formatPercent, plural } from "../../util/text.ts";
import {
  flowLabelNumber,
  hopFields,
  hostname,
  ipOrNull,
  MAX_HOPS,
  openPathRun,
  pathParameters,
  presentAddress,
  presentRow,
  presentTraceError,
  traceError,
} from "../hops.ts";
import { ledgerOf, totalsOf } from "../ledger.ts";
import { hopsText } from "../report.ts";
import {
  PROBING,
  portField,
  protocolParameters,
  runDetailFields,
  runFields,
  targetParameter,
  verdictField,
} from "../run.ts";
import { endpoint, type Services } from "../services.ts";
import { certainHops, type TraceHop } from "../trace/responses.ts";
import example from "./example.json" with { type: "json" };
import { MIN_LOST } from "./loss-cause.ts";
import { MAX_LISTED, type MtrHop, type MtrReport, type Totals } from "./rounds.ts";
import { MAX_TIMES, type Times } from "./times.ts";

/** Rounds of a run for others, and of one for a user who is alone. */
export const MAX_ROUNDS = 100;
export const MAX_ROUNDS_ALONE = 100_000;

const VERDICTS = ["no-loss", "loss", "unclear", "no-reply", "unreachable", "not-sent"] as const;

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
  events: () => ({ round: mtrRound() }),
  async handle({ target, names: wanted, protocol, port: number, ...wish }, call, services) {
    const probed = { target, names: wanted, protocol, port: number };
    const { rounds, intervalMs } = wish;
    const longestMs = (rounds - 1) * intervalMs + services.config.probeTimeoutMs;
    using run = await openPathRun(probed, longestMs, call, services);
    const { names } = run;
    const present = (hops: readonly MtrHop[]) =>
      hops.map((hop) => presentMtrHop(hop, names.names, services));
    let counted = 0;
    const tell = run.onEvent && roundEvents(run.onEvent);
    const traced: TraceHop[] = [];
    const onHop = (hop: TraceHop) => {
      traced[hop.hop - 1] = hop;
      if (hop.address) names.ask(hop.address);
      tell?.(0, present(certainHops(traced).map(unasked)));
    };
    const onRound = (round: number, report: MtrReport) => {
      counted = round;
      for (const { address } of report.hops.flatMap((hop) => hop.addresses)) names.ask(address);
      const [hops, toTarget] = [present(report.hops), presentTotals(report.toTarget)];
      const so = { reached: report.reached, toTarget };
      tell?.(round, hops, mtrVerdict(hops, so, report));
    };
    const outcome = await run.outcome(
      run.engine.mtr({ ...run.request, ...wish }, { ...run.options, onHop, onRound }),
    );
    const { reached, error, flowLabel, otherRounds } = outcome;
    await names.known();
    const hops = present(outcome.hops);
    const toTarget = presentTotals(outcome.toTarget);
    const end = { reached, ...(error && { error: presentTraceError(error) }), toTarget };
    const paths = outcome.paths.map(({ addresses, ...path }) => ({
      ...path,
      addresses: addresses.map((address) => address && formatIpv6(address)),
    }));
    const others = otherRounds > 0 && { otherRounds };
    const port = { state: outcome.state, error: end.error };
    const known = await run.details(outcome, mtrVerdict(hops, end, outcome), port);
    const details = { ...end, paths, ...others, ...known, flowLabel };
    const done = run.budget.enough.aborted ? counted : rounds;
    return { target, ip: run.ip, rounds: done, hops, details };
  },
});

/** The result of repeated probes of every hop. */
export type MtrResult = ValueOf<ReturnType<typeof mtrResult>>;

/** The data of the event after each round. */
export type MtrRound = ValueOf<ReturnType<typeof mtrRound>>;

/** The times of a hop by their names. */
const TIMES: Readonly<Record<keyof Times, string>> = {
  last: "The last round-trip time",
  min: "The least round-trip time",
  avg: "The mean round-trip time",
  max: "The greatest round-trip time",
  stdDev: "The standard deviation",
  jitter: "The mean difference between successive times",
  p50: `The median of the last ${MAX_TIMES} times`,
  p95: `The time that 95 % of the last ${MAX_TIMES} did not exceed,`,
};

const percent = (share: number) => round(share * 100, 2);

function presentTotals({ sent, received, late, errors, unknown, loss }: Totals) {
  return { sent, received, late, errors, unknown, loss: loss === null ? null : percent(loss) };
}

/** The row of a hop before the first round: the answers to the trace do not count. */
function unasked({ hop, address, scopeId }: TraceHop): MtrHop {
  const addresses = address ? [{ address, scopeId, received: 0 }] : [];
  return { hop, ...totalsOf(ledgerOf()), cause: null, addresses, others: 0, times: null };
}

function presentMtrHop(
  { hop, cause, addresses, others, times, ...totals }: MtrHop,
  names: ReadonlyMap<string, string | null>,
  services: Services,
) {
  const { address, scopeId } = addresses[0] ?? { address: null, scopeId: 0 };
  const fields = {
    ...presentTotals(totals),
    cause,
    ...mapValues(TIMES, (_, name) => times && round(times[name], 3)),
    addresses: addresses.map((each) => ({
      ...presentAddress(each.address, names),
      ip: formatIpv6(each.address),
      received: each.received,
      share: percent(each.received / Math.max(1, totals.received)),
    })),
    others,
  };
  return presentRow({ hop, address, scopeId }, names, services, fields);
}

type Row = MtrResult["hops"][number];

/** Sends what each round has changed: rows, and in each row the addresses that answered or got a name. */
function roundEvents(onEvent: NonNullable<Call["onEvent"]>) {
  const told = new Map<number, Row>();
  return (round: number, rows: readonly Row[], verdict?: MtrRound["verdict"]) => {
    const hops = rows.flatMap((row) => {
      const before = told.get(row.hop);
      const known = round === 0 ? { ...row, addresses: [] } : row;
      told.set(row.hop, known);
      const addresses = known.addresses.filter(
        ({ share: _, ...address }) =>
          !before?.addresses.some(({ share, ...other }) => Bun.deepEquals(other, address)),
      );
      const isSame = Bun.deepEquals({ ...before, addresses }, { ...row, addresses });
      return isSame && addresses.length === 0 ? [] : [{ ...row, addresses }];
    });
    // A row that is dropped is told again when it comes back.
    for (let hop = rows.length + 1; told.delete(hop); ) hop++;
    if (hops.length > 0)
      onEvent("round", { round, length: rows.length, hops, ...(verdict && { verdict }) });
  };
}

const probes = (description: string) => whole(description, 0, MAX_ROUNDS);

const percentage = () => z.number().min(0).max(100);

/** The schemas of `presentTotals`. */
const totalFields = () => ({
  sent: probes("Probes that left the service's machine."),
  received: probes("Probes that were answered in time, but not with an error."),
  late: probes("Probes whose answer came after the timeout."),
  errors: probes("Probes that ended with an ICMPv6 error, such as no-route."),
  unknown: probes("Probes whose answer the kernel of the service's machine may have dropped."),
  loss: percentage()
    .nullable()
    .describe("Probes lost, in percent of those whose fate is known; null without any."),
});

const mtrHop = once(() => {
  const address = named("HopAddress", "An address that answered at a hop.", {
    ip: ipv6Text("The address."),
    hostname: hostname(),
    received: probes("Probes that it answered; 0 if it sent errors alone."),
    share: percentage().describe("Its part of the hop's answers, in percent."),
  });
  const fields = {
    ip: ipOrNull("The address that answered most; null if the hop was silent."),
    ...totalFields(),
    cause: z
      .literal(["path", "replies", "unclear", null])
      .describe(
        "Why probes were lost: the target loses them too, the hop does not reply to all because the path behind it loses less, or there are too few to tell; null without loss.",
      ),
    ...mapValues(TIMES, (time) =>
      amount(`${time} in milliseconds; null without an answer.`).nullable(),
    ),
    addresses: list(address, `The most frequent first; at most ${MAX_LISTED}.`),
    others: probes("Probes that further addresses answered."),
  };
  return named("MtrHop", "The statistics of a hop.", hopFields(fields, {}));
});

/** The schema of `mtrVerdict`. */
const mtrVerdictField = () =>
  verdictField(VERDICTS).extend({
    lossAtLeast: percentage().describe("The target's loss, with 95 % confidence."),
    lossAtMost: percentage().describe("Its upper bound."),
    from: whole("The last hop before the loss; absent if unclear.", 0, MAX_HOPS).exactOptional(),
    to: whole("The hop at which the loss has begun.", 1, MAX_HOPS).exactOptional(),
  });

function mtrRound() {
  return named("MtrRound", "What a round has changed.", {
    round: whole("The number of the round; 0 is the trace before the first.", 0, MAX_ROUNDS),
    length: whole("The hops that there are now; drop those behind.", 0, MAX_HOPS),
    hops: list(mtrHop(), "The hops that have changed, each with its addresses that have."),
    verdict: mtrVerdictField()
      .exactOptional()
      .describe("The conclusion so far, without ICMPv6 errors that end the path."),
  });
}

/** The schema of the result. */
export function mtrResult() {
  const path = named("MtrPath", "A path that some rounds took.", {
    rounds: probes("Rounds that took it."),
    reached: flag("Whether the target replied at its end."),
    addresses: list(
      ipOrNull("The hop's address; null if it was silent."),
      "The hops in route order.",
    ),
  });
  return named("MtrResult", "Loss and round-trip times by hop.", {
    ...runFields(),
    rounds: whole("Rounds that count: fewer than wanted if the run was cut short.", 1, MAX_ROUNDS),
    hops: list(mtrHop(), "The hops in route order."),
    details: z.strictObject({
      ...runDetailFields(VERDICTS),
      ...portField(),
      verdict: mtrVerdictField(),
      reached: flag("Whether the target ever replied."),
      toTarget: named("MtrTotals", "The last probe of each round.", totalFields()),
      paths: list(path, `In the order in which they were first taken; at most ${MAX_LISTED}.`),
      otherRounds: probes("Rounds over further paths.").exactOptional(),
      error: traceError().exactOptional(),
      flowLabel: flowLabelNumber(),
    }),
  });
}

type Details = MtrResult["details"];

/** A percentage with as many digits as an estimate deserves. */
const about = (percentage: number) =>
  percentage > 0 && percentage < 1 ? percentage.toPrecision(1) : String(Math.round(percentage));

/** The conclusion, from the statistics of the hops, how the path ends, where loss begins, and if it is an outage. */
export function mtrVerdict(
  hops: MtrResult["hops"],
  { reached, error, toTarget }: Pick<Details, "reached" | "error" | "toTarget">,
  { begin, inARow }: Pick<MtrReport, "begin" | "inARow">,
) {
  const { received, unknown, late, errors } = toTarget;
  const known = toTarget.sent - unknown;
  const lost = known - received;
  const [least, most] = shareInterval({ count: known, failed: lost });
  const [lossAtLeast, lossAtMost] = [percent(least), percent(most)];
  const code = firstTrue({
    "no-loss": reached && lost === 0,
    unclear: reached && lost < MIN_LOST,
    loss: reached,
    "not-sent": hops.every(({ sent }) => sent === 0),
    unreachable: error !== undefined,
    "no-reply": true,
  });
  const last = hops.findLast((hop) => hop.received + hop.errors > 0 && hop.ip !== null);
  const replying = hops.filter((hop) => hop.cause === "replies" && hop.received > 0);
  const nameOf = (at: number) => {
    const { ip = null, hostname = null } = hops[at - 1] ?? {};
    return at === 0 ? "this machine" : `hop ${at} (${hostname ?? ip})`;
  };
  const isAtTarget = begin?.to === hops.length;
  const all = known === 1 ? "the probe" : `all ${known} probes`;
  const share = `${lost} of ${plural(known, "probe")}`;
  const bounds = `between ${about(lossAtLeast)} and ${about(lossAtMost)} %`;
  const sentences = [
    code === "no-loss" && `The target replied to ${all}.`,
    code === "loss" &&
      `The target did not reply to ${share} (${formatPercent(toTarget.loss ?? 0)})${inARow > 0 ? `, ${inARow} of them in a row, so the loss changes with time` : `: the loss is ${bounds}`}.`,
    code === "unclear" &&
      `The target did not reply to ${share}, which can be chance: the loss is ${bounds}; run more rounds to know.`,
    begin &&
      `The loss begins between ${nameOf(begin.from)} and ${nameOf(begin.to)}${isAtTarget ? ", or the target does not answer every probe" : ""}.`,
    code === "not-sent" && "This machine could not send any probe.",
    (code === "no-reply" || code === "unreachable") &&
      (last
        ? `The target did not reply; the last answers came from ${nameOf(last.hop)}.`
        : "No hop answered, and the target did not reply."),
    error &&
      (errors > 0 && reached
        ? `Errors answered ${errors} of them; the last was ${error.name} from ${error.from}.`
        : `${error.from} answered ${error.name}.`),
    late > 0 && `${plural(late, "answer")} came after the timeout.`,
    replying.length > 0 &&
      `At ${hopsText(replying.map(({ hop }) => hop))}, some probes got no answer, though the path behind loses less.`,
  ];
  const text = sentences.filter(Boolean).join(" ");
  return { code, text, lossAtLeast, lossAtMost, ...begin } as const;
}
