import type { Validation } from "../../../tools/validate/result.ts";

/** The parts of an address, with the names that the page shows. */
export const PARTS = {
  prefix: "Network prefix",
  subnet: "Subnet",
  interface: "Interface ID",
  ipv4: "IPv4 address",
  eui64: "ff:fe of EUI-64",
  mac: "MAC address",
  server: "Teredo server",
  flags: "Flags",
  port: "Port, inverted",
  client: "Client, inverted",
  scope: "Scope",
  group: "Group",
} as const;

/** The part of an address that a digit belongs to. */
export type Part = keyof typeof PARTS;

/** The hex digits from `from` to before `to`, and their part. */
type Span = readonly [from: number, to: number, part: Part];

const DIGITS = 32;

type Mechanism = NonNullable<Validation["details"]["embeddedIPv4"]>[number]["mechanism"];

/** Where most mechanisms put the IPv4 address. */
const AT_END: readonly Span[] = [[24, DIGITS, "ipv4"]];

/** Where the other mechanisms put it, and the parts around it. */
const EMBEDDED: Readonly<Partial<Record<Mechanism, readonly Span[]>>> = {
  "6to4": [[4, 12, "ipv4"]],
  teredo: [
    [8, 16, "server"],
    [16, 20, "flags"],
    [20, 24, "port"],
    [24, 32, "client"],
  ],
};

/** The part of each hex digit of an address; later spans override earlier ones. */
export function partsOf({ type, details }: Pick<Validation, "type" | "details">): Part[] {
  const { interfaceId, embeddedIPv4 = [] } = details;
  const spans: Span[] = [[0, DIGITS, "prefix"]];
  if (type === "Multicast") {
    spans.push([2, 3, "flags"], [3, 4, "scope"], [4, DIGITS, "group"]);
  }
  // Sites usually have a /48, or a /8 and 40 random bits; link-local addresses have no subnets.
  if (interfaceId) {
    if (type !== "LinkLocal") spans.push([12, 16, "subnet"]);
    spans.push([16, DIGITS, "interface"]);
  }
  if (interfaceId?.kind === "eui64") spans.push([16, DIGITS, "mac"], [22, 26, "eui64"]);
  if (interfaceId?.kind === "embedded-ipv4" && interfaceId.value.startsWith("0000:0000")) {
    spans.push(...AT_END);
  }
  spans.push(...embeddedIPv4.flatMap(({ mechanism }) => EMBEDDED[mechanism] ?? AT_END));
  return spans.reduce<Part[]>(
    (digits, [from, to, part]) => digits.fill(part, from, to),
    new Array<Part>(DIGITS),
  );
}

/** The digits of a part, with colons where groups end. */
export function digitsOf(part: Part, digits: string, parts: readonly Part[]): string {
  const own = [...digits].map((digit, index) => {
    const shown = parts[index] === part ? digit : ":";
    return index % 4 === 3 ? `${shown}:` : shown;
  });
  return own.join("").split(/:+/).filter(Boolean).join(":");
}
