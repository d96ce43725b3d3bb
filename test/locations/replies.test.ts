/** Whether an answer of an agent is about what was asked: every parameter that it states again, in each kind of reply. */
import { expect, test } from "bun:test";
import { replyReader } from "../../src/locations/replies.ts";
import { check } from "../../src/tools/check/endpoint.ts";
import checked from "../../src/tools/check/example.json" with { type: "json" };
import { dns } from "../../src/tools/dns/endpoint.ts";
import asked from "../../src/tools/dns/example.json" with { type: "json" };
import { mtr } from "../../src/tools/mtr/endpoint.ts";
import rounds from "../../src/tools/mtr/example.json" with { type: "json" };
import { mtu } from "../../src/tools/mtu/endpoint.ts";
import sizes from "../../src/tools/mtu/example.json" with { type: "json" };
import { ping } from "../../src/tools/ping/endpoint.ts";
import pinged from "../../src/tools/ping/example.json" with { type: "json" };
import type { Endpoint } from "../../src/tools/services.ts";
import { traceroute } from "../../src/tools/trace/endpoint.ts";
import traced from "../../src/tools/trace/example.json" with { type: "json" };

type Texts = Readonly<Record<string, string>>;
type Result = Readonly<Record<string, unknown>> & { readonly details: object };

/** The reason why a reply is refused; null if it is not. */
function refusalOf(endpoint: Endpoint, parameters: Texts, reply: object): string | null {
  const data = new TextEncoder().encode(JSON.stringify(reply));
  try {
    replyReader("ams", { endpoint, parameters })(null, { data } as never);
    return null;
  } catch (error) {
    const { code, details, message } = error as {
      code: string;
      message: string;
      details: { reason: string };
    };
    return code === "LOCATION_UNAVAILABLE" ? details.reason : `passed on: ${code ?? message}`;
  }
}

const withDetails = (document: Result, details: object, others: object = {}) => ({
  ...document,
  ...others,
  details: { ...document.details, ...details },
});

const target = "www.example.com";
const at = { target, names: "no" };
const tcp = { port: { protocol: "tcp", port: 443, state: "open" } };
const CUT = { cutShort: { code: "work", text: "The caller's runs took too long." } };
const question = (change: object) => ({ question: { ...asked.details.question, ...change } });

// biome-ignore format: a table
const RESULTS: readonly [endpoint: Endpoint, asked: Texts, result: Result, differs: string | null][] = [
  [ping, { target, count: "2" }, pinged, null],
  [ping, { target: "other.example", count: "2" }, pinged, "target"],
  [ping, { target: "2001:db8::80", count: "2" }, { ...pinged, target: "2001:db8::80" }, null],
  [ping, { target: "2001:db8::81", count: "2" }, { ...pinged, target: "2001:db8::81" }, "ip"],
  [ping, { target, count: "3" }, pinged, "count"],
  [ping, { target, count: "1" }, pinged, "seq"],
  [ping, { target }, pinged, "count"],
  [ping, { target, count: "2" }, withDetails(pinged, tcp), "protocol"],
  [ping, { target, count: "2", protocol: "tcp", port: "443" }, pinged, "protocol"],
  [ping, { target, count: "2", protocol: "tcp", port: "443" }, withDetails(pinged, tcp), null],
  [ping, { target, count: "2", protocol: "tcp" }, withDetails(pinged, tcp), null],
  [ping, { target, count: "2", protocol: "udp", port: "443" }, withDetails(pinged, tcp), "protocol"],
  [ping, { target, count: "2", protocol: "tcp", port: "80" }, withDetails(pinged, tcp), "port"],
  [traceroute, at, traced, null],
  [traceroute, { ...at, flowLabel: "493374" }, traced, null],
  [traceroute, { ...at, flowLabel: "1" }, traced, "flowLabel"],
  [traceroute, { ...at, flowLabel: "1" }, withDetails(traced, { flowLabel: 0 }), null],
  [traceroute, { ...at, maxHops: "2" }, traced, "hops"],
  [traceroute, { ...at, target: "x.example" }, traced, "target"],
  [traceroute, { ...at, paths: "2" }, withDetails(traced, { paths: Array(3).fill({ flowLabel: 1, labels: 1, reached: true, reason: "reached", addresses: [] }) }), "paths"],
  [mtr, { ...at, rounds: "10" }, rounds, null],
  [mtr, { ...at, rounds: "11" }, rounds, "rounds"],
  [mtr, { ...at, rounds: "11" }, withDetails(rounds, CUT), null],
  [mtr, { ...at, rounds: "9" }, rounds, "rounds"],
  [mtr, { ...at, rounds: "9" }, withDetails(rounds, CUT), "rounds"],
  [mtr, { ...at, rounds: "10" }, withDetails(rounds, { toTarget: { ...rounds.details.toTarget, sent: 11 } }), "sent"],
  [mtr, { ...at, rounds: "10" }, withDetails(rounds, { toTarget: { ...rounds.details.toTarget, received: 11 } }), "received"],
  [mtr, { ...at, rounds: "10" }, withDetails(rounds, { toTarget: { ...rounds.details.toTarget, late: 11 } }), "late"],
  [mtr, { ...at, rounds: "10", flowLabel: "2" }, rounds, "flowLabel"],
  [mtr, { ...at, rounds: "10", maxHops: "1" }, rounds, "hops"],
  [mtr, { ...at, rounds: "10", protocol: "udp" }, rounds, "protocol"],
  [mtu, at, sizes, null],
  [mtu, { ...at, flowLabel: "3" }, sizes, "flowLabel"],
  [mtu, { ...at, target: "x.example" }, sizes, "target"],
  [check, { name: target }, checked, null],
  [check, { name: target, port: "80" }, checked, "port"],
  [check, { name: "x.example" }, checked, "name"],
  [dns, { hostname: target }, asked, null],
  [dns, { hostname: "x.example" }, asked, "name"],
  [dns, { hostname: "WWW.example.com" }, withDetails(asked, question({ name: "WWW.example.com." })), "hostname"],
  [dns, { hostname: target }, withDetails(asked, question({ name: "x.example." })), "name"],
  [dns, { hostname: target, type: "MX" }, asked, "type"],
  [dns, { hostname: target, class: "CH" }, asked, "class"],
  [dns, { hostname: target }, withDetails(asked, question({ class: "CH" })), "class"],
  [dns, { hostname: target, class: "CH" }, withDetails(asked, question({ class: "CH" })), null],
  [dns, { hostname: target, resolver: "resolver_b" }, asked, "resolver"],
  // The first to answer need not be the first of all.
  [dns, { hostname: target, resolver: "all" }, { ...asked, resolver: "resolver_b" }, null],
  [dns, { hostname: target, transport: "tcp" }, asked, "transport"],
  [dns, { hostname: target, transport: "tcp" }, withDetails(asked, { transport: "tls" }), null],
  // The name of a server is no answer to whether it was asked for.
  [dns, { hostname: target, nsid: "yes" }, withDetails(asked, { nsid: "no" }), null],
];

