import type { ERRORS, ErrorCode } from "../../http/errors.ts";
import type { describeInterface } from "../../http/openapi.ts";
import type { ValueOf } from "../../http/schemas.ts";
import type { dnsResult } from "../../routes/dns.ts";
import type { mtrResult } from "../../routes/mtr.ts";
import type { mtuResult } from "../../routes/mtu.ts";
import type { lostSample, pingResult, pingSample } from "../../routes/ping.ts";
import type { hopSchema } from "../../routes/trace-hop.ts";
import type { traceResult } from "../../routes/traceroute.ts";
import type { describeAddress } from "../../routes/validate.ts";

export type { Caller } from "../respond.ts";

/** The answers of the API, by the schemas that describe them. */
export type Validation = ReturnType<typeof describeAddress>;
export type Network = NonNullable<NonNullable<Hop["details"]>["network"]>;
export type DnsResult = ValueOf<ReturnType<typeof dnsResult>>;
export type DnsReply = NonNullable<DnsResult["details"]["resolvers"]>[number];
export type DnsRecord = DnsResult["records"][number];
export type PingResult = ValueOf<ReturnType<typeof pingResult>>;
export type Sample =
  | ValueOf<ReturnType<typeof pingSample>>
  | ValueOf<ReturnType<typeof lostSample>>;
export type Hop = ValueOf<ReturnType<typeof hopSchema>>;
export type TraceResult = ValueOf<ReturnType<typeof traceResult>>;
export type PathDetails = Pick<
  TraceResult["details"],
  "complete" | "labels" | "perPacket" | "paths" | "graph"
>;
export type TracePath = NonNullable<PathDetails["paths"]>[number];
export type PathGraph = NonNullable<PathDetails["graph"]>;
export type Translation = NonNullable<TraceResult["details"]["dns64"]>;
export type MtrResult = ValueOf<ReturnType<typeof mtrResult>>;
export type MtrHop = MtrResult["hops"][number];
export type MtuResult = ValueOf<ReturnType<typeof mtuResult>>;
export type MtuHop = MtuResult["hops"][number];

/** The interface document, and an endpoint of it. */
export type Interface = ReturnType<typeof describeInterface>;
export type Operation = Interface["paths"][string]["get"];

/** The error of an answer: its code decides what its details have. */
export type Problem = {
  readonly [Code in ErrorCode]: {
    readonly code: Code;
    readonly message: string;
    readonly details: ValueOf<ReturnType<(typeof ERRORS)[Code]["details"]>>;
  };
}[ErrorCode];
