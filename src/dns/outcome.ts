import { formatSocketAddress, type SocketAddress } from "../addr/socket-address.ts";
import type { Asked, AttemptEnd, Transport } from "./attempt.ts";
import type { ExtendedError } from "./extended-error.ts";
import { interpret } from "./interpret.ts";
import { FLAG } from "./message.ts";
import { type DnsRecord, type ResourceRecord, tryFormatRecords } from "./record.ts";
import { rcodeName } from "./response-code.ts";
import type { ScheduleEnd } from "./schedule.ts";

/** Which server had the last word, and what it said about its reply. */
interface FromServer {
  /** The server's address and port: `[2001:db8::1]:53`. */
  readonly server: string;
  readonly transport: Transport;
  /** The response code's name; `MALFORMED`, `UNREACHABLE`, `REFERRAL` or `TOO_LARGE` where none tells what became of the question. */
  readonly rcode: string;
  /** Whether the server claims to have authenticated the answer by DNSSEC: the AD bit, RFC 4035 section 3.2.3. */
  readonly authenticated: boolean;
  /** Why the server answered as it did, in its own words; RFC 8914. */
  readonly extendedErrors: readonly ExtendedError[];
}

/**
 * What became of a question:
 * - `answer`: the CNAME chain in order, then the records asked for;
 * - `no-data`: the name (with a chain: its end) exists without such records; `records` is the chain;
 * - `name-error`: the name (with a chain: its end) does not exist; `records` is the chain;
 * - `failure`: every server failed or refused, as `rcode` says of the first: also by a `REFERRAL` to
 *   other servers; or, with the rcode `TOO_LARGE`, the values of an answer have more than 262,144
 *   characters in presentation form;
 * - `malformed`: a server's reply broke the protocol, and no other server answered;
 * - `unreachable`: no server could be reached; `reason` is the first's errno name;
 * - `timeout`: no server answered in time;
 * - `aborted`: the caller's signal ended it.
 */
export type Resolution<Shown> =
  | (FromServer & {
      readonly kind: "answer" | "no-data" | "name-error";
      readonly records: readonly Shown[];
    })
  | (FromServer & { readonly kind: "failure" | "malformed" })
  | (FromServer & { readonly kind: "unreachable"; readonly reason: string })
  | { readonly kind: "timeout" | "aborted" };

/** What became of a question, and how long it took. */
export type DnsOutcome<Shown = DnsRecord> = Resolution<Shown> & {
  /** Milliseconds from the question to the outcome, rounded. */
  readonly queryTimeMs: number;
};

/** What became of the question at one server. */
export function resolutionOf(
  server: SocketAddress,
  { name, type }: Asked,
  end: NonNullable<AttemptEnd>,
): Resolution<ResourceRecord> {
  const from = { server: formatSocketAddress(server), transport: end.transport };
  const wordless = { ...from, authenticated: false, extendedErrors: [] };
  if (end.kind === "unreachable") {
    return { ...wordless, kind: "unreachable", rcode: "UNREACHABLE", reason: end.code };
  }
  if (end.kind === "referral") return { ...wordless, kind: "failure", rcode: "REFERRAL" };
  const malformed = { ...wordless, kind: "malformed", rcode: "MALFORMED" } as const;
  if (end.kind === "malformed") return malformed;
  const { message } = end;
  const { kind, records } = interpret(message, name, type);
  if (kind === "malformed") return malformed;
  const said = {
    ...from,
    rcode: rcodeName(message.rcode),
    authenticated: (message.flags & FLAG.authenticated) !== 0,
    extendedErrors: message.edns?.extendedErrors ?? [],
  };
  return kind === "failure" ? { ...said, kind } : { ...said, kind, records };
}

/** Whether the server answered the question, so that no other needs to be asked. */
export function isDecisive({ kind }: Resolution<unknown>): boolean {
  return kind === "answer" || kind === "no-data" || kind === "name-error";
}

/** What became of the question at all servers: the answer if there is one, else the best-founded reason for having none. */
export function conclude({
  reason,
  results,
}: ScheduleEnd<Resolution<ResourceRecord>>): Resolution<ResourceRecord> {
  if (reason === "aborted") return { kind: "aborted" };
  const first = (kind: "failure" | "malformed") => results.find((result) => result.kind === kind);
  const said = results.find(isDecisive) ?? first("failure") ?? first("malformed");
  if (said !== undefined) return said;
  return (reason === "failed" ? results[0] : undefined) ?? { kind: "timeout" };
}

/** The outcome with its records in presentation form, or `TOO_LARGE` where that would be too much. */
export function shownOutcome(outcome: DnsOutcome<ResourceRecord>): DnsOutcome {
  if (!("records" in outcome)) return outcome;
  const { records, ...rest } = outcome;
  const shown = tryFormatRecords(records);
  return shown === null
    ? { ...rest, kind: "failure", rcode: "TOO_LARGE" }
    : { ...outcome, records: shown };
}
