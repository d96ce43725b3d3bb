import type { ExtendedError } from "./message/codes.ts";
import { FLAG, type Message, type Question } from "./message/message.ts";
import type { DnsRecord, RecordType } from "./message/record.ts";
import { interpret } from "./message/response.ts";
import type { ServerResult } from "./transport/exchange.ts";
import type { Transport } from "./transport/transport.ts";

/**
 * Characters in the values of one answer: every byte of the largest message as `\DDD`. Only compressed
 * names exceed it: two bytes can stand for a thousand characters.
 */
const MAX_ANSWER_CHARACTERS = 4 * 65_536;

/** The errors that mean a shortage of this machine; errno(3). */
const SHORTAGES: readonly string[] = ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRINUSE"];

/** The server that decided the outcome, and its response. */
interface FromServer extends Pick<Message, "nsid" | "clientSubnet"> {
  /** The server's address and port: `[2001:db8::53]:53`; absent if the resolver has none. */
  readonly server?: string;
  readonly transport?: Transport;
  /** The response code's name, or a name of our own if no code explains the outcome; see DnsOutcome. */
  readonly rcode: string;
  /** True if the server claims to have authenticated the answer by DNSSEC: the AD bit, RFC 4035 section 3.2.3. */
  readonly authenticated: boolean;
  /** The server's own reasons for its answer; RFC 8914. */
  readonly extendedErrors: readonly ExtendedError[];
  /** True if the server left the CNAME chain open: it sent no records of its end, and did not deny them. */
  readonly incomplete?: true;
  /** The SOA record that came with a negative answer; RFC 2308 section 3. */
  readonly soa?: { readonly name: string; readonly value: string; readonly ttl: number };
  /** The CNAME chain in order, then the requested records; of a failure, the chain as far as it is known. */
  readonly records: readonly DnsRecord[];
  /** The message, if the question asked for signatures. */
  readonly message?: Uint8Array;
}

/** The result of a question at one server or at all of them; see DnsOutcome. */
export type Resolution =
  | (FromServer & {
      readonly kind: "answer" | "no-data" | "name-error" | "failure" | "malformed";
    })
  | (FromServer & { readonly kind: "unreachable"; readonly reason: string })
  | { readonly kind: "timeout" | "aborted" };

/** The fields of a server that sent no message. */
const NOTHING = { authenticated: false, extendedErrors: [], records: [] } as const;

/** The resolution of a resolver without servers, as that of a machine whose /etc/resolv.conf names none. */
export const NO_SERVER = {
  kind: "unreachable",
  rcode: "UNREACHABLE",
  reason: "resolvers-none",
  ...NOTHING,
} as const;

/** One attempt at a server, and its outcome. */
export interface Attempt {
  readonly server: string;
  /** The transport that was asked last. */
  readonly transport: Transport;
  /** Milliseconds that it took, rounded. */
  readonly ms: number;
  /** The response code's name, `malformed`, `referral`, `timeout`, or why a transport failed: an errno name, `no-connection` or `EOF`. */
  readonly outcome: string;
}

/**
 * The outcome of a question:
 * - `answer`: the requested records exist;
 * - `no-data`: the name (with a chain: its end) exists without such records;
 * - `name-error`: the name (with a chain: its end) does not exist;
 * - `failure`: every server failed or refused; `rcode` is the first server's. `REFERRAL` means that it
 *   named other servers, `TOO_LARGE` that the values of its answer have more than 262,144 characters;
 * - `malformed`: a server's response broke the protocol, or its CNAME chain is a loop (`CNAME_LOOP`), and
 *   no other server answered;
 * - `unreachable`: no server could be reached; `reason` is the outcome of the first attempt. `SHORTAGE`
 *   means that this machine had no socket left. Without an attempt, the resolver has no server;
 * - `timeout`: no server answered in time;
 * - `aborted`: the caller's signal ended it.
 */
export type DnsOutcome = Resolution & {
  /** The question, with the name in canonical form. */
  readonly question: Pick<Question, "name" | "type"> & { readonly class?: "CH" };
  /** Milliseconds from the question to the outcome, rounded. */
  readonly queryTimeMs: number;
  /** Every attempt at a server, in order. */
  readonly attempts: readonly Attempt[];
};

/** Reads the result of one server as an answer to the question. */
export function resolutionOf(server: string, question: Question, result: ServerResult): Resolution {
  const { transport } = result;
  const from = { server, transport, rcode: "MALFORMED", ...NOTHING };
  if (result.kind === "malformed") return { ...from, kind: "malformed" };
  const message = question.dnssec && "bytes" in result && { message: result.bytes };
  if (result.kind === "referral")
    return { ...from, kind: "failure", rcode: "REFERRAL", ...message };
  if (result.kind === "unreachable") {
    const rcode = SHORTAGES.includes(result.code) ? "SHORTAGE" : "UNREACHABLE";
    return { ...from, kind: "unreachable", rcode, reason: outcomeName(result) };
  }
  const { flags, rcode, extendedErrors, soa, nsid, clientSubnet } = result.message;
  const { kind, records } = interpret(result.message, question);
  const response = {
    ...from,
    rcode,
    authenticated: (flags & FLAG.authenticated) !== 0,
    extendedErrors: extendedErrors ?? [],
    ...(nsid !== undefined && { nsid }),
    ...(clientSubnet !== undefined && { clientSubnet }),
    records: records.map(({ type, value, ttl }) => ({ type, value, ttl })),
    ...message,
  };
  const characters = records.reduce((sum, { value }) => sum + value.length, 0);
  if (characters > MAX_ANSWER_CHARACTERS) {
    return { ...response, kind: "failure", rcode: "TOO_LARGE", records: [] };
  }
  if (kind === "loop") return { ...response, kind: "malformed", rcode: "CNAME_LOOP" };
  const isIncomplete = kind === "no-data" && records.length > 0 && soa === null;
  return {
    ...response,
    kind,
    ...(isIncomplete && { incomplete: true }),
    ...(soa && kind !== "answer" && { soa: { name: soa.owner, value: soa.value, ttl: soa.ttl } }),
  };
}

/** The end of the outcome of an attempt that was answered only without EDNS. */
export const WITHOUT_EDNS = " without EDNS";

/** The result of a server as attempts name it. */
export function outcomeName(result: ServerResult): string {
  const { kind, transport } = result;
  if (kind === "message") return `${result.message.rcode}${result.isPlain ? WITHOUT_EDNS : ""}`;
  if (kind !== "unreachable") return kind;
  return transport === "udp" ? result.code : `${result.code} over ${transport.toUpperCase()}`;
}

/** True if the server answered the question, so that no other server needs to be asked. */
export function isDecisive({ kind }: Pick<Resolution, "kind">): boolean {
  return kind === "answer" || kind === "no-data" || kind === "name-error";
}

/** The answer if one has come, else the best reason for having none. */
export function conclude(resolutions: readonly Resolution[], isTimeout: boolean): Resolution {
  const first = (kind: "failure" | "malformed") => resolutions.find((one) => one.kind === kind);
  const best = resolutions.find(isDecisive) ?? first("failure") ?? first("malformed");
  return best ?? (isTimeout ? undefined : resolutions[0]) ?? { kind: "timeout" };
}

/** The values of the records of a type in an answer; none of any other outcome. */
export function valuesIn(outcome: DnsOutcome, type: RecordType): readonly string[] {
  const records = outcome.kind === "answer" ? outcome.records : [];
  return records.filter((record) => record.type === type).map(({ value }) => value);
}
