import { formatIpv6 } from "../../addr/format.ts";
import { tryParseIp } from "../../addr/ip.ts";
import { tryParseIpv6 } from "../../addr/ipv6.ts";
import { notGlobal, objectionTo } from "../../addr/policy.ts";
import { type Call, type Endpoint, endpoint, type Services } from "../../api/endpoint.ts";
import { ApiError, clientGone } from "../../api/errors.ts";
import { integerParameter, readParameters, sentTexts } from "../../api/parameters.ts";
import { list, measured, named, text, textSchema, type ValueOf, whole } from "../../api/schemas.ts";
import { z } from "zod";
import { lookupAddresses } from "../../dns/client.ts";
import { withoutFinalDot } from "../../dns/name.ts";
import { ENOUGH } from "../../icmp/run-budget.ts";
import { newStamp } from "../../util/stamp.ts";
import { formatPercent, listText, plural } from "../../util/text.ts";
import { dns, type DnsResult } from "../dns/endpoint.ts";
import { mtr, type MtrResult } from "../mtr/endpoint.ts";
import { mtu, type MtuResult } from "../mtu/endpoint.ts";
import { ping, type PingResult } from "../ping/endpoint.ts";
import { PROBE_ERRORS, takeSlot, verdictField } from "../run.ts";
import { parseTarget } from "../target.ts";
import { traceroute, type TraceResult } from "../trace/endpoint.ts";
import { judgeHandshake, judgeHead, judgeNoHandshake, judgeNoHead, PLAIN_PORT, requestHead, type Seen, type Service, shakeHands } from "./connect.ts";
import example from "./example.json" with { type: "json" };
import { checkStep, checkVerdict, comparisonStep, FINDINGS, type Step, STEPS, VERDICTS } from "./steps.ts";

/** The longest time of a check in milliseconds; what has not ended by then ends with what it has. */
const LONGEST_MS = 20_000;

/** Milliseconds for a connection, a handshake or a response. */
const CONNECT_MS = 4_000;

/** Addresses that are connected to. */
const MAX_ADDRESSES = 4;

/** How many requests a check costs: the names at three resolvers, and every other tool once. */
const PRICE = 10;

/** A sub-question: another tool's handler, within the slot and the time of the check. */
type Ask = <Document>(tool: Endpoint, texts: Readonly<Record<string, string>>) => Promise<Document>;

/** `GET /check/{name}`: whether a name works over IPv6, and if not, what is wrong. */
export const check = endpoint({
  runsElsewhere: true,
  path: "/check/{name}",
  operationId: "check",
  summary: "Whether a name works over IPv6, and what is wrong if not (beta)",
  description:
    "Looks up the name, connects to each of its IPv6 addresses as a browser does, compares one IPv4 address, and measures the path. `details.verdict` says the worst finding first.",
  needsKey: true,
  parameters: {
    name: {
      in: "path",
      schema: textSchema,
      description: "A name or an IPv6 address.",
      example: "www.example.com",
      label: "Name",
      hint: "The name of a site, or an IPv6 address",
    },
    port: integerParameter({
      minimum: 1,
      maximum: 65_535,
      default: 443,
      description:
        "The TCP port. On port 80, HTTP is asked for without TLS; it must be among `SIXSCOPE_PROBE_PORTS` of the service.",
      example: 443,
      option: { flags: "-p, --port" },
      label: "Port",
    }),
  },
  response: checkResult,
  example,
  events: () => ({ step: checkStep() }),
  errors: [...PROBE_ERRORS],
  async handle({ name: subject, port }, call, services) {
    const stamp = newStamp();
    const target = parseTarget(subject);
    call.allowSeconds((LONGEST_MS + CONNECT_MS) / 1000);
    using run = await openCheck(subject, port, call, services);
    const { step } = run;
    const addresses = "name" in target ? await step.names() : [formatIpv6(target.address)];
    const ipv4 = await step.ipv4;
    await Promise.all([
      ...addresses.slice(0, MAX_ADDRESSES).map((ip) => step.address(ip)),
      ...ipv4.slice(0, 1).map((ip) => step.connection(ip)),
    ]);
    run.tell(comparisonStep(run.steps));
    const steps = run.steps.toSorted((a, b) => STEPS.indexOf(a.name) - STEPS.indexOf(b.name));
    return { name: subject, port, steps, details: { ...stamp, verdict: checkVerdict(subject, steps) } };
  },
});
