import { z } from "zod";
import { formatIpv6 } from "../../addr/format.ts";
import { ipv6Text, list, named, once, oneOf, type ValueOf, whole } from "../../api/schemas.ts";
import {
  flowLabelNumber,
  hopEvents,
  hopFields,
  MAX_HOPS,
  openPathRun,
  pathParameters,
  presentRow,
  presentTraceError,
  traceError,
} from "../hops.ts";
import { PROBING, runDetailFields, runFields, targetParameter } from "../run.ts";
import { endpoint } from "../services.ts";
import {
  type DoubtfulTooBig,
  LONGEST_SEARCH_MS,
  MTU_CAUSES,
  MTU_VERDICTS,
  type MtuHop,
  type MtuVerdict,
  type TooBig,
} from "./engine.ts";
import example from "./example.json" with { type: "json" };

/** The last hop that is measured, as for a trace by default. */
const LAST_HOP = 30;

const { flowLabel, names } = pathParameters;

/** `GET /mtu/{target}`: the largest packet that reaches the target, and where larger ones stop. */
export const mtu = endpoint({
  path: "/mtu/{target}",
  operationId: "mtu",
  summary: "The path MTU, and where the path narrows (beta)",
  description:
    "Sends echo requests of growing size. Where a router says Packet Too Big, that tells the next size; where larger packets vanish without a word, the sizes that are answered decide. The target's replies are as large as the requests, so a narrow way back counts too; where larger ones are not answered, up to 20 UDP packets to a closed port tell the way there.",
  ...PROBING,
  parameters: { target: targetParameter, flowLabel, names },
  response: mtuResult,
  example,
  events: () => ({ hop: mtuHop() }),
  async handle({ flowLabel: label, ...probed }, call, services) {
    const { target } = probed;
    const rows = new Map<number, MtuHop>();
    const present = (row: MtuHop) =>
      presentRow(row, run.names.names, services, { mtu: row.mtuBytes, atMost: row.atMostBytes });
    const show = hopEvents(present, call);
    using run = await openPathRun(probed, LONGEST_SEARCH_MS, call, services, (address) =>
      show([...rows.values()], address),
    );
    const onHop = (row: MtuHop) => {
      rows.set(row.hop, row);
      show([row]);
      if (row.address) run.names.ask(row.address);
    };
    const request = { ...run.request, maxHops: LAST_HOP, flowLabel: label };
    const outcome = await run.outcome(run.engine.mtu(request, { ...run.options, onHop }));
    const { mtuBytes: mtu, atMostBytes: atMost, verdict: code, cause } = outcome;
    const { lastLarge, firstSmall, flowLabel } = outcome;
    show(outcome.hops);
    await run.names.known();
    const hops = outcome.hops.map(present);
    const packetTooBig = outcome.packetTooBig && presentTooBig(outcome.packetTooBig, hops);
    const doubtful = outcome.doubtful.map((each) => presentTooBig(each, hops));
    const found = { mtu, atMost, packetTooBig, lastLarge, firstSmall };
    const error = outcome.error && presentTraceError(outcome.error);
    const about = { ...(cause && { cause }), ...(error && { error }), doubtful, flowLabel };
    const verdict = { code, text: mtuText(code, found, hops, about) };
    const details = { ...about, ...(await run.details(outcome, verdict)) };
    return { target, ip: run.ip, ...found, hops, details };
  },
});

/** The result of a measurement of the path MTU. */
export type MtuResult = ValueOf<ReturnType<typeof mtuResult>>;

function presentTooBig<Message extends TooBig>(message: Message, hops: MtuResult["hops"]) {
  const { from, mtuBytes: mtu, sentBytes: sent, ...others } = message;
  const ip = formatIpv6(from);
  const hop = hops.find((each) => each.ip === ip)?.hop ?? null;
  return { from: ip, hop, mtu, sent, ...others };
}

type MtuFound = Omit<MtuResult, "target" | "ip" | "hops" | "details">;
type MtuEvidence = Pick<MtuResult["details"], "cause" | "error" | "doubtful">;

/** The sentences of the verdict: the meaning of the measurement, where the path narrows, what is not known, and the error. */
export function mtuText(
  code: MtuVerdict,
  found: MtuFound,
  hops: MtuResult["hops"],
  evidence: MtuEvidence,
): string {
  const meaning = meaningOf(code, found, hops, evidence);
  const { error } = evidence;
  const who = error?.fromTarget ? "The target" : error?.from;
  return error ? `${meaning} ${who} answered ${error.name}.` : meaning;
}

