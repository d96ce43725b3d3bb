/** Asks each name server of a zone about the zone and about a name. */
import { type IpAddress, tryParseIp } from "../../addr/ip.ts";
import { objectionTo } from "../../addr/policy.ts";
import { LOOPBACK, type Prefix, prefixContains } from "../../addr/prefix.ts";
import { createDnsClient } from "../../dns/client.ts";
import { translationOf } from "../../dns/dns64.ts";
import { isWithin, parentOf } from "../../dns/dnssec/names.ts";
import { nameText } from "../../dns/dnssec/wording.ts";
import { FLAG, readSections } from "../../dns/message/message.ts";
import { canonicalName } from "../../dns/message/name.ts";
import { decodeRecord, type RecordType, type ResourceRecord } from "../../dns/message/record.ts";
import type { DnsOutcome } from "../../dns/outcome.ts";
import { systemSockets } from "../../dns/transport/sockets.ts";
import type { Sockets } from "../../dns/transport/transport.ts";
import { sourceTo } from "../../gate/connection.ts";
import { ByteReader, FormatError } from "../../util/bytes.ts";
import { systemClock } from "../../util/clock.ts";
import { attempt } from "../../util/errors.ts";
import type { Services } from "../services.ts";
import { isAnswer, recordsAsked } from "./comparison.ts";
import type { DnsQuestion } from "./engine.ts";
import { requireAnswer } from "./failure.ts";
import { replyOf } from "./reply.ts";
import type { DnsRecord, DnsReply } from "./result.ts";
import { type Asked, judgeZone, type NamedServers } from "./zone-findings.ts";

/** Questions to the resolver, and datagrams and connections to the servers of a zone, whose number its owner decides. */
const MAX_QUESTIONS = 60;
const MAX_PACKETS = 60;

/** Addresses, each of which needs two packets; 13 servers of both families have 26. */
const MAX_ADDRESSES = MAX_PACKETS / 2;

/** Servers of the zone above that are asked if the resolver does not reach a zone. */
const MAX_ABOVE = 2;

/** Milliseconds for all questions to the resolver; each may take a third. */
const RESOLVER_MS = 8000;
/** Milliseconds for each question to a server, which is asked again after one second. */
const SERVER_MS = 2500;

/** The longest time of `askZone` in milliseconds. */
export const LONGEST_ZONE_MS = RESOLVER_MS + 3 * SERVER_MS;

/** The code of a packet that does not leave, because `MAX_PACKETS` have left. */
const NOT_ASKED = "NOT_ASKED";

const thisMachine = () => ({ sockets: systemSockets(), clock: systemClock, sourceTo });

/**
 * Asks each name server of the zone of a name, at each of its addresses that the policy allows, for the zone's SOA
 * record and for the name: through the gate, and for at most 15.5 s.
 *
 * @param hostname the name as it was sent
 * @param machine for tests
 * @returns `found`: a row for each address, and the findings; `text`: the same in sentences; `reply`: that of most servers
 * @throws ApiError of `requireAnswer` if the resolver does not answer for the name
 */
