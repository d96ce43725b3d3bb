import { z } from "zod";
import { answerDetails, dnsRecord, type dnsReply } from "../../api/dns-schemas.ts";
import {
  list,
  measured,
  named,
  resolverName,
  text,
  type ValueOf,
  whole,
} from "../../api/schemas.ts";
import { verdictField } from "../fields.ts";

/** The schema of the result. */
export function dnsResult() {
  return named("DnsResult", "The records of a name, from one resolver.", {
    hostname: text("The name as it was sent."),
    records: list(dnsRecord(), "The CNAME chain in order, then the records of the requested type."),
    resolver: resolverName(),
    queryTime: whole("Milliseconds from the query to the answer.", 0),
    details: z.strictObject({
      ...measured(),
      verdict: verdictField(["answer", "no-data", "incomplete"]),
      ...answerDetails(),
    }),
  });
}

/** The records of a name. */
export type DnsResult = ValueOf<ReturnType<typeof dnsResult>>;

/** The reply of one resolver about a name. */
export type DnsReply = ValueOf<ReturnType<typeof dnsReply>>;

/** A record of an answer. */
export type DnsRecord = DnsReply["records"][number];

/** A kind of difference between the replies of resolvers. */
export type Difference = NonNullable<DnsResult["details"]["differences"]>[number];

/** A hint at why replies differ, or what is wrong with servers of a zone. */
export type Finding = NonNullable<DnsResult["details"]["findings"]>[number];

/** A server of a zone at one address, and what it says of the zone. */
export type ZoneServer = NonNullable<DnsResult["details"]["servers"]>[number];

/** Our own DNSSEC verdict, and what the resolver claims. */
export type DnssecDetails = NonNullable<DnsReply["dnssec"]>;