function meaningOf(
  code: MtuVerdict,
  found: MtuFound,
  hops: MtuResult["hops"],
  { cause, error, doubtful }: MtuEvidence,
): string {
  const { mtu, atMost, packetTooBig: told, lastLarge, firstSmall } = found;
  const nameOf = (hop: number) => {
    const { hostname, ip } = hops[hop - 1] ?? { hostname: null, ip: null };
    return `hop ${hop}${ip === null ? "" : ` (${hostname ?? ip})`}`;
  };
  const [near, far] = [lastLarge, firstSmall].map((hop) => hop && nameOf(hop));
  const place =
    near && far ? `between ${near} and ${far}` : near ? `behind ${near}` : far && `before ${far}`;
  const where = place ? ` The narrow link is ${place}.` : "";
  const size = mtu ?? atMost;
  const silent = mtu === null ? "The target answers neither echo requests nor UDP packets. " : "";
  const vanish = error ? "do not get through" : "vanish";
  const echo =
    cause === "echo" ? " The target answered UDP packets of that size, but no echo requests." : "";
  switch (code) {
    case "clear":
      return `The target answers packets of ${mtu} bytes, the largest that this machine can send.${echo}`;
    case "narrowed":
      return told === null
        ? `${silent}Routers answer packets of more than ${size} bytes with Packet Too Big.${where}${echo}`
        : `${silent}${told.hop === null ? told.from : `${told.from} at hop ${told.hop}`} says Packet Too Big: its next link carries ${told.mtu} bytes.${told.hop !== null && told.hop === lastLarge ? "" : where}${echo}`;
    case "black-hole": {
      if (cause === "back") {
        return `Echo requests of more than ${mtu} bytes are not answered, but UDP packets of that size get to the target: the way back carries no more, or the target answers no larger ones.`;
      }
      const doubt =
        cause === undefined && silent === "" ? " It may be on the way there or back." : "";
      return `${silent}Packets of more than ${size} bytes ${vanish}, and no Packet Too Big ${doubtful.length > 0 ? "that is believed " : ""}comes, so connections hang when they send much.${where}${doubt}${echo}`;
    }
    case "below-1280":
      return `${silent}Packets of more than ${size} bytes ${vanish}, but every link of IPv6 must carry 1280, so larger transfers over this path fail.${where}`;
    case "at-least": {
      const last = hops.findLast((hop) => hop.mtu !== null);
      if (mtu === null) {
        return `${silent}Packets of ${last?.mtu} bytes get to ${nameOf(last?.hop ?? 0)}; the size that the links behind it carry is not known.`;
      }
      const unknown = `larger ones, up to ${atMost}, get through is not known`;
      return echo
        ? `The target answers packets of ${mtu} bytes; it did so for UDP, but for no echo requests of that size. Whether ${unknown}.`
        : `The target answers packets of ${mtu} bytes; whether ${unknown}: answers are too seldom, or the time was over.`;
    }
    case "inconclusive":
      return "Neither the target nor a hop answers packets of any size.";
  }
}

const bytes = (description: string) => whole(description, 0, 0xffff_ffff);

const mtuHop = once(() => {
  const mtu = bytes(
    "The largest packet in bytes that got through to it; null if silent.",
  ).nullable();
  const atMost = bytes(
    "The largest size in bytes that is not proven to be too large for the way to it: the same as `mtu` if that is exact; null if it was silent.",
  ).nullable();
  return named(
    "MtuHop",
    "A hop, and the largest packet that reaches it.",
    hopFields({ mtu, atMost }, {}),
  );
});

/** The schema of the result. */
export function mtuResult() {
  const position = (description: string) => whole(description, 1, MAX_HOPS).nullable();
  const about = {
    from: ipv6Text("Its sender."),
    hop: position("The sender's hop; null if it is not one of the hops."),
    mtu: bytes("The MTU in bytes that it claims."),
    sent: bytes("The size in bytes of the packet that it is about."),
  };
  const tooBig = named("PacketTooBig", "A Packet Too Big, RFC 4443 section 3.2.", about);
  const doubtful = named("DoubtfulPacketTooBig", "A Packet Too Big that is not believed.", {
    ...about,
    doubt: oneOf(
      ["below-1280", "not-smaller", "disproved", "not-ours"] satisfies DoubtfulTooBig["doubt"][],
      "It claims less than 1280, or not less than was sent; larger packets pass; or it quotes what was not sent.",
    ),
  });
  return named("MtuResult", "The path MTU, and where the path narrows.", {
    ...runFields(),
    mtu: bytes("The largest packet in bytes that the target answers; null if none.").nullable(),
    atMost: bytes(
      "The largest size in bytes that is not proven to be too large: the same as `mtu` if that is exact; null if nothing is known.",
    ).nullable(),
    packetTooBig: tooBig
      .nullable()
      .describe("The message that says the MTU, if the verdict is `narrowed`."),
    lastLarge: position("The last hop that answers larger packets than the target; null if none."),
    firstSmall: position("The first hop behind it that answers, but not them; null if none."),
    hops: list(mtuHop(), "The hops in route order."),
    details: z.strictObject({
      ...runDetailFields(MTU_VERDICTS),
      cause: z
        .enum(MTU_CAUSES)
        .exactOptional()
        .describe("Where larger packets vanish; absent if none does, or it is not known."),
      error: traceError().exactOptional(),
      doubtful: list(doubtful, "Messages that are not believed."),
      flowLabel: flowLabelNumber(),
    }),
  });
}
