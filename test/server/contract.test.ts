/** The HTTP contract against a listening service: each row of the error table, over IPv4 and IPv6. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { connect } from "node:net";
import type { ErrorCode } from "../../src/api/errors.ts";
import { RECORD_TYPES } from "../../src/dns/message/record.ts";
import { interfaceDocument } from "../lab/conformance.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { STAMP } from "../tools/stamp.ts";

const ZONE = `
$ORIGIN example.test.
$TTL 300
@      SOA ns hostmaster 1 3600 900 604800 60
@      NS  ns
ns     AAAA ::1
v6     AAAA ::1
alias  CNAME v6
v4     A 192.0.2.4
group  AAAA ff02::1
link   AAAA fe80::1
`;

/** The first router on the path silently drops everything. */
const SILENT_TARGET = "2001:db8:dead::1";

/** No route leads to it. */
const UNROUTED_TARGET = "2001:db8:bad::1";

/** The requests of an address in a window; between two of them a new window may begin. */
const REQUESTS = 100_000;

const remainingIn = ({ headers }: Response) => Number(headers.get("x-ratelimit-remaining"));

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);

let chain: KernelChain;
let knot: KnotServer;
let silent: Bun.udp.Socket<"buffer">;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  chain = await startKernelChain({ routers: 1 });
  await chain.exec(1, ["ip", "-6", "route", "add", "blackhole", SILENT_TARGET]);
  await runIp([`route add ${SILENT_TARGET} via ${chain.hops[0]}`]);
  knot = await startKnot({ zones: { "example.test.": ZONE }, address: "::1" });
  silent = await Bun.udpSocket({ hostname: "::1" });
  service = await startService({
    SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
    SIXSCOPE_RESOLVER_B: `[::1]:${silent.port}`,
    SIXSCOPE_TARGETS_DENY: "2001:db8:f00d::/48",
    SIXSCOPE_RATE_ANONYMOUS: `${REQUESTS}`,
    SIXSCOPE_MAX_PROBES: "1",
    SIXSCOPE_PROBE_TIMEOUT_MS: "500",
  });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  silent.close();
  await knot.stop();
  await chain.stop();
});

interface ErrorBody {
  error: { code: string; message: string; details: Record<string, unknown> };
}

/** A placeholder for the key, which is made when the service starts. */
const WITH_KEY = { "X-API-Key": "valid" };

async function get(
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
  base = 0,
  signal: AbortSignal | null = null,
) {
  const sent =
    headers["X-API-Key"] === "valid" ? { ...headers, "X-API-Key": service.key } : headers;
  return await fetch(`${service.urls[base]}${path}`, { headers: sent, method, signal });
}

type Row = [
  condition: string,
  path: string,
  headers: Record<string, string>,
  status: number,
  code: string,
  details: Record<string, unknown>,
];

const TYPES = RECORD_TYPES;

/** The details of an error for which the resolver sent this response code to the AAAA question. */
function said(hostname: string, rcode: string, more: object = {}) {
  return {
    hostname,
    resolver: "resolver_a",
    question: { name: `${hostname}.`, type: "AAAA" },
    server: expect.stringMatching(/^\[::1\]:\d+$/),
    transport: "udp",
    rcode,
    authenticated: false,
    extendedErrors: [],
    // A service that was busy for a second has asked again.
    attempts: expect.arrayContaining([
      { server: expect.any(String), transport: "udp", ms: expect.any(Number), outcome: rcode },
    ]),
    ...more,
  };
}

const SOA = {
  name: "example.test.",
  value: expect.stringMatching(/^ns\.example\.test\. /),
  ttl: 60,
};

const LONG_LABEL = "a".repeat(64);

