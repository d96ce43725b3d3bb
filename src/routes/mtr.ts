import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Tools } from "../http/endpoint.ts";
import { integerParameter } from "../http/parameters.ts";
import { atLocation, ipv6Text, once } from "../http/schemas.ts";
import type { MtrHop, Times } from "../icmp/mtr-report.ts";
import { locatable } from "../locations/locatable.ts";
import {
  flowLabelNumber,
  flowLabelParameter,
  hopDetailFields,
  hopDetails,
  hopFields,
  ipOrNull,
  longestTraceMs,
  maxHopsParameter,
  namesFor,
  namesParameter,
  presentAddress,
  presentTraceError,
  traceError,
  withDetails,
} from "./hops.ts";
import { dns64Field, PROBE_ERRORS, probeTarget, round, targetParameter } from "./probe.ts";

const MAX_ROUNDS = 100;

/** `GET /mtr/{target}`: loss and times of every hop on the path to the target. */
export const mtr = locatable({
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
      default: 10,
      description: "Probes of each hop.",
      example: 10,
    }),
    intervalMs: integerParameter({
      minimum: 100,
      maximum: 1000,
      default: 200,
      description: "Milliseconds between two rounds.",
      example: 200,
    }),
    maxHops: maxHopsParameter,
    flowLabel: flowLabelParameter,
    names: namesParameter,
  },
  response: mtrResult,
  example: {
    target: "www.example.com",
    ip: "2001:db8::80",
    rounds: 10,
    hops: [
      {
        hop: 1,
        ip: "2001:db8:1::1",
        hostname: "router.example.net",
        ...{ sent: 10, received: 8, loss: 20, limited: true },
        ...{ last: 0.4, min: 0.3, avg: 0.4, max: 0.5 },
        ...{ stdDev: 0.071, jitter: 0.1, p50: 0.4, p95: 0.5 },
        addresses: [
          { ip: "2001:db8:1::1", hostname: "router.example.net", received: 8, share: 100 },
        ],
      },
      {
        hop: 2,
        ip: "2001:db8::80",
        hostname: "web.example.com",
        ...{ sent: 10, received: 10, loss: 0, limited: false },
        ...{ last: 11.2, min: 11.1, avg: 11.25, max: 11.4 },
        ...{ stdDev: 0.112, jitter: 0.1, p50: 11.2, p95: 11.4 },
        addresses: [{ ip: "2001:db8::80", hostname: "web.example.com", received: 10, share: 100 }],
      },
    ],
    details: {
      reached: true,
      paths: [{ rounds: 10, reached: true, addresses: ["2001:db8:1::1", "2001:db8::80"] }],
      source: "2001:db8::1",
      flowLabel: 493_374,
    },
  },
  events: () => ({ round: mtrRound() }),
  errors: PROBE_ERRORS,
  async handle({ target, names: wanted, ...wish }, call, tools) {
    const { rounds, intervalMs } = wish;
    const names = namesFor(wanted, call, tools);
    const { probeTimeoutMs } = tools.config;
    const longestMs = longestTraceMs(probeTimeoutMs) + (rounds - 1) * intervalMs + probeTimeoutMs;
    const { ip, outcome, dns64 } = await probeTarget(
      target,
      call,
      tools,
      longestMs,
      (engine, request, options) =>
        engine.mtr(
          { ...request, ...wish },
          {
            ...options,
            onRound(round, { hops }) {
              for (const { address } of hops.flatMap((hop) => hop.addresses)) names.ask(address);
              call.onEvent?.("round", {
                round,
                hops: hops.map((hop) => presentMtrHop(hop, names.names, tools)),
              });
            },
          },
        ),
    );
    const { hops, reached, paths, error, source, flowLabel } = outcome;
    const known = await names.known();
    return {
      target,
      ip,
      rounds,
      hops: hops.map((hop) => presentMtrHop(hop, known, tools)),
      details: {
        reached,
        paths: paths.map(({ addresses, ...path }) => ({
          ...path,
          addresses: addresses.map((address) => address && formatIpv6(address)),
        })),
        ...(error && { error: presentTraceError(error) }),
        ...dns64,
        source: formatIpv6(source),
        flowLabel,
      },
    };
  },
});

