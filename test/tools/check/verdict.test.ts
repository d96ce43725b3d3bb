/** The conclusion of a check, over random steps: nothing is claimed that no step has found. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { CODES, FAILURES, FINDINGS, type Finding } from "../../../src/tools/check/findings.ts";
import { judgeMtr, judgeNames, judgePort, judgeTrace } from "../../../src/tools/check/judge.ts";
import type { Step } from "../../../src/tools/check/result.ts";
import {
  checkVerdict,
  compareFamilies,
  isWeb,
  MAX_ADDRESSES,
} from "../../../src/tools/check/verdict.ts";
import type { DnsResult } from "../../../src/tools/dns/result.ts";
import type { MtrResult } from "../../../src/tools/mtr/result.ts";
import TRACE from "../../../src/tools/trace/example.json" with { type: "json" };
import type { TraceResult } from "../../../src/tools/trace/result.ts";

const NAME = "www.example.com";
const RUNS = { numRuns: 2000, seed: 29 } as const;

/** Findings of each step of an address. */
const FOUND = {
  policy: ["not-public", "not-allowed", "special-address", "own-machine"],
  echo: ["no-echo"],
  tcp: ["port-closed", "not-opened", "port-silent", "no-answer", "unreachable", "not-sent"],
  tls: ["tls-silent", "not-tls", "certificate-expired", "certificate-name", "certificate-expires"],
  http: ["http-silent", "http-error", "not-http", "redirect-without-ipv6"],
} as const satisfies Partial<Record<Step["name"], readonly Finding[]>>;

type AddressStep = keyof typeof FOUND;

const step = (name: Step["name"], ip: string | null, outcome: Finding | "ok" | "skipped"): Step => {
  const finding = outcome === "ok" || outcome === "skipped" ? undefined : outcome;
  return {
    name,
    ...(ip !== null && { ip }),
    status: finding ? FINDINGS[finding].status : (outcome as "ok" | "skipped"),
    ...(finding && { finding }),
    text: `Evidence of ${name} at ${ip}.`,
    ms: 1,
    ...(name === "tcp" && outcome === "ok" && { rtt: 10 }),
  };
};

/** The fate of one address: its steps up to the first failure, or until the time is over. */
const addressSteps = (ip: string) =>
  fc
    .record({
      echo: fc.constantFrom("ok", "skipped", ...FOUND.echo),
      rest: fc.tuple(
        ...(["policy", "tcp", "tls", "http"] as const).map((name) =>
          fc.tuple(
            fc.constant<AddressStep>(name),
            fc.oneof(
              { arbitrary: fc.constant("ok" as const), weight: 6 },
              fc.constant("skipped" as const),
              fc.constantFrom(...FOUND[name]),
            ),
          ),
        ),
      ),
    })
    .map(({ echo, rest }) => {
      const steps = rest.map(([name, outcome]) => step(name, ip, outcome));
      const end = steps.findIndex(({ status }) => status === "fail");
      return [step("echo", ip, echo), ...(end < 0 ? steps : steps.slice(0, end + 1))];
    });

const ipsOf = (count: number) => Array.from({ length: count }, (_, at) => `2001:db8::${at + 1}`);

const checks = fc.integer({ min: 1, max: MAX_ADDRESSES }).chain((count) =>
  fc.record({
    count: fc.constant(count),
    port: fc.constantFrom(443, 80, 22),
    ipv6: fc.tuple(...ipsOf(count).map(addressSteps)).map((all) => all.flat()),
    ipv4: fc.oneof(fc.constant([]), addressSteps("192.0.2.1")),
    more: fc
      .tuple(
        fc.subarray([
          step("compare", null, "slower"),
          step("mtr", "2001:db8::1", "path-loss"),
          step("trace", "2001:db8::1", "ok"),
        ]),
        fc.constantFrom("large-packets", "large-doubtful", "ok", "skipped"),
      )
      .map(([some, mtu]) => [...some, step("mtu", "2001:db8::1", mtu)]),
    names: fc.constantFrom(...(["ok", "resolvers-differ", "translator-only"] as const)),
  }),
);

type Check = typeof checks extends fc.Arbitrary<infer Value> ? Value : never;

const stepsOf = ({ names, ipv6, ipv4, more }: Omit<Check, "count" | "port">) => [
  step("names", null, names),
  ...ipv6,
  ...ipv4,
  ...more,
];

const codeOf = (port: number, steps: readonly Step[]) => checkVerdict(NAME, port, steps).code;