// biome-ignore format: a table
const ERRORS: Row[] = [
  ["no address at all", "/validate?address=nonsense", {}, 400, "INVALID_ADDRESS", { address: "nonsense", reason: "neither a hex digit nor a colon", position: 1 }],
  ["an empty address", "/validate?address=", {}, 400, "INVALID_ADDRESS", { address: "", reason: "fewer than eight groups", position: 1 }],
  ["a zone", "/validate?address=fe80::1%25eth0", {}, 400, "INVALID_ADDRESS", { address: "fe80::1%eth0", reason: "a zone is not part of an address", position: 8 }],
  ["a prefix length", "/validate?address=2001:db8::/32", {}, 400, "INVALID_ADDRESS", { address: "2001:db8::/32", reason: "a prefix length is not part of an address", position: 11 }],
  ["brackets", "/validate?address=[::1]", {}, 400, "INVALID_ADDRESS", { address: "[::1]", reason: "brackets are not part of an address", position: 1 }],
  ["white space", "/validate?address=%20::1", {}, 400, "INVALID_ADDRESS", { address: " ::1", reason: "white space is not part of an address", position: 1 }],
  ["a NUL", "/validate?address=::1%00", {}, 400, "INVALID_ADDRESS", { address: "::1\0", reason: "neither a hex digit nor a colon", position: 4 }],
  ["a broken percent-sequence", "/validate?address=::1%zz", {}, 400, "INVALID_ADDRESS", { address: "::1%zz", reason: "a zone is not part of an address", position: 4 }],
  ["an IPv4 address", "/validate?address=192.0.2.1", {}, 400, "INVALID_ADDRESS", { address: "192.0.2.1", reason: "it begins like an IPv4 address", position: 4 }],
  ["a target with a colon", "/ping/2001:db8::g", WITH_KEY, 400, "INVALID_ADDRESS", { address: "2001:db8::g", reason: "neither a hex digit nor a colon", position: 11 }],
  ["a target of IPv4 shape", "/traceroute/192.0.2.1", WITH_KEY, 400, "INVALID_ADDRESS", { address: "192.0.2.1", reason: "it begins like an IPv4 address", position: 4 }],
  ["a target of IPv4 shape in full-width digits", "/ping/%EF%BC%91.2.3.4", WITH_KEY, 400, "INVALID_ADDRESS", { address: "１.2.3.4", reason: "neither a hex digit nor a colon", position: 1 }],
  ["a target of IPv4 shape with an ideographic full stop", "/ping/1.2.3.4%E3%80%82", WITH_KEY, 400, "INVALID_ADDRESS", { address: "1.2.3.4。", reason: "it begins like an IPv4 address", position: 2 }],
  ["an address without a reverse name", "/dns/192.0.2.300?type=PTR", {}, 400, "INVALID_ADDRESS", { address: "192.0.2.300" }],
  ["a missing parameter", "/validate", {}, 400, "INVALID_PARAMETER", { parameter: "address", value: null }],
  ["a repeated parameter", "/validate?address=::1&address=::2", {}, 400, "INVALID_PARAMETER", { parameter: "address", value: ["::1", "::2"] }],
  ["a type that is not in the list", "/dns/v6.example.test?type=ANY", {}, 400, "INVALID_PARAMETER", { parameter: "type", value: "ANY", allowed: TYPES }],
  ["the number of no type", "/dns/v6.example.test?type=TYPE255", {}, 400, "INVALID_PARAMETER", { parameter: "type", value: "TYPE255", allowed: TYPES }],
  ["a parameter in another case", "/traceroute/::1?maxhops=3", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "maxhops", value: "3" }],
  ["an unknown resolver", "/dns/v6.example.test?resolver=d", {}, 400, "INVALID_PARAMETER", { parameter: "resolver", value: "d", allowed: ["resolver_a", "resolver_b", "resolver_c", "all", "zone"] }],
  ["maxHops=65", "/traceroute/::1?maxHops=65", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "maxHops", value: "65", minimum: 1, maximum: 64 }],
  ["paths=17", "/traceroute/::1?paths=17", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "paths", value: "17", minimum: 1, maximum: 16 }],
  ["flowLabel=1048576", "/traceroute/::1?flowLabel=1048576", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "flowLabel", value: "1048576", minimum: 0, maximum: 1_048_575 }],
  ["rounds=101", "/mtr/::1?rounds=101", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "rounds", value: "101", minimum: 1, maximum: 100 }],
  ["rounds=0", "/mtr/::1?rounds=0", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "rounds", value: "0", minimum: 1, maximum: 100 }],
  ["intervalMs=99", "/mtr/::1?intervalMs=99", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "intervalMs", value: "99", minimum: 100, maximum: 1000 }],
  ["intervalMs=1001", "/mtr/::1?intervalMs=1001", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "intervalMs", value: "1001", minimum: 100, maximum: 1000 }],
  ["maxHops=65 of mtr", "/mtr/::1?maxHops=65", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "maxHops", value: "65", minimum: 1, maximum: 64 }],
  ["names=maybe", "/mtu/::1?names=maybe", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "names", value: "maybe", allowed: ["yes", "no"] }],
  ["a label too long", `/dns/${LONG_LABEL}.test`, {}, 400, "INVALID_HOSTNAME", { hostname: `${LONG_LABEL}.test`, reason: expect.any(String) }],
  ["an empty label", "/dns/a..test", {}, 400, "INVALID_HOSTNAME", { hostname: "a..test", reason: expect.any(String) }],
  ["a NUL in a name", "/dns/a%00b.test", {}, 400, "INVALID_HOSTNAME", { hostname: "a\0b.test", reason: expect.any(String) }],
  ["a broken percent-sequence in a name", "/dns/a%zzb.test", {}, 400, "INVALID_HOSTNAME", { hostname: "a%zzb.test", reason: expect.any(String) }],
  ["an address instead of a name", "/dns/::1?type=A", {}, 400, "INVALID_HOSTNAME", { hostname: "::1", reason: expect.any(String) }],
  ["a target that is not a hostname", "/ping/a_b%20c", WITH_KEY, 400, "INVALID_HOSTNAME", { hostname: "a_b c", reason: expect.any(String) }],
  ["a target that the operator denies", "/ping/2001:db8:f00d::1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "2001:db8:f00d::1", ip: "2001:db8:f00d::1", type: "Documentation" }],
  ["a multicast target", "/traceroute/ff02::1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "ff02::1", ip: "ff02::1", type: "Multicast" }],
  ["a mapped target", "/ping/::ffff:127.0.0.1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "::ffff:127.0.0.1", ip: "::ffff:127.0.0.1", type: "IPv4Mapped" }],
  ["a mapped target of a trace", "/traceroute/::ffff:192.0.2.1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "::ffff:192.0.2.1", ip: "::ffff:192.0.2.1", type: "IPv4Mapped" }],
  ["a multicast target of mtr", "/mtr/ff02::1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "ff02::1", ip: "ff02::1", type: "Multicast" }],
  ["a denied target of mtu", "/mtu/2001:db8:f00d::1", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "2001:db8:f00d::1", ip: "2001:db8:f00d::1", type: "Documentation" }],
  ["a name that leads to a refused target", "/ping/group.example.test", WITH_KEY, 400, "TARGET_NOT_ALLOWED", { target: "group.example.test", ip: "ff02::1", type: "Multicast" }],
  ["forwarding headers from an untrusted peer", "/myip", { "X-Forwarded-For": "192.0.2.1" }, 400, "HTTPS_REQUIRED", {}],
  ["a link-local target without its zone", "/ping/fe80::1", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "target", value: "fe80::1" }],
  ["a zone that is not an interface", "/traceroute/fe80::1%25nowhere", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "target", value: "fe80::1%nowhere" }],
  ["a name that leads to a link-local address", "/ping/link.example.test", WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "target", value: "link.example.test" }],
  ["a zone behind an address that has none", "/ping/2001:db8::1%25lo", WITH_KEY, 400, "INVALID_ADDRESS", { address: "2001:db8::1%lo", reason: "a zone is not part of an address", position: 12 }],
  ["an empty zone", "/ping/fe80::1%25", WITH_KEY, 400, "INVALID_ADDRESS", { address: "fe80::1%", reason: "a zone is not part of an address", position: 8 }],
  ["no key", "/ping/::1", {}, 401, "UNAUTHORIZED", {}],
  ["a wrong key", "/traceroute/::1", { "X-API-Key": "sx_wrong" }, 401, "UNAUTHORIZED", {}],
  ["no key for mtr", "/mtr/::1", {}, 401, "UNAUTHORIZED", {}],
  ["no key for mtu", "/mtu/::1", {}, 401, "UNAUTHORIZED", {}],
  ["a bearer token that is not a key", "/ping/::1", { Authorization: "Bearer sx_wrong" }, 401, "UNAUTHORIZED", {}],
  ["no key, and a wrong parameter", "/ping/::1?count=99", {}, 401, "UNAUTHORIZED", {}],
  ["an unknown path", "/nothing", {}, 404, "NOT_FOUND", { method: "GET", path: "/api/v1/nothing" }],
  ["a path below an endpoint", "/myip/more", {}, 404, "NOT_FOUND", { method: "GET", path: "/api/v1/myip/more" }],
  ["a name that does not exist", "/dns/missing.example.test", {}, 404, "HOSTNAME_NOT_FOUND", said("missing.example.test", "NXDOMAIN", { soa: SOA })],
  ["a target's name that does not exist", "/ping/missing.example.test", WITH_KEY, 404, "HOSTNAME_NOT_FOUND", said("missing.example.test", "NXDOMAIN", { soa: SOA })],
  ["a target's name without AAAA", "/traceroute/v4.example.test", WITH_KEY, 404, "NO_IPV6_ADDRESS", said("v4.example.test", "NOERROR", { soa: SOA })],
  ["a resolver that refuses", "/dns/elsewhere.invalid", {}, 500, "RESOLVER_FAILURE", said("elsewhere.invalid", "REFUSED", { extendedErrors: [{ code: 20, name: "Not Authoritative" }] })],
  ["no route", `/ping/${UNROUTED_TARGET}`, WITH_KEY, 500, "NETWORK_UNREACHABLE", { target: UNROUTED_TARGET, ip: UNROUTED_TARGET }],
  ["no route for a trace", `/traceroute/${UNROUTED_TARGET}`, WITH_KEY, 500, "NETWORK_UNREACHABLE", { target: UNROUTED_TARGET, ip: UNROUTED_TARGET }],
  ["no route for mtr", `/mtr/${UNROUTED_TARGET}`, WITH_KEY, 500, "NETWORK_UNREACHABLE", { target: UNROUTED_TARGET, ip: UNROUTED_TARGET }],
  ["no route for mtu", `/mtu/${UNROUTED_TARGET}`, WITH_KEY, 500, "NETWORK_UNREACHABLE", { target: UNROUTED_TARGET, ip: UNROUTED_TARGET }],
  ...["0", "11", "+4", "4.0", "4e0", "0x4", "٤", " 4", ""].map((count): Row => [
    `count=${count}`, `/ping/::1?count=${encodeURIComponent(count)}`, WITH_KEY, 400, "INVALID_PARAMETER", { parameter: "count", value: count, minimum: 1, maximum: 10 },
  ]),
];