export async function askZone(
  { name, type, options }: DnsQuestion,
  hostname: string,
  { config, resolvers, gate }: Pick<Services, "config" | "resolvers" | "gate">,
  { sockets, clock, sourceTo: sourceOf } = thisMachine(),
) {
  const { targetResolver, targets } = config;
  const { signal, client } = options;
  const resolver = resolvers[targetResolver];
  const endMs = clock.nowMs() + RESOLVER_MS;
  let [questions, packets] = [0, 0];
  /** How the resolver fails. */
  let failure: string | undefined;
  /** The records about the zone from the servers above it, which are asked if the resolver fails. */
  let glue: readonly ResourceRecord[] = [];

  const lookUp = async (owner: string, wanted: RecordType): Promise<DnsReply> => {
    const timeoutMs = Math.min(RESOLVER_MS / 3, endMs - clock.nowMs());
    const question = { name: owner, type: wanted };
    const records = glue.filter((record) => record.owner === owner);
    if (records.length > 0 || ++questions > MAX_QUESTIONS || timeoutMs <= 0 || signal?.aborted) {
      const none = { kind: "timeout", question, queryTimeMs: 0, attempts: [] } as const;
      return { ...replyOf(targetResolver, none), records };
    }
    const flags = { checkingDisabled: true, timeoutMs, signal, client };
    return replyOf(targetResolver, await resolver.query(owner, wanted, flags));
  };

  const gated: Sockets = {
    async open(transport, server, ...query) {
      const probedPort = { protocol: transport === "tcp" ? transport : "udp", port: 53 } as const;
      const departure = { target: server.address, probedPort, caller: { client } };
      const isLeft = ++packets <= MAX_PACKETS && (await gate.mayLeave(departure, signal));
      if (!isLeft) throw Object.assign(new Error(), { code: NOT_ASKED });
      return sockets.open(transport, server, ...query);
    },
  };

  /** Why an address is not asked, as its outcome; null if it is asked. Services of this machine are not for callers. */
  const refusal = async (ip: string) => {
    const address = tryParseIp(ip) as IpAddress;
    if (objectionTo(address, targets) !== null) return "not-allowed";
    const source = await sourceOf(ip).catch(() => null);
    const isIn = (prefixes: readonly Prefix[]) =>
      prefixes.some((prefix) => prefixContains(prefix, address));
    if ((source === ip || isIn(LOOPBACK)) && !isIn(targets.allow)) return "not-allowed";
    return source === null ? "no-route" : null;
  };

  const askAt = (ip: string, owner: string, wanted: RecordType, dnssec = true) =>
    createDnsClient({
      ...{ servers: [{ address: tryParseIp(ip) as IpAddress, port: 53 }], sockets: gated, clock },
    }).query(owner, wanted, { ...options, isIterative: true, timeoutMs: SERVER_MS, dnssec });

  /** The closest zone around a name, and the names of its servers. */
  const findZone = async (at: string): Promise<NamedServers> => {
    const reply = await lookUp(at, "NS");
    if (!isAnswer(reply) && at !== ".") {
      failure = reply.rcode ?? reply.outcome;
      return findZone(parentOf(at));
    }
    if (!isAnswer(reply)) requireAnswer(reply, hostname);
    const isAlias = reply.records[0]?.type === "CNAME";
    const names = isAlias ? [] : reply.records.map(({ value }) => value.toLowerCase());
    if (names.length > 0 || at === ".") return { zone: at, names: [...new Set(names)] };
    const above = isAlias ? at : (reply.soa?.name.toLowerCase() ?? at);
    return findZone(above !== at && isWithin(at, above) ? above : parentOf(at));
  };

  /** The zone to which one of the first servers of the zone above refers; the zone above if none does. */
  const findBelow = async (at: string, above: NamedServers): Promise<NamedServers> => {
    const asked = await Promise.all(above.names.slice(0, MAX_ABOVE).map(findAddresses));
    const ips = asked.flatMap(({ families }) => families.flatMap((all) => all.slice(0, 1)));
    const replies = await Promise.all(
      ips.map(async (ip) => ((await refusal(ip)) === null ? askAt(ip, at, "NS") : null)),
    );
    const isBelow = ({ owner, type }: ResourceRecord) =>
      type === "NS" && owner !== above.zone && isWithin(owner, above.zone) && isWithin(at, owner);
    for (const reply of replies) {
      const records = reply && "message" in reply && reply.message ? recordsIn(reply.message) : [];
      const servers = records.filter(isBelow);
      const [server] = servers;
      if (server === undefined) continue;
      glue = records;
      return { zone: server.owner, names: servers.map(({ value }) => value.toLowerCase()) };
    }
    return above;
  };

  const findAddresses = async (server: string) => {
    const replies = await Promise.all([lookUp(server, "AAAA"), lookUp(server, "A")]);
    // Addresses that the resolver makes (DNS64) are not the server's.
    const ownIp = ({ value: ip }: DnsRecord) => (translationOf(resolver, ip) === null ? [ip] : []);
    const [ipv6 = [], ipv4 = []] = replies.map((reply) => recordsAsked(reply).flatMap(ownIp));
    const lacksIpv6 = ipv6.length === 0 && replies.slice(0, 1).every(isAnswer);
    const outcome = replies.every(isAnswer) ? "no-address" : "not-known";
    return { name: server, families: [ipv6, ipv4], lacksIpv6, outcome } as const;
  };

  const askServer = async (server: string, ip: string): Promise<Asked> => {
    const outcome = await refusal(ip);
    if (outcome !== null) return { ...NOTHING, name: server, ip, outcome };
    const row = { name: server, ip, ...judgeSoa(await askAt(ip, zone, "SOA")) };
    if (row.outcome !== "answer") return row;
    const reply = replyOf("zone", await askAt(ip, name, type, false));
    // RFC 4074: some servers drop questions of types that they do not know.
    return isSilent(reply)
      ? { ...row, outcome: "silent", reason: `for ${type} alone` }
      : { ...row, reply };
  };

  const own = canonicalName(name).toLowerCase();
  // The zone above has the DS records; RFC 4035 section 2.4.
  const start = type === "DS" ? parentOf(own) : own;
  const found = await findZone(start);
  const { zone, names } = failure === undefined ? found : await findBelow(start, found);
  const known = names.toSorted().slice(0, Math.max(0, MAX_QUESTIONS - questions) >> 1);
  const servers = await Promise.all(known.map(findAddresses));
  const addresses = servers.flatMap((server) =>
    server.families.flatMap((ips) => ips.map((ip, turn) => ({ name: server.name, ip, turn }))),
  );
  // One address of each server and family first.
  const first = addresses.toSorted((a, b) => a.turn - b.turn).slice(0, MAX_ADDRESSES);
  const asked = await Promise.all(first.map((address) => askServer(address.name, address.ip)));
  const without = servers
    .filter(({ families }) => families.flat().length === 0)
    .map((server) => ({ ...NOTHING, name: server.name, ip: null, outcome: server.outcome }));
  const rows = [...asked, ...without];
  const question = { name: own, type };
  const judged = judgeZone({ zone, names, servers, addresses, rows, question });
  const why =
    zone === found.zone
      ? `${targetResolver} fails for a name below ${nameText(zone)} (${failure}), and no server of that zone refers to one below.`
      : `${targetResolver} does not reach the zone (${failure}), so the servers above were asked for its own.`;
  return { ...judged, text: failure === undefined ? judged.text : `${why} ${judged.text}` };
}

