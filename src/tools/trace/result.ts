import { z } from "zod";
import {
  amount,
  flag,
  ipv6Text,
  list,
  named,
  once,
  oneOf,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { INTERFACE_ROLES } from "../../icmp/wire/icmp-error.ts";
import {
  flowLabelNumber,
  hopFields,
  ipOrNull,
  MAX_HOPS,
  portField,
  runDetailFields,
  runFields,
  traceError,
} from "../fields.ts";

/** The schema of the result. */
export function traceResult() {
  return named("TraceResult", "The result of a trace.", {
    ...runFields(),
    hops: list(hopSchema(), "The hops in route order."),
    details: z.strictObject({
      ...runDetailFields(TRACE_REASONS),
      ...portField(),
      reached: flag("Whether the target replied."),
      reason: traceReason(),
      error: traceError().exactOptional(),
      loop: z
        .strictObject({
          from: z.int().min(1).max(MAX_HOPS),
          to: z.int().min(1).max(MAX_HOPS),
          addresses: z.array(
            ipOrNull("Who answers there and, in this order, behind; null: silent."),
          ),
          repeats: whole("Answers that repeat one of an earlier turn.", 1),
        })
        .exactOptional()
        .describe("Routers that send packets to each other, and the hops of their first turn."),
      otherSource: ipv6Text(
        "The address that replied, if the target was reached at another address than its own.",
      ).exactOptional(),
      refused: list(
        z.strictObject({
          hop: z.int().min(1).max(MAX_HOPS),
          errno: text("The error's name, such as EPERM."),
        }),
        "Hops that the service's machine refused to ask, or to ask again.",
      ).exactOptional(),
      flowLabel: flowLabelNumber(),
      ...pathFields(),
    }),
  });
}

/** The result of a trace. */
export type TraceResult = ValueOf<ReturnType<typeof traceResult>>;

export type TraceDetails = TraceResult["details"];

/** A hop of a trace. */
export type Hop = TraceResult["hops"][number];

/** A path that several flow labels may take. */
export type TracePath = ValueOf<ReturnType<typeof tracePath>>;

/** Why a row has no time though more is known than silence. */
export const UNANSWERED = ["seen-by-others", "rate-limited"] as const;

/** The schema of a hop. */
export const hopSchema = once(() => {
  const mtu = z.int().min(0).max(0xffff_ffff);
  const mpls = named("MplsLabel", "An entry of an MPLS label stack, RFC 4950.", {
    label: whole("20 bits.", 0, 0xf_ffff),
    trafficClass: z.int().min(0).max(7),
    bottomOfStack: z.boolean(),
    ttl: whole("The hops left for the label.", 0, 255),
  });
  const aboutInterface = named(
    "InterfaceInformation",
    "What a router says about one of its interfaces, RFC 5837; null if it does not say.",
    {
      role: z.enum(INTERFACE_ROLES),
      index: z.int().min(0).max(0xffff_ffff).nullable(),
      address: ipOrNull("The interface's IPv6 address."),
      name: z.string().nullable(),
      mtu: mtu.nullable().describe("Bytes."),
    },
  );
  const rtt = amount(
    "The round-trip time to it in milliseconds; null if it was silent.",
  ).nullable();
  const details = {
    unanswered: oneOf(
      UNANSWERED,
      "The hop did not answer this trace, but others to the same /48 in the last 5 s. `seen-by-others`: all met `ip` here. `rate-limited`: routers here limit their answers, and it is not certain which one it is.",
    ),
    replyHopLimit: whole("The hop limit with which the answer arrived.", 0, 255),
    asymmetry: z
      .int()
      .describe(
        "How many hops more the answer came over than the probe went, negative for fewer; absent if as many. A guess, because the answer's first hop limit is unknown: the next of 64, 128 and 255. Absent for an address that answered at several hops.",
      ),
    rtts: list(z.number().min(0), "All times in milliseconds, if there are several."),
    addresses: list(ipv6Text("An address."), "All addresses, if there are several."),
    mpls: list(mpls, "The label stack with which the probe arrived."),
    interfaces: z.array(aboutInterface),
    mtu: mtu.describe("The MTU in bytes of the next link."),
  };
  return named("Hop", "A hop of a trace.", hopFields({ rtt }, details));
});

/** The schema of why a trace ended. */
export const traceReason = () => oneOf(TRACE_REASONS, "Why the trace ended.");

const labelCount = (description: string) => whole(description, 1);

/** The schema of a path. */
export const tracePath = once(() =>
  named("TracePath", "A path, as the trace with its flow label found it.", {
    flowLabel: flowLabelNumber(),
    labels: labelCount("How many flow labels were traced over the whole path."),
    reached: flag("Whether the target replied at its end."),
    reason: traceReason(),
    addresses: z
      .array(ipOrNull("The hop's address; null if it was silent."))
      .max(MAX_HOPS)
      .describe("The hops in route order, up to the last that answered."),
  }),
);

/** The schemas of what a search for paths finds. */
export function pathFields() {
  const index = (which: string) => whole(`Its ${which} node, an index of \`nodes\`.`, 0);
  const edge = named("PathEdge", "Two nodes that follow each other on a path.", {
    from: index("near"),
    to: index("far"),
    labels: labelCount("How many flow labels showed it."),
  });
  const graph = named("PathGraph", "All nodes that were found, and the edges that are sure.", {
    nodes: list(hopSchema(), "Every address at every hop, in route order; without one, silence."),
    edges: z.array(edge),
  });
  return {
    complete: flag(
      "Whether every next hop of every node was seen with 95 % confidence, and all paths are listed. This and the following are present if several paths were wanted.",
    ).exactOptional(),
    labels: labelCount("Flow labels that were used.").exactOptional(),
    perPacket: list(
      z.int().min(1).max(MAX_HOPS),
      "Hops at which different addresses answered one flow label: a router before them chooses by packet, or the path changed. Edges from these hops are left out. Absent if there are none.",
    ).exactOptional(),
    paths: list(
      tracePath(),
      "The paths in the order in which they were found; the first is that of `hops`.",
    ).exactOptional(),
    graph: graph.exactOptional(),
  };
}

/** Why a trace ended. */
export const TRACE_REASONS = [
  "reached",
  "unreachable",
  "prohibited",
  "packet-too-big",
  "parameter-problem",
  "not-sent",
  "loop",
  "gap-limit",
  "max-hops",
] as const;

export type TraceReason = (typeof TRACE_REASONS)[number];
