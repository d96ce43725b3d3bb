/** Rows of a trace that say what other rows or other traces know. */
import { expect, test } from "bun:test";
import type { Response } from "../../../src/icmp/prober/response.ts";
import { showHop } from "../../../src/tools/trace/hop.ts";
import { describeHop, type TraceHop } from "../../../src/tools/trace/responses.ts";
import { parseIpv6 } from "../../addr/parse.ts";

const [SOURCE, TARGET] = [parseIpv6("2001:db8::1"), parseIpv6("2001:db8::80")];
const ROUTER = parseIpv6("2001:db8:1::1");
const names = new Map([["2001:db8:1::1", "router.example"]]);

const answer = (type: number, from = ROUTER): Response => ({
  ...{ kind: "error", type, code: 0, parameter: 0, extensions: { mpls: [], interfaces: [] } },
  ...{ from, scopeId: 0, rttMs: 1, hopLimit: 55 },
});
const row = (hop: number, ...responses: Response[]) => describeHop(hop, responses, SOURCE, TARGET);
const shownAs = (hop: TraceHop, trace: readonly TraceHop[] | null) =>
  showHop(hop, names, { networks: null }, trace);

test.each<[string, TraceHop[], number | undefined]>([
  ["alone", [row(2, answer(3)), row(3)], 8],
  ["that answers at two hops", [row(2, answer(3)), row(3, answer(3))], undefined],
  ["that answers at two hops far apart", [row(2, answer(3)), row(9, answer(3))], undefined],
  ["that also says that the path ends", [row(2, answer(3)), row(3, answer(1))], 8],
  ["beside others", [row(2, answer(3)), row(3, answer(3, TARGET))], 8],
])("the asymmetry of an address %s", (_name, trace, asymmetry) => {
  expect(shownAs(trace[0] as TraceHop, trace).details?.asymmetry).toBe(asymmetry as number);
});

test.each<[string, Response | null | undefined, Omit<ReturnType<typeof showHop>, "hop">]>([
  [
    "others met one address",
    answer(3),
    {
      ip: "2001:db8:1::1",
      hostname: "router.example",
      rtt: null,
      details: { unanswered: "seen-by-others" },
    },
  ],
  [
    "others met limits",
    null,
    { ip: null, hostname: null, rtt: null, details: { unanswered: "rate-limited" } },
  ],
  ["nothing is known", undefined, { ip: null, hostname: null, rtt: null }],
])("a silent hop at which %s", (_name, others, shown) => {
  const hop = { ...row(2), others };
  expect(shownAs(hop, [row(1, answer(3))])).toEqual({ hop: 2, ...shown });
  // A node of several traces shows only its own.
  expect(shownAs(hop, null)).toEqual({ hop: 2, ip: null, hostname: null, rtt: null });
});