/** The steps of an address that need the one before. */
const ORDER: readonly string[] = ["policy", "tcp", "tls", "http"];

/** From no finding to a failure; that nothing is known is between. */
function severityOf(code: ReturnType<typeof codeOf>): number {
  if (code === "works") return 0;
  if (code === "partly") return 2;
  if (code === "unknown") return 3;
  return FINDINGS[code].status === "warn" ? 1 : 4;
}

describe("a verdict over random steps", () => {
  const each = (
    check: (verdict: ReturnType<typeof checkVerdict>, failed: number, some: Described) => void,
  ) => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(checks, ({ count, port, ipv6, ipv4, more, names }) => {
        const steps = stepsOf({ names, ipv6, ipv4, more });
        const failed = ipsOf(count).filter((ip) =>
          steps.some((each) => each.ip === ip && each.status === "fail"),
        ).length;
        const proof = isWeb(port) ? "http" : "tcp";
        const proven = ipv6.filter(({ name, status }) => name === proof && status === "ok");
        const verdict = checkVerdict(NAME, port, steps);
        seen.add(verdict.code);
        check(verdict, failed, { steps, count, proven: proven.length });
      }),
      RUNS,
    );
    return seen;
  };
  interface Described {
    readonly steps: readonly Step[];
    readonly count: number;
    readonly proven: number;
  }

  test("says that a name works only if an address has answered and none has failed", () => {
    const seen = each(({ code, text }, failed, { proven }) => {
      const isWell = failed === 0 && proven > 0;
      expect((FAILURES as readonly string[]).includes(code) || code === "partly").toBe(
        failed > 0 && code !== "unknown",
      );
      if (text.startsWith(`${NAME} works over IPv6`)) expect(proven).toBeGreaterThan(0);
      if (code === "works") expect(isWell).toBe(true);
    });
    // The steps were varied enough to say something.
    expect(seen).toContain("works");
    expect(seen).toContain("unknown");
    expect(seen.size).toBeGreaterThan(15);
  });

  test("is that a name works partly if and only if some addresses have failed and another has answered", () => {
    each(({ code }, failed, { count, proven }) => {
      expect(code === "partly").toBe(failed > 0 && failed < count && proven > 0);
    });
  });

  test("names a failure that a step has found, of the address that it names", () => {
    each(({ code, text }, _, { steps }) => {
      if (!(CODES as readonly string[]).includes(code) || code === "mtu-black-hole") return;
      const found = steps.filter(({ finding }) => finding === code);
      expect(found.length).toBeGreaterThan(0);
      if (FINDINGS[code as Finding].status === "fail") {
        expect(found.some(({ ip = "" }) => text.includes(ip))).toBe(true);
      }
    });
  });

  test("is one sentence about the name, and behind it only evidence of steps and advice", () => {
    each(({ code, text }, _, { steps }) => {
      const [, first = "", evidence] = /^(.+?)\.(?: (.+))?$/.exec(text) ?? [];
      expect(first).toContain(NAME);
      expect(first).not.toMatch(/undefined|null|NaN|\{port\}/);
      const advice = FINDINGS[code as Finding]?.advice?.replace(" {port} ", " ");
      const plain = evidence?.replace(/ port \d+ /, " port ");
      if (advice) expect(plain).toEndWith(advice);
      const texts = [
        ...steps.map((each) => each.text),
        ...Object.values(FINDINGS).map(({ advice }) => advice),
      ];
      for (const said of evidence?.split(/(?<=\.) /) ?? []) {
        expect(texts).toContain(said.replace(/ port \d+ /, " port {port} "));
      }
    });
  });

  test("does not depend on the order in which steps have ended", () => {
    const shuffled = checks.chain((check) =>
      fc.tuple(fc.constant(check), fc.shuffledSubarray(stepsOf(check), { minLength: 0 })),
    );
    fc.assert(
      fc.property(shuffled, ([{ port }, some]) => {
        const sorted = some.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)));
        expect(codeOf(port, some)).toBe(codeOf(port, sorted));
      }),
      RUNS,
    );
  });

  test("is about IPv6: no fate of IPv4 changes its code", () => {
    fc.assert(
      fc.property(checks, ({ ipv4, ...check }) => {
        const [one, none] = [stepsOf({ ...check, ipv4 }), stepsOf({ ...check, ipv4: [] })];
        expect(codeOf(check.port, one)).toBe(codeOf(check.port, none));
      }),
      RUNS,
    );
  });

  test("is never better for one fault more", () => {
    const faulty = checks.chain((check) => {
      const steps = stepsOf(check);
      const sound = steps.filter(
        ({ name, ip, status }) => ip?.includes(":") && status === "ok" && name in FOUND,
      );
      return fc.record({
        port: fc.constant(check.port),
        steps: fc.constant(steps),
        at: fc.constantFrom(...(sound.length > 0 ? sound : steps)),
        finding: fc.integer({ min: 0 }),
      });
    });
    fc.assert(
      fc.property(faulty, ({ port, steps, at, finding }) => {
        const findings = FOUND[at.name as AddressStep] ?? [];
        const worse = findings[finding % findings.length];
        if (worse === undefined || at.finding) return;
        const now = step(at.name, at.ip ?? null, worse);
        const isCut = ({ name, ip }: Step) =>
          ip === at.ip && ORDER.indexOf(name) > ORDER.indexOf(at.name);
        const more = steps
          .filter((each) => now.status !== "fail" || !isCut(each))
          .map((each) => (each === at ? now : each));
        expect(severityOf(codeOf(port, more))).toBeGreaterThanOrEqual(
          severityOf(codeOf(port, steps)),
        );
      }),
      RUNS,
    );
  });

  test("says of a family that it works, or that it does not, and not both", () => {
    each(({ code, text }, _, { steps }) => {
      const isFailure = (FAILURES as readonly string[]).includes(code);
      expect(/works over IPv6/.test(text.split(" is not known")[0] ?? "") && isFailure).toBe(false);
      expect(/over IPv4 it works/.test(text) && /over IPv4 \(\S+\) it does not/.test(text)).toBe(
        false,
      );
      const isIpv4Broken = steps.some(
        ({ ip, status, finding }) =>
          ip === "192.0.2.1" && status === "fail" && finding !== "not-sent",
      );
      if (/over IPv4 \(/.test(text)) expect(isIpv4Broken).toBe(true);
    });
  });

  test("counts only the addresses that were connected to as all of a name's", () => {
    each(({ text }) => expect(text).not.toContain("its four addresses"));
  });
});

