/** The prices of requests, by the endpoints and as docs/api.md says. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { priceOf } from "../../src/api/parameters.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";

const PAGE = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");

/** The price of a request while some locations can be asked. */
function price(request: string, locations = 0): number {
  const [path = "", query = ""] = request.split("?");
  const [, name, ...segments] = path.split("/");
  const endpoint = ENDPOINTS.find((each) => {
    const [, own, ...others] = each.path.split("/");
    return own === name && others.length === segments.length;
  });
  const sent: Record<string, string[]> = {};
  for (const [name, value] of new URLSearchParams(query))
    sent[name] = [...(sent[name] ?? []), value];
  const names = Array.from({ length: locations }, (_, at) => `n${at}`);
  const known = new Map([
    ["all", names],
    ["eu", names.slice(0, 5)],
    ["nl", names.slice(3, 7)],
  ]);
  return priceOf(endpoint ?? { parameters: {} }, sent, () => known);
}

const rows = [...PAGE.matchAll(/^\| `(\/\S+)` \| (\d+) \|$/gm)].map(
  ([, request = "", cost]) => [request, Number(cost)] as const,
);

test("the table in docs/api.md has rows", () => expect(rows.length).toBeGreaterThan(6));

test.each(rows)("%s costs %i, as docs/api.md says", (request, cost) =>
  expect(price(request)).toBe(cost),
);

// biome-ignore format: a table
test.each([
  ["/dns/a.test?resolver=resolver_c&dnssec=yes", 0, 1],
  ["/dns/a.test?from=all&resolver=all", 16, 48],
  ["/dns/a.test?resolver=zone", 0, 20],
  ["/dns/a.test?from=all", 0, 1],
  ["/ping/::1?from=all", 32, 32],
  ["/ping/::1?from=all", 33, 32],
  ["/ping/::1?from=all&limit=5", 33, 5],
  ["/ping/::1?from=all&limit=99", 33, 32],
  ["/ping/::1?from=eu", 33, 5],
  ["/ping/::1?from=eu,nl", 33, 7],
  ["/ping/::1?from=eu,nl,n0,x", 33, 8],
  ["/ping/::1?from=eu,nl&limit=3", 33, 3],
  ["/ping/::1?from=n1&limit=3", 33, 1],
  ["/ping/::1?limit=3", 33, 1],
  ["/ping/::1?from=a,b,a,b", 9, 2],
  ["/ping/::1?from=a,,b", 9, 1],
  ["/mtr/::1?from=a,b,c&rounds=9", 0, 3],
  ["/mtu/::1?from=a,b", 0, 2],
  ["/check/::1?port=443", 0, 12],
  ["/traceroute/::1?paths=1", 0, 1],
  ["/traceroute/::1?paths=4", 0, 1],
  ["/traceroute/::1?paths=5", 0, 2],
  ["/traceroute/::1?paths=16", 0, 4],
  ["/traceroute/::1?paths=17", 0, 1],
  ["/traceroute/::1?paths=-8", 0, 1],
  ["/dns/a.test?resolver=every", 0, 1],
  ["/ping/::1?resolver=all&paths=16", 0, 1],
  ["/watch?points=1", 0, 10],
  ["/watch?points=145", 0, 1],
  ["/watch/here?points=2000", 0, 1],
  ["/watch/here?since=8d&until=1d", 0, 1],
  ["/watch/here?since=0001-01-01T00:00:00Z", 0, 52],
  ["/watch/here?since=1h&until=2d", 0, 1],
  ["/watch/here?since=ever", 0, 1],
])("%s with %i locations costs %i", (request, locations, cost) => {
  expect(price(request, locations)).toBe(cost);
});

test("a query without a parameter that has a price costs one, and nothing of it is parsed", () => {
  const schema = () => {
    throw new Error("parsed");
  };
  const about = { in: "query", description: "", example: "", schema } as const;
  const parameters = { priced: { ...about, price: () => 2 }, free: about };
  const priceOfOnly = (name: string) => priceOf({ parameters }, { [name]: ["1"] }, () => new Map());
  for (const name of ["free", "unknown", "constructor", "__proto__"]) {
    expect(priceOfOnly(name)).toBe(1);
  }
  expect(() => priceOfOnly("priced")).toThrow("parsed");
});

test("what a parameter is without being sent costs one", () => {
  for (const { parameters } of ENDPOINTS) {
    for (const { schema, price } of Object.values(parameters)) {
      if (price) expect(price(schema().parse(undefined), {}, () => new Map()) || 1).toBe(1);
    }
  }
});
