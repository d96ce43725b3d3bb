import { z } from "zod";
import { ipv6Text, list, named, once, oneOf, type ValueOf, whole } from "../../api/schemas.ts";
import {
  flowLabelNumber,
  hopFields,
  MAX_HOPS,
  runDetailFields,
  runFields,
  traceError,
} from "../fields.ts";

/** Why a Packet Too Big is not believed. */
export const DOUBTS = ["below-1280", "not-smaller", "disproved", "not-ours"] as const;

export const bytes = (description: string) => whole(description, 0, 0xffff_ffff);

export const mtuHop = once(() => {
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
      DOUBTS,
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

/** The result of a measurement of the path MTU. */
export type MtuResult = ValueOf<ReturnType<typeof mtuResult>>;

/** A hop, and the largest packet that reaches it. */
export type MtuHop = MtuResult["hops"][number];

/** A Packet Too Big about one of our packets. */
export type TooBig = NonNullable<MtuResult["packetTooBig"]>;

/**
 * A Packet Too Big that is not believed: it claims less than every link of IPv6 carries, or no less than
 * was sent, or a larger packet has got through, or it quotes what was not sent.
 */
export type DoubtfulTooBig = MtuResult["details"]["doubtful"][number];

/**
 * The meaning of a measurement:
 * - `clear`: the target answers the largest packets that this machine can send;
 * - `narrowed`: larger packets are answered with Packet Too Big;
 * - `black-hole`: larger packets vanish;
 * - `below-1280`: packets vanish that every link of IPv6 carries (RFC 8200 section 5), UDP too;
 * - `at-least`: only bounds are known;
 * - `inconclusive`: neither the target nor a hop answers.
 */
export const MTU_VERDICTS = [
  "clear",
  "narrowed",
  "black-hole",
  "below-1280",
  "at-least",
  "inconclusive",
] as const;

export type MtuVerdict = (typeof MTU_VERDICTS)[number];

/**
 * Where packets vanish:
 * - `there`: on the way there, because UDP packets vanish too, or packets to a router;
 * - `back`: on the return path, or at a target that answers no larger echo requests, because UDP packets get there;
 * - `echo`: the target answers no larger echo requests, because UDP packets of 1280 bytes and their answers pass.
 */
export const MTU_CAUSES = ["there", "back", "echo"] as const;

export type MtuCause = (typeof MTU_CAUSES)[number];