test("a port that no SYN has left for in time is not judged", () => {
  const portOf = (lost: readonly object[]) =>
    judgePort({ details: { lost, verdict: { code: "not-sent", text: "" } } } as never, true);
  expect(portOf([])).toBeNull();
  expect(portOf([{ reason: "not-sent", errno: "EPERM" }])).toEqual({
    finding: "not-sent",
    text: "",
  });
});

test("the step of the names has the addresses of all resolvers, as any of them may be tried", () => {
  const reply = (value: string) => ({ outcome: "answer", records: [{ type: "AAAA", value }] });
  const resolvers = ["2001:db8::1", "2001:db8::2", "2001:db8::1"].map(reply);
  const details = { resolvers, unanswered: [], verdict: { code: "answer", text: "" } };
  const six = { ...reply("2001:db8::1"), details } as unknown as DnsResult;
  const four = { records: [], details } as unknown as DnsResult;
  expect(judgeNames(six, four, six)).toEqual({
    text: "It has 2 IPv6 addresses (2001:db8::1 and 2001:db8::2).",
  });
});

describe("loss", () => {
  const judge = (lost: number, isOverTcp: boolean, to?: number, errors = 0) => {
    const code = lost === 0 ? "no-loss" : lost < 3 ? "unclear" : "loss";
    const verdict = { code, text: "", ...(to !== undefined && { from: to - 1, to }) };
    const details = { verdict, toTarget: { sent: 20, errors, loss: lost * 5 }, reached: true };
    const document = { hops: [{}, {}, {}], details };
    return judgeMtr(document as unknown as MtrResult, isOverTcp).finding;
  };

  test("of one probe is chance, of two it is doubtful, and of more a finding", () => {
    const found = [0, 1, 2, 3, 20].map((lost) => judge(lost, true, 2));
    expect(found).toEqual([undefined, undefined, "path-doubtful", "path-loss", "path-loss"]);
  });

  test("of SYNs at the target alone is doubtful, as it may limit them", () => {
    expect([judge(9, true, 3), judge(9, true)]).toEqual(["path-doubtful", "path-doubtful"]);
  });

  test("does not count what an error has answered", () => {
    expect([judge(9, true, 2, 8), judge(9, true, 2, 7)]).toEqual([undefined, "path-loss"]);
  });

  test("of echo requests counts only before the target, which may answer only some", () => {
    expect([judge(9, false), judge(9, false, 3), judge(9, false, 2)]).toEqual([
      undefined,
      undefined,
      "path-loss",
    ]);
  });
});

