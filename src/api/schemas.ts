import { z } from "zod";
import { TYPE_TABLE } from "../addr/classify.ts";
import { tryParseIp } from "../addr/ip.ts";

/** Makes a value on the first call, and returns the same one afterwards. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A type that is read-only at all depths. */
export type Immutable<T> = T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> } : T;

/** The type that a schema describes. */
export type ValueOf<Schema extends z.ZodType> = Immutable<z.output<Schema>>;

/** An object with a name in the OpenAPI document. */
export function named<Shape extends z.core.$ZodLooseShape>(
  id: string,
  description: string,
  fields: Shape,
) {
  return z.strictObject(fields).meta({ id, description });
}

/** The same as `named`, made at its first use, because schemas take time. */
export const shape = <Fields extends z.core.$ZodLooseShape>(
  id: string,
  description: string,
  fields: () => Fields,
) => once(() => named(id, description, fields()));

/** A text. */
export const text = (description: string) => z.string().describe(description);

/** A text of a form. */
export const formed = (form: RegExp, description: string) =>
  z.string().regex(form).describe(description);

/** An object without a name. */
export const record = <Shape extends z.core.$ZodLooseShape>(description: string, fields: Shape) =>
  z.strictObject(fields).describe(description);

/** True or false. */
export const flag = (description: string) => z.boolean().describe(description);

/** A whole number with a minimum, and perhaps a maximum. */
export const whole = (description: string, minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  z.int().min(minimum).max(maximum).describe(description);

/** A number from 0, perhaps with a maximum. */
export const amount = (description: string, maximum = Number.MAX_SAFE_INTEGER) =>
  z.number().min(0).max(maximum).describe(description);

/** A list. */
export const list = <Item extends z.ZodType>(item: Item, description: string) =>
  z.array(item).describe(description);

/** One of several words. */
export const oneOf = <const Words extends readonly string[]>(words: Words, description: string) =>
  z.enum(words).describe(description);

/** Any text. */
export const textSchema = once(() => z.string());

/** A text that must be an address, because the answers of agents are checked with this schema. */
const ip = (...versions: (4 | 6)[]) =>
  z.string().refine((text) => versions.some((each) => tryParseIp(text)?.version === each));

/** The text form of an IPv4 address. */
export const ipv4Text = (description: string) => ip(4).meta({ format: "ipv4", description });

/** The text form of an IPv6 address. */
export const ipv6Text = (description: string) => ip(6).meta({ format: "ipv6", description });

/** The text form of an address of either family. */
export const ipText = (description: string) =>
  // Generators read each alternative by itself, so each has its type.
  ip(4, 6).meta({
    anyOf: ["ipv4", "ipv6"].map((format) => ({ type: "string", format })),
    description,
  });

/** The name of an address's type. */
export const addressType = once(() =>
  z.enum(TYPE_TABLE.rows.map(({ type }) => type)).meta({
    id: "AddressType",
    description: "The type of an address, by the longest prefix that contains it.",
  }),
);

/** The name of a place that measures. */
export const locationName = () => text("The name of the location.");

/** The part of the details of a result with the time, the version and the location of the measurement. */
export const measured = () => ({
  startedAt: z.iso.datetime().describe("When the measurement started, in UTC."),
  version: text("The version of sixscope that measured."),
  location: locationName()
    .exactOptional()
    .describe("The location that measured; absent if the request names none with `from`."),
});

/** A resolver that a client can choose. */
export const resolverName = once(() =>
  z.enum(["resolver_a", "resolver_b", "resolver_c", "zone"]).meta({
    id: "ResolverName",
    description:
      "A resolver that the operator has configured, or `zone` for the name servers of the zone itself.",
  }),
);

/** The network that an address belongs to. */
export const network = shape("Network", "The network that an address belongs to.", () => ({
  asn: whole(
    "The number of its autonomous system; null if it is not known.",
    1,
    0xffff_ffff,
  ).nullable(),
  name: text("Its name; null if it is not known.").nullable(),
  prefix: text("The block of addresses that is known to belong to it, as CIDR."),
  source: oneOf(
    ["networks-file", "asn-file"],
    "The operator's file that says so: of the own networks, or of all.",
  ),
}));

/** A resolver's reason for its answer. */
export const extendedError = shape("ExtendedError", "An extended DNS error, RFC 8914.", () => ({
  code: whole("The INFO-CODE.", 0, 65_535),
  name: text("The code's name; absent if the registry has none.").exactOptional(),
  text: text("The resolver's text; absent if it sent none.").exactOptional(),
}));
