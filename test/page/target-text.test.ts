/** The target in what people paste. */
import { expect, test } from "bun:test";
import { targetIn } from "../../src/page/browser/target-text.ts";

test.each<[pasted: string, target: string]>([
  ["https://www.example.com/path?q=a@b#c", "www.example.com"],
  ["HTTPS://user:secret@www.example.com:8443/", "www.example.com"],
  ["http://[2001:db8::1]:8080/index.html", "2001:db8::1"],
  ["ssh://git@[fe80::1%25eth0]:22", "fe80::1%eth0"],
  ["www.example.com:443", "www.example.com"],
  ["www.example.com/", "www.example.com"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["[2001:db8::1]:53", "2001:db8::1"],
  ["2001:db8::/32", "2001:db8::"],
  ["mailto:postmaster@example.com", "example.com"],
  ["Postmaster <postmaster@example.com>,", "example.com"],
  ["<https://example.com>", "example.com"],
  ['"example.com";', "example.com"],
  ["(2001:db8::1)", "2001:db8::1"],
  ["“example.com”", "example.com"],
  ["„https://example.com/“", "example.com"],
  ["«example.com»", "example.com"],
  ["  example.com\n", "example.com"],
])("%p means %p", (pasted, target) => {
  expect(targetIn(pasted)).toBe(target);
  expect(targetIn(target)).toBe(target);
});

test.each<[text: string, why: string]>([
  ["2001:db8::1:80", "the last part of an address is no port"],
  ["::ffff:192.0.2.1", "an address"],
  ["192.0.2.1", "an address"],
  ["fe80::1%eth0", "an address with its zone"],
  ["example.com.", "an absolute name"],
  ["_dmarc.example.com", "a name with an underscore"],
  ["we\\.ird.example.", "an escaped name"],
  ["1.0/25.2.0.192.in-addr.arpa", "a reverse name of a part of a network"],
  ["a..example", "what is wrong is told by the service"],
  ["@", "nothing is left"],
  ["https://", "nothing is left"],
])("%p stays: %s", (text) => {
  expect(targetIn(text)).toBe(text);
});