/** The fields of a row if nothing is known. */
const NOTHING = { serial: null, authoritative: null, signed: null, ms: null } as const;

const isUnanswered = ({ outcome }: DnsReply) => outcome === "timeout" || outcome === "unreachable";

/** True if a server was asked and did not answer. */
const isSilent = (reply: DnsReply) =>
  isUnanswered(reply) && !reply.attempts[0]?.outcome.startsWith(NOT_ASKED);

/** Judges a server by its answer for the SOA record of the zone. */
function judgeSoa(soa: DnsOutcome) {
  const reply = replyOf("zone", soa);
  const { records, queryTime: ms, rcode, attempts } = reply;
  if (isUnanswered(reply)) {
    const outcome = isSilent(reply) ? "silent" : "not-asked";
    return { ...NOTHING, outcome, reason: attempts[0]?.outcome ?? reply.outcome } as const;
  }
  const flags = ("message" in soa && soa.message?.[2]) || 0;
  const authoritative = (flags & (FLAG.authoritative >>> 8)) !== 0;
  const [first] = records;
  const serial = first?.type === "SOA" ? Number(first.value.split(" ")[2]) : null;
  const signed = serial === null ? null : records.some(({ type }) => type === "RRSIG");
  const isLame = serial === null || !authoritative;
  const why = authoritative ? "no SOA record" : "not authoritative";
  const reason = rcode === "NOERROR" ? why : rcode;
  const judged = { serial, authoritative, signed, ms, reason: isLame ? reason : undefined };
  return { ...judged, outcome: isLame ? "lame" : "answer" } as const;
}

/** All records of a message, their owners in lower case; none if the message breaks the format. */
function recordsIn(message: Uint8Array): readonly ResourceRecord[] {
  const read = () =>
    readSections(new ByteReader(message))
      .sections.flat()
      .map((record) => decodeRecord({ ...record, owner: record.owner.toLowerCase() }));
  return attempt(read, FormatError) ?? [];
}
