/** Redirects of a server of this process, followed over IPv6 within limits and policy. */
import { afterAll, beforeAll, expect } from "bun:test";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { parseConfig } from "../../../src/config/settings.ts";
import type { DnsClient } from "../../../src/dns/client.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { followRedirect } from "../../../src/tools/check/redirect.ts";
import { labMissing, testWith } from "../../lab/lab.ts";

const FROM = { ip: "::1", port: 80, name: "www.example", isTls: false };

const NAMES: Readonly<Record<string, readonly string[]>> = {
  "other.example": ["::1"],
  "ipv4.example": [],
  "closed.example": ["2001:db8:1::1"],
  "inside.example": ["fe80::1"],
  "half.example": ["2001:db9::1", "::1"],
};

const query = async (name: string, type: string) => {
  const found = NAMES[name];
  const records = (found ?? []).map((value) => ({ owner: name, type, ttl: 1, value }));
  const kind = found === undefined ? "failure" : records.length > 0 ? "answer" : "no-data";
  return { kind, records };
};

const client = { query } as unknown as DnsClient;

const services = {
  config: parseConfig({
    SIXSCOPE_TARGETS_ALLOW: "::1,2001:db8::/32,2001:db9::/32",
    SIXSCOPE_TARGETS_DENY: "2001:db8:1::/48",
    SIXSCOPE_PROBE_PORTS: "80,443,8081",
  }),
  resolvers: { resolver_a: client, resolver_b: client, resolver_c: client },
};

let servers: Server[] = [];
let asked: string[] = [];

beforeAll(async () => {
  if (labMissing !== null) return;
  const answer: RequestListener = ({ url = "/", headers }, response) => {
    asked.push(`${headers.host}${url}`);
    const left = Number(/^\/count\/(\d)$/.exec(url)?.[1] ?? 1) - 1;
    if (url === "/cookie") response.writeHead(302, { Location: url, "Set-Cookie": "a=1" });
    else if (left > 0) response.writeHead(302, { Location: `/count/${left}` });
    else response.writeHead(url === "/broken" ? 503 : 200);
    response.end();
  };
  servers = [80, 8081].map((port) => createServer(answer).listen(port, "::1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
});

afterAll(() => {
  for (const server of servers) server.close();
});

const follow = (location: string) => {
  asked = [];
  const { signal } = new AbortController();
  const through = { gate: new Gate(), caller: { client: "" }, signal };
  return followRedirect(FROM, { to: location, setsCookie: false }, through, services);
};

testWith(labMissing).each<[what: string, location: string, finding: string | null, asks: number]>([
  ["a page of another name", "http://other.example/", null, 1],
  ["another page of the same name", "/page?x=1", null, 1],
  ["a name with one address that works", "http://half.example/", null, 1],
  ["a page behind five redirects", "/count/5", null, 5],
  ["a page that wants its cookie", "/cookie", null, 1],
  ["more than five redirects", "/count/9", "redirect-loop", 5],
  ["itself", "/", "redirect-loop", 0],
  ["a name without an IPv6 address", "http://ipv4.example/", "redirect-without-ipv6", 0],
  ["an IPv4 address", "http://192.0.2.1/", "redirect-without-ipv6", 0],
  ["a name that cannot be looked up", "http://unknown.example/", null, 0],
  ["an address that is denied", "http://closed.example/", "redirect-broken", 0],
  ["an address of the link", "http://inside.example/", "redirect-broken", 0],
  ["a port that is not allowed", "http://other.example:8080/", "redirect-broken", 0],
  ["a page that fails", "http://other.example/broken", "redirect-broken", 1],
  ["a port that is closed", "https://other.example/", "redirect-broken", 0],
  ["a script", "javascript:alert(1)", "redirect-broken", 0],
  ["nothing", "http://[", "redirect-broken", 0],
])("a redirect to %s", async (_, location, finding, asks) => {
  const seen = await follow(location);
  expect(seen?.finding ?? null).toBe(finding as never);
  expect(asked).toHaveLength(asks);
});

testWith(labMissing)(
  "the host is asked for with a port that its scheme does not imply",
  async () => {
    await follow("http://other.example:8081/");
    expect(asked).toEqual(["other.example:8081/"]);
    await follow("http://other.example:80/");
    expect(asked).toEqual(["other.example/"]);
  },
);
