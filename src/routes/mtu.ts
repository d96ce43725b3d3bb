import { z } from "zod";
import { formatIpv6 } from "../addr/format.ts";
import type { Tools } from "../http/endpoint.ts";
import { atLocation, ipv6Text, once } from "../http/schemas.ts";
import {
  type DoubtfulTooBig,
  LONGEST_SEARCH_MS,
  type MtuHop,
  type MtuVerdict,
  type TooBig,
} from "../icmp/mtu.ts";
import { locatable } from "../locations/locatable.ts";
import {
  flowLabelNumber,
  flowLabelParameter,
  hopDetailFields,
  hopDetails,
  hopEvents,
  hopFields,
  longestTraceMs,
  MAX_HOPS,
  namesFor,
  namesParameter,
  presentAddress,
  withDetails,
} from "./hops.ts";
import { dns64Field, PROBE_ERRORS, probeTarget, targetParameter } from "./probe.ts";

/** The last hop that is measured, as for a trace by default. */
const LAST_HOP = 30;

/** `GET /mtu/{target}`: the largest packet that reaches the target, and where larger ones stop. */
export const mtu = locatable({
  path: "/mtu/{target}",
  operationId: "mtu",
  summary: "The path MTU, and where the path narrows (beta)",
  description:
    "Sends echo requests of growing size. Where a router says Packet Too Big, that tells the next size; where larger packets vanish without a word, the sizes that are answered decide. The target's replies are as large as the requests, so a narrow way back counts too.",
  needsKey: true,
  parameters: { target: targetParameter, flowLabel: flowLabelParameter, names: namesParameter },
  response: mtuResult,
  example: {
    target: "www.example.com",
    ip: "2001:db8::80",
    mtu: 1420,
    verdict: "narrowed",
    told: { from: "2001:db8:1::1", hop: 1, mtu: 1420, sent: 1500 },
    lastLarge: 1,
    firstSmall: 2,
    hops: [
      { hop: 1, ip: "2001:db8:1::1", hostname: "router.example.net", mtu: 1500 },
      { hop: 2, ip: "2001:db8::80", hostname: "web.example.com", mtu: 1420 },
    ],
    details: { doubtful: [], source: "2001:db8::1", flowLabel: 493_374 },
  },
  events: () => ({ hop: mtuHop() }),
  errors: PROBE_ERRORS,
  async handle({ target, flowLabel, names: wanted }, call, tools) {
    const rows: MtuHop[] = [];
    const names = namesFor(wanted, call, tools, () => show(rows));
    const show = hopEvents((row: MtuHop) => presentMtuHop(row, names.names, tools), call);
    const longestMs = longestTraceMs(tools.config.probeTimeoutMs) + LONGEST_SEARCH_MS;
    const { ip, outcome, dns64 } = await probeTarget(
      target,
      call,
      tools,
      longestMs,
      (engine, request, options) => {
        const onHop = (row: MtuHop) => {
          rows.push(row);
          show([row]);
          if (row.address) names.ask(row.address);
        };
        return engine.mtu({ ...request, maxHops: LAST_HOP, flowLabel }, { ...options, onHop });
      },
    );
    const { hops, mtuBytes, verdict, told, lastLarge, firstSmall, doubtful } = outcome;
    show(hops);
    const known = await names.known();
    return {
      target,
      ip,
      mtu: mtuBytes,
      verdict,
      told: told && presentTooBig(told, hops),
      lastLarge,
      firstSmall,
      hops: hops.map((hop) => presentMtuHop(hop, known, tools)),
      details: {
        doubtful: doubtful.map(({ doubt, ...each }) => ({ ...presentTooBig(each, hops), doubt })),
        ...dns64,
        source: formatIpv6(outcome.source),
        flowLabel: outcome.flowLabel,
      },
    };
  },
});

/** The result of a measurement of the path MTU. */
export type MtuResult = z.output<ReturnType<typeof mtuResult>>;

function presentMtuHop(
  { hop, address, scopeId, mtuBytes }: MtuHop,
  names: ReadonlyMap<string, string | null>,
  tools: Tools,
) {
  const details = hopDetails(address, scopeId, tools);
  return { hop, ...presentAddress(address, names), mtu: mtuBytes, ...withDetails(details) };
}

function presentTooBig({ from, mtuBytes, sentBytes }: TooBig, hops: readonly MtuHop[]) {
  const ip = formatIpv6(from);
  const at = hops.find(({ address }) => address !== null && formatIpv6(address) === ip);
  return { from: ip, hop: at?.hop ?? null, mtu: mtuBytes, sent: sentBytes };
}

const bytes = () => z.int().min(0).max(0xffff_ffff);

const mtuHop = once(() =>
  z
    .strictObject({
      ...hopFields(),
      mtu: bytes()
        .nullable()
        .describe("The largest packet in bytes that got through to it; null if it was silent."),
      details: z.strictObject(hopDetailFields()).partial().exactOptional(),
    })
    .meta({ id: "MtuHop", description: "A hop, and the largest packet that reaches it." }),
);

/** The schema of the result. */
export function mtuResult() {
  const position = (description: string) =>
    z.int().min(1).max(MAX_HOPS).nullable().describe(description);
  const about = {
    from: ipv6Text("Its sender."),
    hop: position("The sender's hop; null if it is not one of the hops."),
    mtu: bytes().describe("The MTU in bytes that it claims."),
    sent: bytes().describe("The size in bytes of the packet that it is about."),
  };
  const tooBig = z
    .strictObject(about)
    .meta({ id: "PacketTooBig", description: "A Packet Too Big, RFC 4443 section 3.2." });
  const doubtful = z
    .strictObject({
      ...about,
      doubt: z
        .enum([
          "below-1280",
          "not-smaller",
          "disproved",
          "not-ours",
        ] satisfies DoubtfulTooBig["doubt"][])
        .describe(
          "It claims less than 1280, or not less than was sent; larger packets pass; or it quotes what was not sent.",
        ),
    })
    .meta({ id: "DoubtfulPacketTooBig", description: "A Packet Too Big that is not believed." });
  return z
    .strictObject({
      target: z.string().describe("The target as it was sent."),
      ip: ipv6Text("The address that was probed."),
      mtu: bytes()
        .nullable()
        .describe(
          "The largest packet in bytes that the target answers; null if it answers nothing.",
        ),
      verdict: z
        .enum([
          "clear",
          "narrowed",
          "blackHole",
          "below1280",
          "inconclusive",
        ] satisfies MtuVerdict[])
        .describe(
          "The target answers all that the service's machine can send; larger packets are answered with Packet Too Big; they vanish; packets of 1280 bytes vanish; or the target answers nothing.",
        ),
      told: tooBig.nullable().describe("Who told the MTU, for `narrowed`."),
      lastLarge: position(
        "The last hop that answers larger packets than the target; null if there is none.",
      ),
      firstSmall: position(
        "The first hop behind it that answers, but not them; null if there is none.",
      ),
      hops: z.array(mtuHop()).describe("The hops in route order."),
      details: z.strictObject({
        ...atLocation(),
        doubtful: z.array(doubtful).describe("Messages that are not believed."),
        ...dns64Field(),
        source: ipv6Text("The source address of the probes."),
        flowLabel: flowLabelNumber(),
      }),
    })
    .meta({ id: "MtuResult", description: "The path MTU, and where the path narrows." });
}
