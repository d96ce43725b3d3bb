import { z } from "zod";
import { TYPE_TABLE } from "../addr/classify.ts";
import { RESOLVER_NAMES } from "../config/settings.ts";
import { NETWORK_SOURCES } from "../networks/network.ts";

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

/** Any text. */
export const textSchema = once(() => z.string());

/** The text form of an IPv4 address. */
export function ipv4Text(description: string) {
  return z.string().meta({ format: "ipv4", description });
}

/** The text form of an IPv6 address. */
export function ipv6Text(description: string) {
  return z.string().meta({ format: "ipv6", description });
}

/** The text form of an address of either family. */
export function ipText(description: string) {
  return z.string().meta({ anyOf: [{ format: "ipv4" }, { format: "ipv6" }], description });
}

/** The name of an address's type. */
export const addressType = once(() =>
  z.enum(TYPE_TABLE.rows.map(({ type }) => type)).meta({
    id: "AddressType",
    description: "The type of an address, by the longest prefix that contains it.",
  }),
);

/** The name of a place that measures. */
export const locationName = () => z.string().describe("The name of the location.");

/** In the details of a result: where it was measured. */
export const atLocation = () => ({
  location: locationName()
    .exactOptional()
    .describe("The location that measured; absent if the request names none with `from`."),
});

/** A resolver that a client can choose. */
export const resolverName = once(() =>
  z
    .enum(RESOLVER_NAMES)
    .meta({ id: "ResolverName", description: "A resolver that the operator has configured." }),
);

/** The network that an address belongs to. */
export const network = once(() =>
  z
    .strictObject({
      asn: z
        .int()
        .min(1)
        .max(0xffff_ffff)
        .nullable()
        .describe("The number of its autonomous system; null if it is not known."),
      name: z.string().nullable().describe("Its name; null if it is not known."),
      prefix: z.string().describe("The block of addresses that is known to belong to it, as CIDR."),
      source: z
        .enum(NETWORK_SOURCES)
        .describe("The operator's file that says so: of the own networks, or of all."),
    })
    .meta({ id: "Network", description: "The network that an address belongs to." }),
);

/** A resolver's reason for its answer. */
export const extendedError = once(() =>
  z
    .strictObject({
      code: z.int().min(0).max(65_535).describe("The INFO-CODE."),
      name: z
        .string()
        .exactOptional()
        .describe("The code's name; absent if the registry has none."),
      text: z.string().exactOptional().describe("The resolver's text; absent if it sent none."),
    })
    .meta({ id: "ExtendedError", description: "An extended DNS error, RFC 8914." }),
);