for (const [base, family] of ["IPv4", "IPv6"].entries()) {
  describe(`error table over ${family}`, () => {
    labTest.each(ERRORS)("%s: %s", async (_, path, headers, status, code, details) => {
      const response = await get(path, headers, "GET", base);
      const { error } = (await response.json()) as ErrorBody;
      expect({ status: response.status, code: error.code }).toEqual({ status, code });
      expect(error.details).toEqual(details);
      expect(error.message).toMatch(/^[^\n]+\.$/);
      expectCommonHeaders(response);
    });
  });
}

function expectCommonHeaders(response: Response): void {
  const { headers } = response;
  expect(headers.get("content-type")).toStartWith("application/json");
  expect(headers.get("access-control-allow-origin")).toBe("*");
  expect(headers.get("access-control-expose-headers")).toContain("X-RateLimit-Remaining");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  for (const name of ["limit", "remaining", "reset"]) {
    expect(headers.get(`x-ratelimit-${name}`)).toMatch(/^\d+$/);
  }
}

describe("the examples of the OpenAPI document are what the service returns", () => {
  const IN_TEST_ZONE = {
    '"example."': '"example.test."',
    "ns.example. hostmaster.example.": "ns.example.test. hostmaster.example.test.",
  };

  // biome-ignore format: a table
  labTest.each<[ErrorCode, string, Record<string, string>, Record<string, string>?]>([
    ["INVALID_ADDRESS", "/validate?address=2001:db8::g", {}],
    ["INVALID_HOSTNAME", "/dns/a..example", {}],
    ["INVALID_PARAMETER", "/ping/::1?count=99", WITH_KEY],
    ["TARGET_NOT_ALLOWED", "/ping/ff02::1", WITH_KEY],
    ["HTTPS_REQUIRED", "/myip", { "X-Forwarded-For": "192.0.2.1" }],
    ["UNAUTHORIZED", "/ping/::1", {}],
    ["NOT_FOUND", "/whois", {}],
    ["HOSTNAME_NOT_FOUND", "/dns/missing.example.test", {}, { "missing.example": "missing.example.test", ...IN_TEST_ZONE }],
    ["NO_IPV6_ADDRESS", "/ping/v4.example.test", WITH_KEY, { "ipv4only.example": "v4.example.test", ...IN_TEST_ZONE }],
    ["RESOLVER_FAILURE", "/dns/www.example.com", {}],
    ["NETWORK_UNREACHABLE", `/ping/${UNROUTED_TARGET}`, WITH_KEY, { "2001:db8::1": UNROUTED_TARGET }],
  ])("%s", async (code, path, headers, renamed = {}) => {
    const { error } = (await (await get(path, headers)).json()) as ErrorBody;
    let text = JSON.stringify(interfaceDocument.components.examples[code]?.value.error);
    for (const [from, to] of Object.entries(renamed)) text = text.replaceAll(from, to);
    // A service that was busy for a second has asked again.
    const { attempts } = error.details as { attempts?: { outcome: string }[] };
    const answered = attempts?.filter(({ outcome }) => outcome !== "timeout");
    if (answered) error.details["attempts"] = answered;
    // The server of the test has another port, and its time is not that of the example.
    const shown = JSON.stringify(error)
      .replace(/"\[::1\]:\d+"/g, '"[2001:db8::53]:53"')
      .replace(/"ms":\d+/g, '"ms":6');
    expect(JSON.parse(shown)).toEqual(JSON.parse(text));
  });
});

