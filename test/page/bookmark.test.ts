/** The meaning of a URL's hash on the page, and the call that it makes. */
import { describe, expect, test } from "bun:test";
import { type Bookmark, hashOf, parseBookmark, pathOf } from "../../src/page/browser/bookmark.ts";
import { pageTools } from "./page-tools.ts";

const NAMES = pageTools.map(({ name }) => name);

const parse = (hash: string) => parseBookmark(hash, NAMES);

const mark = (tool: Bookmark["tool"], subject = "", options = {}): Bookmark => ({
  ...{ tool, subject, options },
});

describe("a hash", () => {
  test.each<[string, Bookmark]>([
    ["", mark("my-ip")],
    ["#/", mark("my-ip")],
    ["#/dns", mark("dns")],
    ["#/dns/www.example.test", mark("dns", "www.example.test")],
    ["#/validate/2001:db8::1", mark("validate", "2001:db8::1")],
    ["#/validate/2001:db8::%2F64", mark("validate", "2001:db8::/64")],
    ["#/trace/a?maxHops=3&from=ams,fra", mark("trace", "a", { maxHops: "3", from: "ams,fra" })],
    ["#/ping/%3Cb%3E%20%25", mark("ping", "<b> %")],
  ])("%s is the one form of its bookmark", (hash, bookmark) => {
    expect(parse(hash)).toEqual(bookmark);
    if (hash !== "") expect(hashOf(bookmark)).toBe(hash);
  });

  test.each<[string, Bookmark, why: string]>([
    ["#/nothing/here", mark("my-ip"), "no tool has this name"],
    ["#/my-ip/::1", mark("my-ip"), "nothing is asked of the first tool"],
    ["#/constructor", mark("my-ip"), "no tool has this name"],
    ["#/dns/%E0%A4%A", mark("dns", "%E0%A4%A"), "it is no UTF-8"],
    ["#/validate/2001:db8::/64", mark("validate", "2001:db8::/64"), "the slash is not encoded"],
    ["#trace/a", mark("trace", "a"), "the first slash is missing"],
  ])("%s is read too", (hash, bookmark) => {
    expect(parse(hash)).toEqual(bookmark);
  });
});

test.each<[string, Bookmark]>([
  ["myip", mark("my-ip")],
  ["validate?address=2001:db8::1", mark("validate", "2001:db8::1")],
  ["dns/www.example.test?type=MX&resolver=all", mark("dns", "www.example.test", { type: "MX" })],
  ["dns/a%20b%24(id)?resolver=all", mark("dns", "a b$(id)")],
  ["dns/%24%26?resolver=all", mark("dns", "$&")],
  ["dns/%E3%80%82?type=NS&resolver=all", mark("dns", ".", { type: "NS" })],
  ["ping/fe80::1%25eth0?count=2", mark("ping", "fe80::1%eth0", { count: "2" })],
  ["traceroute/..%2F..%2F?from=ams,fra", mark("trace", "../../", { from: "ams,fra" })],
])("%s is the call", (path, bookmark) => {
  const tool = pageTools.find(({ name }) => name === bookmark.tool);
  expect(tool && pathOf(tool, bookmark)).toBe(path);
});