test.each(RESULTS.map(([endpoint, ...row]) => [endpoint.operationId, ...row, endpoint] as const))(
  "a result of %s to %j",
  (_name, parameters, result, differs, endpoint) => {
    const reason = differs && `its answer is not about what was asked: ${differs} differs`;
    expect(refusalOf(endpoint, parameters, { result })).toBe(reason);
  },
);

const reply = { resolver: "resolver_a", outcome: "answer", records: [], queryTime: 1 };
const hop = { hop: 3, ip: "2001:db8::1", hostname: "r.example", rtt: 1 };
const path = { flowLabel: 7, labels: 1, reached: true, reason: "reached", addresses: [] };
const about = { ...reply, question: asked.details.question, attempts: [] };

// biome-ignore format: a table
test.each<[endpoint: Endpoint, asked: Texts, event: string, data: object, differs: string | null]>([
  [dns, { hostname: target }, "reply", about, null],
  [dns, { hostname: target, resolver: "all" }, "reply", { ...about, resolver: "resolver_c" }, null],
  [dns, { hostname: target, resolver: "resolver_b" }, "reply", about, "resolver"],
  [dns, { hostname: target, type: "A" }, "reply", about, "type"],
  [dns, { hostname: "x.example" }, "reply", about, "name"],
  [ping, { target, count: "2" }, "sample", { seq: 3, reason: "timeout" }, "seq"],
  [mtr, { ...at, rounds: "2" }, "round", { round: 3, length: 0, hops: [] }, "round"],
  [traceroute, { ...at, maxHops: "2" }, "hop", hop, "hop"],
  // A hop and a path have an address, a name and a flow label of their own.
  [traceroute, { ...at, target: "2001:db8::80" }, "hop", hop, null],
  [traceroute, { ...at, flowLabel: "8", paths: "2" }, "path", path, null],
])("an event %#", (endpoint, parameters, event, data, differs) => {
  const reason = differs && `its answer is not about what was asked: ${differs} differs`;
  expect(refusalOf(endpoint, parameters, { event, data })).toBe(reason);
});

const failed = {
  hostname: target,
  resolver: "resolver_a",
  question: asked.details.question,
  attempts: [],
};

// biome-ignore format: a table
test.each<[endpoint: Endpoint, asked: Texts, code: string, details: object, differs: string | null]>([
  [dns, { hostname: target }, "HOSTNAME_NOT_FOUND", failed, null],
  // As each error of a server that has answered.
  [dns, { hostname: target }, "HOSTNAME_NOT_FOUND", { ...failed, transport: "udp", nsid: "a" }, null],
  [dns, { hostname: target, transport: "tcp" }, "HOSTNAME_NOT_FOUND", { ...failed, transport: "udp" }, "transport"],
  [dns, { hostname: target, resolver: "all" }, "RESOLVER_TIMEOUT", { ...failed, resolver: "resolver_b" }, null],
  [dns, { hostname: target, resolver: "resolver_c" }, "RESOLVER_TIMEOUT", failed, "resolver"],
  [dns, { hostname: target, type: "MX" }, "RESOLVER_TIMEOUT", failed, "type"],
  [dns, { hostname: "x.example" }, "RESOLVER_TIMEOUT", failed, "name"],
  [ping, { target }, "NO_IPV6_ADDRESS", failed, null],
  [ping, { target: "x.example" }, "NO_IPV6_ADDRESS", failed, "name"],
  [ping, { target }, "NO_IPV6_ADDRESS", { ...failed, question: { name: "x.", type: "AAAA" } }, "name"],
  [ping, { target: "::1" }, "NETWORK_UNREACHABLE", { target: "::1", ip: "::2" }, "ip"],
  [ping, { target, count: "9" }, "INVALID_PARAMETER", { parameter: "count", value: "9" }, null],
  [ping, { target, count: "9" }, "INVALID_PARAMETER", { parameter: "count", value: "8" }, "value"],
])("an error %#", (endpoint, parameters, code, details, differs) => {
  const reason = differs && `its answer is not about what was asked: ${differs} differs`;
  const error = { code, message: "It failed.", details };
  expect(refusalOf(endpoint, parameters, { error })).toBe(reason ?? `passed on: ${code}`);
});