/** The result of repeated probes of every hop. */
export type MtrResult = z.output<ReturnType<typeof mtrResult>>;

/** What an event tells after each round. */
export type MtrRound = z.output<ReturnType<typeof mtrRound>>;

const percent = (part: number, whole: number) => round((part / whole) * 100, 2);

function presentMtrHop(mtrHop: MtrHop, names: ReadonlyMap<string, string | null>, tools: Tools) {
  const { hop, sent, received, isLimited, addresses, times } = mtrHop;
  const [first] = addresses;
  return {
    hop,
    ...presentAddress(first?.address ?? null, names),
    sent,
    received,
    loss: sent === 0 ? null : percent(sent - received, sent),
    limited: isLimited,
    ...presentTimes(times),
    addresses: addresses.map(({ address, received: count }) => ({
      ...presentAddress(address, names),
      ip: formatIpv6(address),
      received: count,
      share: percent(count, received),
    })),
    ...withDetails(hopDetails(first?.address ?? null, first?.scopeId ?? 0, tools)),
  };
}

function presentTimes(times: Times | null) {
  const of = (name: keyof Times) => times && round(times[name], 3);
  return {
    last: of("last"),
    min: of("min"),
    avg: of("avg"),
    max: of("max"),
    stdDev: of("stdDev"),
    jitter: of("jitter"),
    p50: of("p50"),
    p95: of("p95"),
  };
}

const probes = (description: string) => z.int().min(0).max(MAX_ROUNDS).describe(description);

const percentage = () => z.number().min(0).max(100);

const mtrHop = once(() => {
  const time = (which: string) =>
    z.number().min(0).nullable().describe(`${which} in milliseconds; null without an answer.`);
  const { hop, ip, hostname } = hopFields();
  const address = z
    .strictObject({
      ip: ipv6Text("The address."),
      hostname,
      received: probes("Probes that it answered."),
      share: percentage().describe("Its part of the hop's answers, in percent."),
    })
    .meta({ id: "HopAddress", description: "An address that answered at a hop." });
  return z
    .strictObject({
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
      limited: z
        .boolean()
        .describe("Whether the loss does not continue behind the hop, which limits its answers."),
      last: time("The last round-trip time"),
      min: time("The least round-trip time"),
      avg: time("The mean round-trip time"),
      max: time("The greatest round-trip time"),
      stdDev: time("The standard deviation"),
      jitter: time("The mean difference between successive times"),
      p50: time("The median"),
      p95: time("The time that 95 % of the answers did not exceed"),
      addresses: z.array(address).describe("Who answered, the most frequent first."),
      details: z.strictObject(hopDetailFields()).partial().exactOptional(),
    })
    .meta({ id: "MtrHop", description: "The statistics of a hop." });
});

function mtrRound() {
  return z
    .strictObject({
      round: z.int().min(1).max(MAX_ROUNDS).describe("The number of the round, from 1."),
      hops: z.array(mtrHop()).describe("The statistics of all rounds so far, in route order."),
    })
    .meta({ id: "MtrRound", description: "The hops after a round." });
}

/** The schema of the result. */
export function mtrResult() {
  const path = z
    .strictObject({
      rounds: probes("Rounds that took it."),
      reached: z.boolean().describe("Whether the target replied at its end."),
      addresses: z
        .array(ipOrNull("The hop's address; null if it was silent."))
        .describe("The hops in route order."),
    })
    .meta({ id: "MtrPath", description: "A path that some rounds took." });
  return z
    .strictObject({
      target: z.string().describe("The target as it was sent."),
      ip: ipv6Text("The address that was probed."),
      rounds: z.int().min(1).max(MAX_ROUNDS).describe("Rounds that were sent."),
      hops: z.array(mtrHop()).describe("The hops in route order."),
      details: z.strictObject({
        ...atLocation(),
        reached: z.boolean().describe("Whether the target ever replied."),
        paths: z.array(path).describe("The paths, in the order in which they were first taken."),
        error: traceError().exactOptional(),
        ...dns64Field(),
        source: ipv6Text("The source address of the probes."),
        flowLabel: flowLabelNumber(),
      }),
    })
    .meta({ id: "MtrResult", description: "Loss and round-trip times by hop." });
}
