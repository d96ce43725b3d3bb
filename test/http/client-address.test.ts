import { describe, expect, test } from "bun:test";
import { formatIp } from "../../src/addr/ip.ts";
import { parsePrefix } from "../../src/addr/prefix.ts";
import { identifyCaller, isFromOtherSite } from "../../src/http/client-address.ts";

const TRUST = {
  trustedProxies: {
    unix: true,
    prefixes: ["10.0.0.0/8", "2001:db8:ffff::/48", "127.0.0.2"].map(parsePrefix),
  },
  plainHttpFrom: ["192.168.7.0/24"].map(parsePrefix),
  keylessFrom: ["192.168.7.0/24", "2001:db8:7::/48", "127.0.0.1"].map(parsePrefix),
};

function caller(peer: string | null, headers: Record<string, string>, encrypted = false) {
  const found = identifyCaller({ peer, encrypted }, new Headers(headers), TRUST);
  return { ...found, address: found.address === null ? null : formatIp(found.address) };
}

describe("the client's address", () => {
  // biome-ignore format: a table
  const rows: [string, string | null, string, string | null][] = [
    ["an untrusted peer is itself, whatever it claims", "192.0.2.9", "198.51.100.1", "192.0.2.9"],
    ["a trusted peer's claim is believed", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["the unix listener is trusted", null, "2001:db8::1", "2001:db8::1"],
    ["the rightmost that is not trusted: anyone can write what is left of it", "10.0.0.1", "203.0.113.66, 198.51.100.1", "198.51.100.1"],
    ["any number of trusted hops", "10.0.0.1", "198.51.100.1, 2001:db8:ffff::7, 10.9.9.9", "198.51.100.1"],
    ["all of them trusted: the first", "10.0.0.1", "10.0.0.7, 10.0.0.8", "10.0.0.7"],
    ["a mapped address is IPv4", "10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"],
    ["a mapped peer is IPv4, and trusted as such", "::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["a port is tolerated", "10.0.0.1", "198.51.100.1:4711", "198.51.100.1"],
    ["brackets and a port are tolerated", "10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"],
    ["an invalid entry is not believed, nor what is left of it", "10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"],
    ["an invalid entry behind a trusted hop", "10.0.0.1", "_hidden, 10.0.0.2", "10.0.0.2"],
    ["an empty entry", "10.0.0.1", "198.51.100.1,", "10.0.0.1"],
    ["a peer without a valid address is not trusted", "", "198.51.100.1", null],
    ["a link-local peer without its zone", "fe80::1%eth0", "", "fe80::1"],
  ];
  test.each(rows)("%s", (_, peer, list, expected) => {
    expect(caller(peer, list === "" ? {} : { "X-Forwarded-For": list }).address).toBe(expected);
  });

  test("several header lines are one list", () => {
    const headers = new Headers([
      ["X-Forwarded-For", "203.0.113.66"],
      ["X-Forwarded-For", "198.51.100.1, 10.0.0.2"],
    ]);
    const { address } = identifyCaller({ peer: "10.0.0.1", encrypted: false }, headers, TRUST);
    expect(address && formatIp(address)).toBe("198.51.100.1");
  });

  test("is unknown if a unix socket's peer names none", () => {
    expect(caller(null, { "X-Forwarded-Proto": "https" }).address).toBeNull();
  });
});

// biome-ignore format: a table
test.each<[string, string | null, Record<string, string>, boolean]>([
  ["a peer in the prefixes needs no key", "2001:db8:7::1", {}, false],
  ["a mapped peer", "::ffff:192.168.7.9", {}, false],
  ["a peer outside", "2001:db8:8::1", {}, true],
  ["a client behind a trusted proxy is judged by its own address", "10.0.0.1", { "X-Forwarded-For": "192.168.7.1" }, false],
  ["a client outside behind a trusted proxy", "10.0.0.1", { "X-Forwarded-For": "192.0.2.1" }, true],
  ["a claim of another peer", "192.0.2.1", { "X-Forwarded-For": "192.168.7.1" }, true],
  ["a proxy in the prefixes that is not trusted: its clients could be anyone", "127.0.0.1", { Via: "1.1 proxy" }, true],
  ["a unix socket's peer without an address", null, {}, true],
])("whether a key is needed: %s", (_, peer, headers, expected) => {
  expect(caller(peer, headers, true).needsKey).toBe(expected);
});

test.each<[string, Record<string, string>, boolean]>([
  ["a program", {}, false],
  ["a user who opens the address", { "Sec-Fetch-Site": "none" }, false],
  ["a page of the service", { "Sec-Fetch-Site": "same-origin" }, false],
  ["another site", { "Sec-Fetch-Site": "cross-site" }, true],
  ["a neighbour", { "Sec-Fetch-Site": "same-site" }, true],
  ["a word that no browser says", { "Sec-Fetch-Site": "" }, true],
  // Over plain HTTP a browser sends no Sec-Fetch-Site, and Origin to other origins alone.
  ["another origin", { Origin: "http://evil.example" }, true],
  ["a page without an origin", { Origin: "null" }, true],
])("whether another site sent the request: %s", (_, headers, expected) => {
  expect(isFromOtherSite(new Headers(headers))).toBe(expected);
});

describe("the HTTPS rule", () => {
  // biome-ignore format: a table
  const rows: [string, string | null, boolean, Record<string, string>, boolean][] = [
    ["a loopback peer needs no TLS", "127.0.0.1", false, {}, true],
    ["a loopback peer over IPv6", "::1", false, {}, true],
    ["a mapped loopback peer", "::ffff:127.0.0.1", false, {}, true],
    ["a loopback peer that forwards is a proxy that is not configured", "127.0.0.1", false, { "X-Forwarded-For": "192.0.2.1" }, false],
    ["not even when it says https", "127.0.0.1", false, { "X-Forwarded-Proto": "https" }, false],
    ["a loopback peer that sends the header Forwarded", "::1", false, { Forwarded: "for=192.0.2.1" }, false],
    ["a loopback peer that sends the header Via only", "::1", false, { Via: "1.1 proxy" }, false],
    ["a loopback peer that sends X-Forwarded-Host only", "::1", false, { "X-Forwarded-Host": "six.example" }, false],
    ["a client that may use plain HTTP", "192.168.7.9", false, {}, true],
    ["its neighbour that may not", "192.168.8.9", false, {}, false],
    ["a client that may use plain HTTP, through a trusted proxy", "10.0.0.1", false, { "X-Forwarded-For": "192.168.7.9", "X-Forwarded-Proto": "http" }, true],
    ["a client that claims to be one that may", "192.0.2.1", false, { "X-Forwarded-For": "192.168.7.9" }, false],
    ["plain HTTP from elsewhere", "192.0.2.1", false, {}, false],
    ["TLS from elsewhere", "192.0.2.1", true, {}, true],
    ["TLS from an untrusted peer that forwards", "192.0.2.1", true, { "X-Forwarded-For": "1.1.1.1" }, true],
    ["a trusted proxy that says https", "10.0.0.1", false, { "X-Forwarded-Proto": "https" }, true],
    ["in any case of letters", "10.0.0.1", false, { "X-Forwarded-Proto": "HTTPS" }, true],
    ["a trusted proxy that says http", "10.0.0.1", false, { "X-Forwarded-Proto": "http" }, false],
    ["a trusted proxy that says http, over TLS", "10.0.0.1", true, { "X-Forwarded-Proto": "http" }, false],
    ["a chain with one plain link", "10.0.0.1", false, { "X-Forwarded-Proto": "http, https" }, false],
    ["a trusted proxy that says nothing", "10.0.0.1", false, { "X-Forwarded-For": "192.0.2.1" }, false],
    ["a trusted loopback peer without forwarding headers is a person", "127.0.0.2", false, {}, true],
    ["a unix peer that says https", null, false, { "X-Forwarded-Proto": "https" }, true],
    ["a unix peer that says nothing", null, false, {}, false],
  ];
  test.each(rows)("%s", (_, peer, encrypted, headers, secure) => {
    expect(caller(peer, headers, encrypted).secure).toBe(secure);
  });

  test("forwarding headers of an untrusted peer are reported, a trusted one's are not", () => {
    expect(caller("192.0.2.1", { "X-Real-IP": "1.1.1.1" }).untrustedForwarding).toBe(true);
    expect(caller("10.0.0.1", { "X-Real-IP": "1.1.1.1" }).untrustedForwarding).toBe(false);
  });
});
