import { z } from "zod";
import { translation } from "../api/dns-schemas.ts";
import {
  flag,
  ipv6Text,
  list,
  measured,
  network,
  oneOf,
  shape,
  text,
  whole,
} from "../api/schemas.ts";
import { CUTS } from "./budget.ts";

/** The schema of an ICMPv6 error's type. */
export const icmpType = () => whole("The ICMPv6 type, RFC 4443.", 0, 255);

/** The schema of an ICMPv6 error's code. */
export const icmpCode = () => whole("The ICMPv6 code, RFC 4443.", 0, 255);

/** The schemas of the first fields in the result of every run. */
export const runFields = () => ({
  target: text("The target as it was sent."),
  ip: ipv6Text("The address that was probed."),
});

/** The schema of how long a run waited. */
export const waitedMs = () =>
  whole(
    "Milliseconds that it waited for a slot, or for others who send to the same port or network; absent below a second.",
    1,
  ).exactOptional();

/**
 * The schemas of the fields in the details of every run.
 *
 * @param codes the codes of the verdict
 */
export const runDetailFields = <const Codes extends readonly string[]>(codes: Codes) => ({
  ...measured(),
  verdict: verdictField(codes),
  dns64: translation()
    .exactOptional()
    .describe(
      "The target leads to a translator, where the IPv6 path ends; absent if it does not, or it is not known.",
    ),
  addresses: list(
    z.strictObject({
      ip: ipv6Text("The address."),
      use: oneOf(ADDRESS_USES, "Whether it was probed, could be, or why not."),
    }),
    "The addresses of the name in the order of RFC 6724, if it has several.",
  ).exactOptional(),
  source: ipv6Text("The source address of the probes."),
  waitedMs: waitedMs(),
  cutShort: cutShort().exactOptional(),
});

export const cutShort = shape("CutShort", "Why the run ended early: it met its budget.", () => ({
  code: z.enum(Object.keys(CUTS) as (keyof typeof CUTS)[]).describe("The bound that was met."),
  text: text("One sentence."),
}));

/** The schema of the conclusion of a result. */
export const verdictField = <const Codes extends readonly string[]>(codes: Codes) =>
  z
    .strictObject({
      code: z.enum(codes),
      text: text("A few sentences: what was found, where, and how sure it is."),
    })
    .describe("The conclusion.");

/** The schema of the port in the details of a run that can probe one. */
export const portField = () => ({
  port: z
    .strictObject({
      protocol: oneOf(["tcp", "udp"], "How the probes travelled."),
      port: whole("The target's port.", 1, 65_535),
      state: oneOf(["open", "closed", "mixed"], "What its answers say.").exactOptional(),
      echo: flag("If it is silent, whether the target answers echo requests.").exactOptional(),
    })
    .exactOptional()
    .describe("The port that was probed; absent for ICMPv6."),
});

/** The schema of an error that ends a trace. */
export const traceError = shape("TraceError", "The ICMPv6 error that ended a trace.", () => ({
  type: icmpType(),
  code: icmpCode(),
  name: text("Its name, such as no-route."),
  from: ipv6Text("Its sender."),
  fromTarget: flag("Whether the target itself sent it."),
}));

/** The schema of an address that may be missing. */
export const ipOrNull = (description: string) =>
  z.nullable(ipv6Text(description)).meta({ format: "ipv6", description });

/** The schema of a hop's name. */
export const hostname = () => text("Its name; null if none is known.").nullable();

/** The schemas of the row of a hop; see `named`. */
export const hopFields = <Fields extends z.core.$ZodLooseShape, More extends z.core.$ZodLooseShape>(
  fields: Fields,
  more: More,
) => ({
  hop: whole("The position, from 1.", 1, MAX_HOPS),
  ip: ipOrNull("The hop's address; null if it was silent."),
  hostname: hostname(),
  ...fields,
  details: z
    .strictObject({
      zone: text("The interface to a link-local address."),
      network: network(),
      nameLate: z
        .literal(true)
        .describe("The resolver did not say its name in time; ask `/dns` with type PTR for it."),
      ...more,
    })
    .partial()
    .exactOptional()
    .describe("What else is known of the hop; absent if nothing is."),
});

/** The schema of the flow label of a run. */
export const flowLabelNumber = () =>
  whole(
    "The flow label of all probes; 0 if another program on the service's machine reserves flow labels.",
    0,
    MAX_FLOW_LABEL,
  );

/** The greatest hop limit of a trace. */
export const MAX_HOPS = 64;

/** The greatest flow label: 20 bits. */
export const MAX_FLOW_LABEL = 0xf_ffff;

/** The fates of an address of a name: one is probed, `spare` ones could be. */
export const ADDRESS_USES = ["probed", "spare", "not-allowed", "no-route", "no-interface"] as const;