describe("errors that need more than a request", () => {
  labTest("a resolver that is silent: RESOLVER_TIMEOUT", async () => {
    const response = await get("/dns/v6.example.test?resolver=resolver_b");
    expect(response.status).toBe(500);
    expect(((await response.json()) as ErrorBody).error).toMatchObject({
      code: "RESOLVER_TIMEOUT",
      details: { hostname: "v6.example.test", resolver: "resolver_b" },
    });
  });

  labTest("more pings at once than allowed: TOO_MANY_PROBES with Retry-After", async () => {
    const events = { ...WITH_KEY, Accept: "text/event-stream" };
    const controller = new AbortController();
    const path = "/mtr/::1?rounds=100&intervalMs=1000";
    const long = await get(path, events, "GET", 0, controller.signal);
    await long.body?.getReader().read();
    const pings = Array.from({ length: 7 }, () => get("/ping/::1", WITH_KEY));
    const refused = await Promise.all(pings);
    controller.abort();
    while ((await get("/ping/::1?count=1", WITH_KEY)).status === 429) await Bun.sleep(20);
    expect(refused.map(({ status }) => status)).toEqual(Array(7).fill(429));
    expect(await refused[0]?.json()).toMatchObject({
      error: {
        code: "TOO_MANY_PROBES",
        details: { limit: 1, retryAfterSeconds: 2 },
      },
    });
    expect(refused[0]?.headers.get("retry-after")).toBe("2");
  });

  labTest(
    "a link-local target without an interface: the message says what is missing",
    async () => {
      const message = async (target: string) =>
        ((await (await get(`/ping/${target}`, WITH_KEY)).json()) as ErrorBody).error.message;
      expect(await message("fe80::1")).toBe(
        "target: add an interface of the server, such as fe80::1%eth0.",
      );
      expect(await message("fe80::1%25no")).toStartWith(
        'target: the server has no interface "no"; add an interface',
      );
      expect(await message("link.example.test")).toContain(
        "the link-local address fe80::1, and a name has no interface",
      );
    },
  );

  labTest("a 401 names the scheme", async () => {
    const response = await get("/ping/::1");
    expect(response.headers.get("www-authenticate")).toContain("X-API-Key");
  });

  labTest("an unsupported method is a 404 with Allow", async () => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      const response = await get("/myip", {}, method);
      expect(response.status).toBe(404);
      expect(response.headers.get("allow")).toBe("GET, HEAD");
      expect(await response.json()).toMatchObject({
        error: { code: "NOT_FOUND", details: { method, path: "/api/v1/myip" } },
      });
    }
  });

  labTest.each([
    ["nothing", "/dns/?type=NS"],
    ["a lone dot", "/dns/.?type=NS"],
    ["an encoded dot", "/dns/%2E?type=NS"],
  ])(
    "a path with %s for the name is refused, and says how to ask for the root",
    async (_, path) => {
      // Not a row of the table, because the document only has a path with a name.
      const request = `GET /api/v1${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
      const answer = await rawRequest(service.url, request);
      expect(answer).toStartWith("HTTP/1.1 400 ");
      expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toMatchObject({
        error: {
          code: "INVALID_HOSTNAME",
          details: { hostname: "", reason: expect.stringContaining("%E3%80%82") },
        },
      });
    },
  );

  labTest("an ideographic full stop is the root", async () => {
    const { error } = (await (await get("/dns/%E3%80%82?type=NS")).json()) as ErrorBody;
    expect(error.details).toMatchObject({ question: { name: ".", type: "NS" }, rcode: "REFUSED" });
  });

  labTest("types are read in any case, names as answers show them", async () => {
    const answer = await (await get("/dns/V6.example.test?type=txt")).json();
    expect(answer).toMatchObject({
      details: { question: { name: "V6.example.test.", type: "TXT" } },
    });
    const { error } = (await (
      await get("/dns/we%5C.ird%5C032label.example.test.?type=type65280")
    ).json()) as ErrorBody;
    expect(error.details).toMatchObject({
      question: { name: "we\\.ird\\032label.example.test.", type: "TYPE65280" },
      rcode: "NXDOMAIN",
    });
  });

  labTest("a request target that is not absolute never reaches a route", async () => {
    for (const request of [
      "GET /api/v1/myip HTTP/1.0\r\n\r\n",
      "GET /pu/api/v1/myip HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET /api/v1/myip HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ]) {
      const answer = await rawRequest(service.url, request);
      expect(answer).toStartWith("HTTP/1.1 400 ");
      expect(answer).toContain('"code":"INVALID_PARAMETER"');
      expect(answer).toContain('"parameter":"Host"');
    }
  });

  labTest("a path is that of its normalised URL", async () => {
    for (const path of [
      "myip\\",
      "x\\..\\myip",
      "dns/x\\..\\..\\myip",
      "./myip",
      "%2e%2e/v1/myip",
    ]) {
      const request = `GET /api/v1/${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
      const answer = await rawRequest(service.url, request);
      expect([path, answer.slice(0, 13)]).toEqual([path, "HTTP/1.1 200 "]);
      expect(answer).toContain('"isIPv6":');
    }
  });

  labTest("a preflight with a malformed header Host is still a preflight", async () => {
    const request =
      "OPTIONS /api/v1/myip HTTP/1.1\r\nHost: a b\r\nAccess-Control-Request-Method: GET\r\nConnection: close\r\n\r\n";
    expect(await rawRequest(service.url, request)).toStartWith("HTTP/1.1 204 ");
  });
});

