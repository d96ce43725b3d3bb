import { describe, expect, test } from "bun:test";
import { formatDnsServer, tryParseDnsServer } from "../../src/dns/server.ts";

describe("a server of a resolver", () => {
  test.each([
    ["IPv6", "2001:db8::53", "[2001:db8::53]:53"],
    ["IPv6 with a port", "[2001:db8::53]:5353", "[2001:db8::53]:5353"],
    ["IPv4", "192.0.2.53", "192.0.2.53:53"],
    ["IPv4 with a port", "192.0.2.53:5353", "192.0.2.53:5353"],
    ["a zone", "fe80::1%eth0", "[fe80::1%eth0]:53"],
    ["a zone as a URI has it", "[fe80::1%25eth0]:5353", "[fe80::1%eth0]:5353"],
    ["a zone and a port", "[fe80::1%eth0]:5353", "[fe80::1%eth0]:5353"],
    ["TLS", "tls://2001:db8::53", "tls://[2001:db8::53]:853"],
    ["TLS with a name", "tls://192.0.2.53#dns.example", "tls://192.0.2.53:853#dns.example"],
    [
      "TLS with a port and a name",
      "tls://[2001:db8::53]:8853#dns.example",
      "tls://[2001:db8::53]:8853#dns.example",
    ],
    ["HTTPS", "https://192.0.2.53/dns-query", "https://192.0.2.53:443/dns-query"],
    [
      "HTTPS with a port and a name",
      "https://[2001:db8::53]:8443/a/b?c=d#dns.example",
      "https://[2001:db8::53]:8443/a/b?c=d#dns.example",
    ],
  ])("%s", (_, text, shown) => {
    const server = tryParseDnsServer(text);
    expect(server && formatDnsServer(server)).toBe(shown);
    expect(tryParseDnsServer(shown)).toEqual(server);
  });

  test.each([
    ["nothing", ""],
    ["a name", "dns.example"],
    ["a name over TLS", "tls://dns.example"],
    ["port 0", "192.0.2.53:0"],
    ["IPv6 multicast", "ff02::fb"],
    ["IPv4 multicast", "224.0.0.251"],
    ["multicast over TLS", "tls://[ff02::fb]:853"],
    ["a zone of an address that has none", "2001:db8::1%eth0"],
    ["an empty zone", "fe80::1%"],
    ["a zone over TLS", "tls://fe80::1%eth0"],
    ["HTTPS without a path", "https://192.0.2.53"],
    ["TLS with a path", "tls://192.0.2.53/dns-query"],
    ["a path without a protocol", "192.0.2.53/dns-query"],
    ["a name without a protocol", "192.0.2.53#dns.example"],
    ["an empty name", "tls://192.0.2.53#"],
    ["an address as the name", "tls://192.0.2.53#192.0.2.53"],
    ["another protocol", "http://192.0.2.53/dns-query"],
    ["a user", "https://user@192.0.2.53/dns-query"],
    ["white space", "tls://192.0.2.53 "],
  ])("refused: %s", (_, text) => {
    expect(tryParseDnsServer(text)).toBeNull();
  });
});
