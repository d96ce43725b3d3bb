import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import { endpoint, type Services } from "../../api/endpoint.ts";
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
import type { MtrHop, MtrReport, Times } from "../../icmp/mtr-report.ts";
import { round } from "../../util/numbers.ts";
import { formatPercent, plural } from "../../util/text.ts";
import type { HopNames } from "../hop-names.ts";
import {
  flowLabelNumber,
  hopDetailFields,
  hopDetails,
  hopFields,
  ipOrNull,
  openPathRun,
  pathParameters,
  presentAddress,
  presentTraceError,
  traceError,
  withDetails,
} from "../hops.ts";
import { hopsText } from "../report.ts";
import { PROBE_ERRORS, runDetailFields, runFields, targetParameter } from "../run.ts";
import example from "./example.json" with { type: "json" };

const MAX_ROUNDS = 100;

const VERDICTS = ["no-loss", "loss", "unclear", "no-reply", "unreachable", "not-sent"] as const;

/** `GET /mtr/{target}`: loss and times of every hop on the path to the target. */
export const mtr = endpoint({
  runsElsewhere: true,
  path: "/mtr/{target}",
  operationId: "mtr",
  summary: "Loss and round-trip times of every hop (beta)",
  description:
    "Traces the target, and then probes every hop once a round. A hop with `limited` limits its answers: the loss does not continue behind it. If the path changes, the probes of each path count for its own hops only.",
  needsKey: true,
  parameters: {
    target: targetParameter,
    rounds: integerParameter({
      minimum: 1,
      maximum: MAX_ROUNDS,
      maximumAlone: 100_000,
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
  },
  response: mtrResult,
  example,
  events: () => ({ round: mtrRound() }),
  errors: PROBE_ERRORS,
  async handle({ target, names: wanted, ...wish }, call, services) {
    const { rounds, intervalMs } = wish;
    const longestMs = (rounds - 1) * intervalMs + services.config.probeTimeoutMs;
    using run = await openPathRun(target, wanted, longestMs, call, services);
    const { names } = run;
    const present = (hops: readonly MtrHop[], known: HopNames["names"]) =>
      hops.map((hop) => presentMtrHop(hop, known, services));
    let told = 0;
    const onRound = (round: number, report: MtrReport) => {
      told = round;
      for (const { address } of report.hops.flatMap((hop) => hop.addresses)) names.ask(address);
      run.onEvent?.("round", { round, hops: present(report.hops, names.names) });
    };
    const outcome = await run.outcome(
      run.engine.mtr({ ...run.request, ...wish }, { ...run.options, onRound }),
    );
    const { reached, error, flowLabel } = outcome;
    const hops = present(outcome.hops, await names.known());
    const end = { reached, ...(error && { error: presentTraceError(error) }) };
    const paths = outcome.paths.map(({ addresses, ...path }) => ({
      ...path,
      addresses: addresses.map((address) => address && formatIpv6(address)),
    }));
    const verdict = mtrVerdict(hops, end);
    const details = { ...end, paths, ...run.details(outcome, verdict), flowLabel };
    return { target, ip: run.ip, rounds: run.budget.cutShort() ? told : rounds, hops, details };
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
  p50: "The median",
  p95: "The time that 95 % of the answers did not exceed",
};

/** Something for each time of a hop. */
const ofTimes = <T>(make: (name: keyof Times, description: string) => T) =>
  Object.fromEntries(
    Object.entries(TIMES).map(([name, description]) => [
      name,
      make(name as keyof Times, description),
    ]),
  ) as Record<keyof Times, T>;

const percent = (part: number, whole: number) => round((part / whole) * 100, 2);

function presentMtrHop(
  mtrHop: MtrHop,
  names: ReadonlyMap<string, string | null>,
  services: Services,
) {
  const { hop, sent, received, isLimited, addresses, times } = mtrHop;
  const [first] = addresses;
  return {
    hop,
    ...presentAddress(first?.address ?? null, names),
    sent,
    received,
    loss: sent === 0 ? null : percent(sent - received, sent),
    limited: isLimited,
    ...ofTimes((name) => times && round(times[name], 3)),
    addresses: addresses.map(({ address, received: count }) => ({
      ...presentAddress(address, names),
      ip: formatIpv6(address),
      received: count,
      share: percent(count, received),
    })),
    ...withDetails(hopDetails(first?.address ?? null, first?.scopeId ?? 0, services)),
  };
}

const probes = (description: string) => whole(description, 0, MAX_ROUNDS);

const percentage = () => z.number().min(0).max(100);

const mtrHop = once(() => {
  const { hop, ip, hostname } = hopFields();
  const address = named("HopAddress", "An address that answered at a hop.", {
    ip: ipv6Text("The address."),
    hostname,
    received: probes("Probes that it answered."),
    share: percentage().describe("Its part of the hop's answers, in percent."),
  });
  return named("MtrHop", "The statistics of a hop.", {
    hop,
    ip: ip.describe("The address that answered most; null if the hop was silent."),
    hostname,
    sent: probes(
      "Probes that count: those that left, on the paths on which the hop answers at all.",
    ),
    received: probes("Probes that were answered in time."),
    loss: percentage()
      .nullable()
      .describe("Probes that were not answered, in percent; null if none counts."),
    limited: flag("Whether the loss does not continue behind the hop, which limits its answers."),
    ...ofTimes((_, time) => amount(`${time} in milliseconds; null without an answer.`).nullable()),
    addresses: list(address, "The addresses that answered, the most frequent first."),
    details: z.strictObject(hopDetailFields()).partial().exactOptional(),
  });
});

function mtrRound() {
  return named("MtrRound", "The hops after a round.", {
    round: whole("The number of the round, from 1.", 1, MAX_ROUNDS),
    hops: list(mtrHop(), "The statistics of all rounds so far, in route order."),
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
      reached: flag("Whether the target ever replied."),
      paths: list(path, "The paths, in the order in which they were first taken."),
      error: traceError().exactOptional(),
      flowLabel: flowLabelNumber(),
    }),
  });
}

/** Lost probes of the target from which on they say more than chance. */
const MIN_LOST = 3;

/** The conclusion, from the statistics of the hops and how the path ends. */
export function mtrVerdict(
  hops: MtrResult["hops"],
  { reached, error }: Pick<MtrResult["details"], "reached" | "error">,
) {
  const answering = hops.filter(({ received }) => received > 0);
  const last = answering.at(-1);
  const lost = last === undefined ? 0 : last.sent - last.received;
  const code = reached
    ? lost === 0
      ? "no-loss"
      : lost < MIN_LOST
        ? "unclear"
        : "loss"
    : hops.some(({ sent }) => sent > 0)
      ? error
        ? "unreachable"
        : "no-reply"
      : "not-sent";
  const first = answering.find(
    ({ sent, received, limited }) => !limited && sent - received >= MIN_LOST,
  );
  const limited = answering.filter((hop) => hop.limited).map(({ hop }) => hop);
  const nameOf = ({ hop, hostname, ip }: MtrResult["hops"][number]) =>
    `hop ${hop} (${hostname ?? ip})`;
  const all = last?.sent === 1 ? "the probe" : `all ${last?.sent} probes`;
  const share =
    last && `${lost} of ${plural(last.sent, "probe")} (${formatPercent(last.loss ?? 0)})`;
  const sentences = [
    code === "no-loss" && `The target replied to ${all}.`,
    code === "loss" && `The target did not reply to ${share}.`,
    code === "unclear" &&
      `The target did not reply to ${share}; more rounds show how much the path loses.`,
    code === "not-sent" && "This machine could not send any probe.",
    error && `${error.from} answered ${error.name}.`,
    (code === "no-reply" || code === "unreachable") &&
      (last
        ? `The target did not reply; the last answers came from ${nameOf(last)}.`
        : "No hop answered, and the target did not reply."),
    first &&
      first !== last &&
      `Loss shows from ${nameOf(first)} on, with ${formatPercent(first.loss ?? 0)} there.`,
    limited.length > 0 &&
      `At ${hopsText(limited)}, some probes got no answer, though the path behind loses less.`,
  ];
  return { code, text: sentences.filter(Boolean).join(" ") } as const;
}
