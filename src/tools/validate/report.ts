import { MECHANISM_NAMES } from "../../addr/embedded.ts";
import { factsOf, networkText, type Reporter } from "../report.ts";
import type { Validation } from "./result.ts";
import WORDS from "./words.json" with { type: "json" };

type Details = Validation["details"];

/** `GlobalUnicast` as people write it. */
function words(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ");
}

/** All that is known of an address. */
export const validateReport: Reporter<Validation> = {
  report({ type, compressed, expanded, details }) {
    const { definedBy, allocation, network, specialPurpose, embeddedIPv4 = [] } = details;
    const { interfaceId, multicast } = details;
    const facts = factsOf(
      ["Type", words(type)],
      ["Shortest form", compressed, "copied"],
      ["Full form", expanded, "copied"],
      ["Defined by", sentence(definedBy.block, definedBy.rfc, definedBy.status)],
      ["Scope", details.scope],
      [
        "Allocation",
        allocation && sentence(allocation.status, allocation.registry, allocation.block),
      ],
      ["Network", network && networkSentence(network)],
      ...registryFacts(specialPurpose),
      ...embeddedIPv4.map((each) => ["Embedded IPv4", embeddedText(each)] as const),
      ["Interface ID", interfaceId && interfaceText(interfaceId)],
      ["Multicast", multicast && multicastText(multicast)],
      ["Solicited-node group", details.solicitedNode, "copied"],
      ["Reverse name", details.reverseName, "copied"],
      ["As a number", details.integer, "copied"],
      ["Bits", details.binary, "copied"],
      ["Registries of", details.registrySnapshot],
    );
    return { title: compressed, verdict: null, facts, tables: [], isAnswered: true };
  },
};

/** The known parts, with commas between. */
function sentence(...parts: readonly (string | false | undefined)[]): string {
  return parts.filter(Boolean).join(", ");
}

/** The network that an address belongs to, and the source of that. */
export function networkSentence(network: NonNullable<Details["network"]>): string {
  return sentence(networkText(network), network.prefix, WORDS.sources[network.source]);
}

function registryFacts(row: Details["specialPurpose"]): [name: string, value: string][] {
  if (row === undefined) return [];
  const { block, name, rfcs, allocated, terminated } = row;
  const answers = { true: "yes", false: "no", null: "not applicable" } as const;
  const flags = Object.entries(WORDS.flags).flatMap(([flag, text]) => {
    const value = row[flag as keyof typeof WORDS.flags];
    return value === undefined ? [] : [`${text}: ${answers[`${value}`]}`];
  });
  const ended = terminated && `ended ${terminated}`;
  return [
    ["Special purpose", sentence(name, block, ...rfcs, `allocated ${allocated}`, ended)],
    ["Registry says", flags.join(", ")],
  ];
}

function embeddedText(embedded: NonNullable<Details["embeddedIPv4"]>[number]): string {
  if (embedded.mechanism !== "teredo") {
    return `${embedded.address} (${MECHANISM_NAMES[embedded.mechanism]})`;
  }
  const { client, port, server, flags, cone } = embedded;
  return `${client} (Teredo client), port ${port}, server ${server}, flags ${flags}${cone ? ", cone NAT" : ""}`;
}

function interfaceText({ value, kind, mac, port, ipv4 }: NonNullable<Details["interfaceId"]>) {
  const known = [mac && `MAC address ${mac}`, port !== undefined && `port ${port}`];
  return sentence(value, WORDS.interfaceIdKinds[kind], ...known, ipv4);
}

function multicastText(multicast: NonNullable<Details["multicast"]>): string {
  const { group, flags, sourceSpecific, networkPrefix, rendezvousPointAddress } = multicast;
  return sentence(
    group && `group ${group.name}${group.rfc ? ` (${group.rfc})` : ""}`,
    flags.transient ? "not permanently assigned" : "permanently assigned",
    sourceSpecific && "source-specific",
    flags.prefixBased && `derived from ${networkPrefix ?? "a network prefix"}`,
    flags.rendezvousPoint && `rendezvous point ${rendezvousPointAddress ?? "inside"}`,
  );
}