describe("the families are compared", () => {
  const opened = (ip: string, rtt: number, rttMost = rtt): Step => ({
    ...step("tcp", ip, "ok"),
    rtt,
    rttMost,
  });

  test("by their least times, and one is called faster only if all of its times are, and by 5 ms", () => {
    const time = fc.double({ min: 0.05, max: 900, noNaN: true });
    const times = fc.tuple(time, fc.double({ min: 0, max: 300, noNaN: true }));
    fc.assert(
      fc.property(fc.array(times, { minLength: 1, maxLength: 4 }), times, (all, four) => {
        const seen = compareFamilies([
          ...all.map(([rtt, more], at) => opened(`2001:db8::${at + 1}`, rtt, rtt + more)),
          opened("192.0.2.1", four[0], four[0] + four[1]),
        ]);
        const six = all.toSorted(([a], [b]) => a - b)[0] as (typeof all)[number];
        const isClear = six[0] > four[0] + four[1] || four[0] > six[0] + six[1];
        const slower = isClear ? Math.round(six[0] - four[0]) : 0;
        const said = /^IPv4 connects (\d+) ms (faster|slower)\.$/.exec(seen?.text ?? "");
        if (Math.abs(slower) < 5) expect(seen?.text).toBe("IPv4 connects as fast.");
        else expect(Number(said?.[1]) * (said?.[2] === "faster" ? 1 : -1)).toBe(slower);
        expect(seen?.finding).toBe(slower >= 50 ? "slower" : undefined);
      }),
      RUNS,
    );
  });

  test("alike in both directions: what is slower by some milliseconds the other way round is faster by as many", () => {
    const time = fc.double({ min: 0.05, max: 900, noNaN: true });
    fc.assert(
      fc.property(time, time, time, time, (a, aMore, b, bMore) => {
        const said = (six: [number, number], four: [number, number]) =>
          compareFamilies([opened("2001:db8::1", ...six), opened("192.0.2.1", ...four)])?.text;
        const turned = said([b, b + bMore], [a, a + aMore])?.replace("slower", "-");
        const text = said([a, a + aMore], [b, b + bMore])?.replace("faster", "-");
        expect(turned?.replace("faster", "slower").replace("-", "faster")).toBe(
          text?.replace("-", "faster"),
        );
      }),
      RUNS,
    );
  });

  test("and chance alone calls one faster in less than 2 of 100 comparisons", () => {
    const five = fc.array(fc.double({ min: 10, max: 300, noNaN: true }), {
      minLength: 5,
      maxLength: 5,
    });
    const pairs = fc.sample(fc.tuple(five, five), { numRuns: 4000, seed: 29 });
    const ofTimes = (ip: string, all: number[]) => opened(ip, Math.min(...all), Math.max(...all));
    const called = pairs.filter(([six, four]) => {
      const seen = compareFamilies([ofTimes("2001:db8::1", six), ofTimes("192.0.2.1", four)]);
      return seen?.text !== "IPv4 connects as fast.";
    });
    expect(called.length / pairs.length).toBeLessThan(0.02);
  });

  test("not if one of them has not answered", () => {
    expect(compareFamilies([opened("2001:db8::1", 3)])).toBeNull();
    expect(compareFamilies([opened("192.0.2.1", 3)])).toBeNull();
    expect(compareFamilies([])).toBeNull();
  });

  test("by their responses: an error of IPv6 alone is a finding, a redirect or an error of both is none", () => {
    const head = (ip: string, httpStatus: number): Step => ({
      ...step("http", ip, "ok"),
      httpStatus,
    });
    const statuses = [200, 204, 301, 302, 400, 403, 404, 429, 500, 503, 599];
    for (const six of statuses) {
      for (const four of statuses) {
        const seen = compareFamilies([head("2001:db8::1", six), head("192.0.2.1", four)]);
        expect(seen?.finding).toBe(six >= 400 && four < 400 ? "http-differs" : undefined);
      }
    }
  });
});

test.each([
  ["some hop", TRACE.hops, false],
  ["no hop", TRACE.hops.map((hop) => ({ ...hop, ip: null })), true],
])("a trace that %s answers says whether this machine may be at fault", (_, hops, isOwn) => {
  const unanswered = { ...TRACE, hops, details: { ...TRACE.details, reached: false } };
  const { status, text } = judgeTrace(unanswered as unknown as TraceResult);
  expect([status, text.includes("this machine may be at fault")]).toEqual(["warn", isOwn]);
});
