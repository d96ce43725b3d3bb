import { reverseName } from "../addr/format.ts";
import type { IpAddress } from "../addr/ip.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { DnsClient, QueryOptions } from "./client.ts";
import { HOP_NAME_TIMEOUT_MS } from "./limits.ts";
import { withoutFinalDot } from "./name.ts";
import type { DnsOutcome } from "./outcome.ts";
import type { ResourceRecord } from "./record.ts";

/** The IPv6 addresses of a name in the order of the answer, with the outcome that they come from; none but in an `answer`. */
export async function lookupAddresses(
  client: DnsClient,
  name: string,
  options?: QueryOptions,
): Promise<{ outcome: DnsOutcome<ResourceRecord>; addresses: readonly Ipv6Address[] }> {
  const outcome = await client.resolve(name, "AAAA", options);
  const records = outcome.kind === "answer" ? outcome.records : [];
  const addresses = records.flatMap((record) => (record.type === "AAAA" ? [record.data] : []));
  return { outcome, addresses };
}

/**
 * The name of an address by its first PTR record, without the final dot. Null where there is none, or
 * none could be had in time: by default 2 s.
 */
export async function lookupHostname(
  client: DnsClient,
  ip: IpAddress,
  { timeoutMs = HOP_NAME_TIMEOUT_MS, signal }: QueryOptions = {},
): Promise<string | null> {
  const outcome = await client.resolve(reverseName(ip), "PTR", {
    timeoutMs,
    ...(signal !== undefined && { signal }),
  });
  const records = outcome.kind === "answer" ? outcome.records : [];
  const pointer = records.find((record) => record.type === "PTR");
  return pointer === undefined ? null : withoutFinalDot(pointer.data);
}