async function rawRequest(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname.replace(/[[\]]/g, ""));
  socket.write(request);
  let answer = "";
  for await (const chunk of socket) {
    answer += chunk;
    if (answer.includes("\r\n\r\n") && answer.endsWith("}")) break;
  }
  socket.destroy();
  return answer;
}

describe("answers", () => {
  labTest("a slash at the end of a path changes nothing", async () => {
    for (const path of ["validate/?address=::1", "ping/::1/?count=1", "traceroute/::1/"]) {
      const request = `GET /api/v1/${path} HTTP/1.1\r\nHost: a\r\nX-API-Key: ${service.key}\r\n\r\n`;
      const answer = await rawRequest(service.url, request);
      expect([path, answer.slice(0, 13)]).toEqual([path, "HTTP/1.1 200 "]);
    }
  });

  labTest("a bearer token is the key", async () => {
    const response = await get("/ping/::1?count=1", { Authorization: `bearer ${service.key}` });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ratelimit-limit")).toBe("1000");
  });

  labTest("an empty X-API-Key is none", async () => {
    const none = { "X-API-Key": "" };
    const bearer = { Authorization: `Bearer ${service.key}` };
    expect((await get("/ping/::1?count=1", { ...none, ...bearer })).status).toBe(200);
    const { error } = (await (await get("/ping/::1?count=1", none)).json()) as ErrorBody;
    expect(error).toMatchObject({
      code: "UNAUTHORIZED",
      message: expect.stringContaining("needs an API key"),
    });
  });

  labTest("/myip over IPv4 and IPv6", async () => {
    expect(await (await get("/myip")).json()).toEqual({
      ip: "127.0.0.1",
      version: 4,
      isIPv6: false,
    });
    expect(await (await get("/myip", {}, "GET", 1)).json()).toEqual({
      ip: "::1",
      version: 6,
      isIPv6: true,
    });
  });

  labTest.each(["/", "/ip"])("%s is the address as text, for a shell", async (path) => {
    const root = service.url.replace("/api/v1", path);
    const before = await get("/myip");
    const response = await fetch(root);
    expect(await response.text()).toBe("127.0.0.1\n");
    expect(response.headers.get("content-type")).toBe("text/plain");
    expect(remainingIn(response)).toBeOneOf([remainingIn(before) - 1, REQUESTS - 1]);
    await service.says(`route=${path} status=200 `);
    const head = await fetch(root, { method: "HEAD" });
    expect([head.headers.get("content-length"), await head.text()]).toEqual(["10", ""]);
    const refused = await fetch(root, { method: "POST" });
    expect([refused.status, refused.headers.get("allow")]).toEqual([404, "GET, HEAD"]);
    expect((await fetch(root, { headers: { "X-Forwarded-For": "192.0.2.1" } })).status).toBe(400);
    expect((await fetch(`${root}x`)).status).toBe(404);
  });

  labTest("/validate has exactly the contract's fields and details", async () => {
    const body = (await (await get("/validate?address=2001:0DB8::0001")).json()) as object;
    expect(body).toMatchObject({
      valid: true,
      type: "Documentation",
      compressed: "2001:db8::1",
      expanded: "2001:0db8:0000:0000:0000:0000:0000:0001",
    });
    expect(Object.keys(body)).toEqual(["valid", "type", "compressed", "expanded", "details"]);
  });

  labTest("/dns has the chain in order, then the records", async () => {
    const body = (await (await get("/dns/ALIAS.example.test")).json()) as object;
    expect(body).toEqual({
      hostname: "ALIAS.example.test",
      records: [
        { type: "CNAME", value: "v6.example.test.", ttl: 300 },
        { type: "AAAA", value: "::1", ttl: 300 },
      ],
      resolver: "resolver_a",
      queryTime: expect.any(Number),
      details: {
        ...STAMP,
        verdict: {
          code: "answer",
          text: "resolver_a has 1 AAAA record for ALIAS.example.test.",
        },
        question: { name: "ALIAS.example.test.", type: "AAAA" },
        server: `[::1]:${knot.endpoint.port}`,
        transport: "udp",
        rcode: "NOERROR",
        authenticated: false,
        extendedErrors: [],
        attempts: expect.arrayContaining([
          {
            server: `[::1]:${knot.endpoint.port}`,
            transport: "udp",
            ms: expect.any(Number),
            outcome: "NOERROR",
          },
        ]),
      },
    });
  });

  labTest("/dns asks all resolvers, and for DNSSEC", async () => {
    const path = "/dns/v6.example.test?resolver=all&dnssec=yes";
    // It does not pass on signatures of the root, because it has none.
    const verdict = (name: string) => ({
      dnssec: { verdict: "indeterminate", resolver: { name, claim: "none", validates: null } },
    });
    expect(await (await get(path)).json()).toMatchObject({
      resolver: "resolver_a",
      details: {
        ...verdict("resolver_a"),
        resolvers: ["resolver_a", "resolver_b", "resolver_c"].map((resolver) => ({ resolver })),
      },
    });
  });

  labTest("/dns without a record of the requested type is not an error", async () => {
    const response = await get("/dns/v6.example.test?type=MX");
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ records: [] });
  });

  labTest("/ping of ::1 has the contract's fields", async () => {
    const body = (await (await get("/ping/::1", WITH_KEY)).json()) as {
      results: { rtt: number }[];
      stats: Record<string, number>;
    };
    const { min, avg, max } = body.stats;
    expect(body.results.map(({ rtt }) => rtt)).toContain(max ?? Number.NaN);
    expect(body).toMatchObject({
      target: "::1",
      ip: "::1",
      results: [1, 2, 3, 4].map((seq) => ({ seq, ttl: 64, rtt: expect.any(Number) })),
      stats: { transmitted: 4, received: 4, loss: 0 },
    });
    expect(min).toBeGreaterThan(0);
    expect(avg).toBeGreaterThanOrEqual(min ?? Number.NaN);
    expect(max).toBeGreaterThanOrEqual(avg ?? Number.NaN);
  });

  labTest("/ping of a silent target has null statistics and lists each loss", async () => {
    const body = await (await get(`/ping/${SILENT_TARGET}?count=2`, WITH_KEY)).json();
    expect(body).toMatchObject({
      results: [],
      stats: { transmitted: 2, received: 0, loss: 100, min: null, avg: null, max: null },
      details: {
        lost: [
          { seq: 1, reason: "timeout" },
          { seq: 2, reason: "timeout" },
        ],
      },
    });
  });

  labTest("/traceroute to a name resolves it with our own client", async () => {
    const body = await (await get("/traceroute/alias.example.test", WITH_KEY)).json();
    expect(body).toMatchObject({
      target: "alias.example.test",
      ip: "::1",
      hops: [{ hop: 1, ip: "::1", hostname: null, rtt: expect.any(Number) }],
      details: { reached: true, reason: "reached" },
    });
  });

  labTest("/traceroute takes a flow label and looks for several paths", async () => {
    const query = "paths=16&flowLabel=493374&names=no";
    const body = await (await get(`/traceroute/::1?${query}`, WITH_KEY)).json();
    const path = { flowLabel: 493_374, labels: 1, reached: true, reason: "reached" };
    expect(body).toMatchObject({
      hops: [{ hop: 1, ip: "::1" }],
      details: {
        flowLabel: 493_374,
        complete: true,
        labels: 6,
        paths: [{ ...path, addresses: ["::1"] }],
        graph: { nodes: [{ hop: 1, ip: "::1" }], edges: [] },
      },
    });
  });

  labTest("unknown query parameters are ignored", async () => {
    expect((await get("/validate?address=::1&verbose=1&verbose=2")).status).toBe(200);
  });

  labTest("HEAD works like GET, without the body", async () => {
    const response = await get("/validate?address=::1", {}, "HEAD");
    const { headers } = await get("/validate?address=::1");
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("");
    expect(response.headers.get("content-length")).toBe(headers.get("content-length"));
    expectCommonHeaders(response);
  });

  labTest.each([
    ["it", (etag: string) => etag],
    ["it in its strong form, as some caches write it", (etag: string) => etag.slice(2)],
    ["others before it", (etag: string) => `"other", ${etag}`],
    ["others behind it", (etag: string) => `${etag},W/"other"`],
    ["none", () => ""],
    ["another", () => 'W/"other"'],
  ])("who names an ETag gets a 304 only for what it has: %s", async (what, named) => {
    const etag = (await get("/locations")).headers.get("etag") ?? "";
    const response = await get("/locations", { "If-None-Match": named(etag) });
    expect(response.status).toBe(["none", "another"].includes(what) ? 200 : 304);
  });

  labTest("a CORS preflight answers 204, allows X-API-Key and costs nothing", async () => {
    const preflight = { Origin: "https://example.org", "Access-Control-Request-Method": "GET" };
    const before = await get("/myip");
    const response = await get("/ping/::1", preflight, "OPTIONS");
    const after = await get("/myip");
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-headers")).toContain("X-API-Key");
    // Pages of others can read ETag.
    expect(response.headers.get("access-control-allow-headers")).toContain("If-None-Match");
    expect(response.headers.get("access-control-allow-methods")).toContain("GET");
    expect(remainingIn(after)).toBeOneOf([remainingIn(before) - 1, REQUESTS - 1]);
  });
});
