/** The findings from the answers of a zone's servers, side by side. */
import { nameText } from "../../dns/dnssec/wording.ts";
import { withoutFinalDot } from "../../dns/message/name.ts";
import { type DnsOutcome, NO_SERVER } from "../../dns/outcome.ts";
import { listText, plural, shareText } from "../../util/text.ts";
import { comparable } from "./comparison.ts";
import { replyOf } from "./reply.ts";
import type { DnsReply, ZoneServer } from "./result.ts";

/** A server at one address, why it is lame or silent, and its reply about the name. */
export interface Asked extends ZoneServer {
  readonly reason?: string | undefined;
  readonly reply?: DnsReply;
}

/** A zone, and the names of its servers. */
export type NamedServers = { readonly zone: string; readonly names: readonly string[] };

/** The evidence about the servers of a zone. */
interface Look extends NamedServers {
  /** The servers that were looked up, and their addresses. */
  readonly servers: readonly { readonly name: string; readonly lacksIpv6: boolean }[];
  readonly addresses: readonly unknown[];
  /** The addresses that were chosen, and servers without any. */
  readonly rows: readonly Asked[];
  /** The question to them beside that for the SOA record. */
  readonly question: DnsOutcome["question"];
}

/** Possible meanings of the findings. */
const PERHAPS_HERE = "If nothing answers over IPv6, this machine's own may be at fault.";
const PERHAPS_OLD = "A copy may be old, or servers may answer by place or in turns.";
const REFUSED = "Resolvers that validate refuse what they say.";

/** Servers and characters of an answer in a sentence; the rows have all servers. */
const MAX_LISTED = 6;
const MAX_CHARACTERS = 100;

/** Judges the servers of a zone. */
export function judgeZone({ zone, names, servers, addresses, rows, question }: Look) {
  const those = (outcome: Asked["outcome"]) => rows.filter((row) => row.outcome === outcome);
  const answering = those("answer");
  const [lame, silent] = [those("lame"), those("silent")];
  const asked = [...answering, ...lame, ...silent];
  const serials = split(answering, ({ serial }) => `${serial}`);
  const answers = split(answering, ({ reply }) => reply && answerText(reply));
  const unsigned = answering.filter(({ signed }) => !signed);
  const notAllSigned = unsigned.length < answering.length ? unsigned : [];
  const withoutIpv6 = servers.filter(({ lacksIpv6 }) => lacksIpv6);
  const found = [
    [lame, "lame", `No authority for the zone, though named as one: ${hosts(lame)}.`],
    [silent, "silent", `No answer from ${hosts(silent)}. ${PERHAPS_HERE}`],
    [serials.fewer, "serials-differ", `Serials differ: ${serials.text}. A copy may be old.`],
    [answers.fewer, "answers-differ", `Answers differ: ${answers.text}. ${PERHAPS_OLD}`],
    [notAllSigned, "unsigned-server", `No signatures from ${hosts(notAllSigned)}. ${REFUSED}`],
    [withoutIpv6, "no-ipv6", `No IPv6 address: ${hosts(withoutIpv6)}.`],
  ] as const;
  const findings = found.flatMap(([about, code, text]) =>
    about.length > 0 ? [{ code, servers: namesOf(about), text }] : [],
  );
  const [serial] = serials.fewer.length === 0 ? answering : [];
  const answer = `, and ${answering.length} of ${asked.length} answer for ${nameText(zone)}${serial ? `, with serial ${serial.serial}` : ""}`;
  const sentences = [
    `${shareText(asked.length, addresses.length, "address")} of ${servers.length < names.length ? `${servers.length} of ` : ""}${plural(names.length, "name server")} were asked${asked.length > 0 ? answer : ""}.`,
    ...findings.map(({ text }) => text),
  ];
  const reply =
    answers.most?.reply ??
    replyOf("zone", { ...NO_SERVER, question, queryTimeMs: 0, attempts: [] });
  const shown = rows.map(({ reason, reply, ...row }) => row);
  return { found: { servers: shown, findings }, text: sentences.join(" "), reply };
}

/** Groups rows by a value: `fewer` has the rows of all but the value that most servers have; without such a value, all rows. */
function split(rows: readonly Asked[], keyOf: (row: Asked) => string | undefined) {
  const size = (group: readonly Asked[] = []) => namesOf(group).length;
  const groups = [...Map.groupBy(rows, keyOf)]
    .filter(([value]) => value !== undefined)
    .toSorted(([, a], [, b]) => size(b) - size(a));
  const isTie = size(groups[0]?.[1]) === size(groups[1]?.[1]);
  const textOf = ([value = "", group]: (typeof groups)[number]) =>
    `${value.slice(0, MAX_CHARACTERS)} from ${hosts(group)}`;
  return {
    most: groups[0]?.[1][0],
    fewer: groups.slice(isTie ? 0 : 1).flatMap(([, group]) => group),
    text: groups.map(textOf).join("; "),
  };
}

/** The part of a server's answer on which the servers of one zone must agree: up to the first alias. Undefined for silence. */
function answerText({ records, question, outcome, rcode }: DnsReply): string | undefined {
  const [first] = records;
  if (outcome === "unreachable") return undefined;
  if (first?.type === "CNAME" && question.type !== "CNAME") return comparable(first);
  if (outcome !== "answer") return outcome === "no-data" ? "no record" : rcode;
  return records.map(comparable).toSorted().join(", ");
}

type Listed = Pick<Asked, "name"> & Partial<Asked>;

const namesOf = (rows: readonly Listed[]) => [...new Set(rows.map(({ name }) => name))];

/** Servers, each with its addresses and, if there is one, the reason. */
function hosts(rows: readonly Listed[]): string {
  const texts = [...Map.groupBy(rows, ({ name }) => withoutFinalDot(name))].map(([name, group]) => {
    const ips = group.map(({ ip, reason }) => [ip, reason].filter(Boolean).join(" "));
    return ips[0] ? `${name} (${ips.join(", ")})` : name;
  });
  const more = texts.length - MAX_LISTED;
  return listText(more > 0 ? [...texts.slice(0, MAX_LISTED), `${more} more`] : texts);
}
