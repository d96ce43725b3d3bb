import { z } from "zod";
import { TYPE_TABLE } from "../addr/classify.ts";
import { RESOLVER_NAMES } from "../config/settings.ts";
import type { ExtendedError } from "../dns/message.ts";

/** Makes a value at the first call, and returns the same one ever after. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A type with all that is in it made read-only. */
export type Immutable<T> = T extends object ? { readonly [Key in keyof T]: Immutable<T[Key]> } : T;

/** What a schema describes. */
export type ValueOf<Schema extends z.ZodType> = Immutable<z.output<Schema>>;

type IsSame<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/**
 * Passes through the schema of a type that is declared elsewhere; does not compile where the two have
 * different keys, optional in different places, or of different types.
 */
export function schemaOf<T>() {
  return <Schema extends z.ZodType>(
    schema: IsSame<ValueOf<Schema>, Immutable<T>> extends true ? Schema : never,
  ): Schema => schema;
}

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
  z.enum(TYPE_TABLE.map(({ type }) => type)).meta({
    id: "AddressType",
    description: "What an address is; of overlapping blocks the longest prefix decides.",
  }),
);

/** A resolver that a caller can choose. */
export const resolverName = once(() =>
  z
    .enum(RESOLVER_NAMES)
    .meta({ id: "ResolverName", description: "One of the resolvers that the operator has set." }),
);

/** What a resolver says about the reason for its answer. */
export const extendedError = once(() =>
  schemaOf<ExtendedError>()(
    z
      .strictObject({
        code: z.int().min(0).max(65_535).describe("The INFO-CODE."),
        name: z
          .string()
          .exactOptional()
          .describe("The code's name; absent where the registry has none."),
        text: z.string().exactOptional().describe("The resolver's own words; absent without any."),
      })
      .meta({ id: "ExtendedError", description: "An extended DNS error, RFC 8914." }),
  ),
);
