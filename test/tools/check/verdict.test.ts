/** The conclusion of a check over random ledgers: nothing is claimed that was not counted. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compareFamilies, slownessOf } from "../../../src/tools/check/compare.ts";
import {
  CODES,
  FAILURES,
  FINDINGS,
  type Finding,
  inOrder,
} from "../../../src/tools/check/findings.ts";
import { judgeMtr, judgeNames } from "../../../src/tools/check/judge.ts";
import {
  type Attempt,
  areBare,
  attemptsOf,
  isIpv6,
  transactionsOf,
  withRetransmitted,
  worked,
} from "../../../src/tools/check/ledger.ts";
import type { Seen, Step } from "../../../src/tools/check/result.ts";
import { checkVerdict, type Hearing } from "../../../src/tools/check/verdict.ts";
import { stepOf, viewsOf } from "../../../src/tools/check/views.ts";
import type { DnsResult } from "../../../src/tools/dns/result.ts";
import type { MtrResult } from "../../../src/tools/mtr/result.ts";
import { randomFrom } from "../../lab/simulation.ts";

const NAME = "www.example.com";
const IPV4 = "192.0.2.1";
const ROUTER = "2001:db8:ffff::1";

const LEDGERS = 20_000;
/** Of so many ledgers, one is judged again, in another order and without IPv4: each takes as long as the first time. */
const ONE_AGAIN = 4;

/** How each kind of attempt can fail. */
const FAILS = {
  connect: ["timeout", "refused", "not-sent"],
  handshake: ["tls-silent", "tls-failed", "not-tls", "certificate-expired", "certificate-chain"],
  request: ["http-silent", "http-error", "not-http", "response-incomplete"],
  syn: ["timeout", "refused", "no-route", "prohibited", "hop-limit-exceeded", "unknown"],
  echo: ["timeout", "no-route", "unknown"],
} as const;

/** How often attempts of each kind fail, from when on, and why. */
interface Fate {
  readonly share: number;
  readonly endsMs: number;
  readonly reason: string;
}

type Fates = Readonly<Record<keyof typeof FAILS, Fate>>;

const isFinding = (reason: string): reason is Finding => CODES.includes(reason as Finding);

/** The attempts at an address by its fates. */
function rowsOf(ip: string, port: number, fates: Fates, random: () => number, endMs = Infinity) {
  const rows: Attempt[] = [];
  /** How far a transaction was when the check ended, in milliseconds since it began. */
  const isCut = (atMs: number, partMs: number) => atMs + partMs > endMs;
  const add = (
    kind: keyof typeof FAILS,
    turn: number,
    atMs: number,
    more: Partial<Attempt> = {},
  ) => {
    const { share, endsMs, reason } = fates[kind];
    const isError = ["no-route", "prohibited", "hop-limit-exceeded"].includes(reason);
    const isShown = reason !== "response-incomplete" || more.isRead;
    const isFailed = isShown && (atMs >= endsMs || random() < share);
    const failure = isFailed && {
      ...{ reason, text: `It fails (${reason}).` },
      ...(isFinding(reason) && { finding: reason }),
      ...(isError && { at: ROUTER }),
    };
    rows.push({
      kind,
      ip,
      turn,
      atMs,
      ms: 10,
      reason: null,
      text: "It works.",
      ...more,
      ...(failure && { ...failure, isOpen: false }),
    });
    return !isFailed;
  };
  for (let turn = 1; turn <= 10; turn++) {
    const atMs = 320 * (turn - 1);
    const isRead = turn % 4 === 1;
    const open = port === 22 ? {} : { isOpen: true };
    if (isCut(atMs, 10) || !add("connect", turn, atMs, open) || port === 22) continue;
    if (port === 443 && (isCut(atMs, 100) || !add("handshake", turn, atMs, open))) continue;
    if (!isCut(atMs, isRead ? 2000 : 200)) add("request", turn, atMs, { httpStatus: 200, isRead });
  }
  if (!isIpv6(ip)) return rows;
  for (let turn = 1; turn <= 20; turn++) {
    add("syn", turn, 160 * (turn - 1) + 1);
    add("echo", turn, 160 * (turn - 1) + 2);
  }
  return rows;
}

const ipOf = (at: number) => `2001:db8::${at + 1}`;

const step = (name: Step["name"], ip: string | null, finding?: Finding): Step =>
  stepOf(name, ip, { text: `Evidence of ${name}.`, ...(finding && { finding }) } as Seen, 5);

/** A check that has heard anything. */
type Heard = Hearing & { readonly port: number };

/** A check that heard what a seed decides. */
function hearingOf(seed: number): Heard {
  const random = randomFrom(seed);
  const oneOf = <T>(...values: readonly T[]) => values[Math.floor(random() * values.length)] as T;
  const fateOf = (kind: keyof typeof FAILS): Fate => ({
    share: oneOf(0, 0, 0, 0, 0, 0.1, 0.3, 1),
    endsMs: oneOf(Infinity, Infinity, Infinity, Infinity, 1000, 2500),
    reason: oneOf<string>(...FAILS[kind]),
  });
  const fates = (): Fates => ({
    connect: fateOf("connect"),
    handshake: fateOf("handshake"),
    request: fateOf("request"),
    syn: fateOf("syn"),
    echo: fateOf("echo"),
  });
  const port = oneOf(443, 80, 22);
  const ips = Array.from({ length: oneOf(1, 2, 3) }, (_, at) => ipOf(at));
  const all = oneOf(true, false) ? [...ips, IPV4] : ips;
  const endMs = oneOf(Infinity, Infinity, Infinity, 1500, 3000);
  return {
    port,
    addresses: ips.length + oneOf(0, 0, 5),
    steps: [
      step("names", null, oneOf<Finding | undefined>(undefined, undefined, "resolvers-differ")),
      step("mtu", ipOf(0), oneOf<Finding | undefined>(undefined, undefined, "large-packets")),
      step("trace", ipOf(0)),
    ],
    rows: all.flatMap((ip) => rowsOf(ip, port, fates(), random, endMs)),
  };
}

const verdictOf = ({ port, ...hearing }: Heard) => checkVerdict(NAME, port, hearing);

/** All that speaks against IPv6 in a ledger, but what is no packet of a client. */
function failuresIn(rows: readonly Attempt[]): Attempt[] {
  const six = withRetransmitted(rows).filter(({ ip }) => isIpv6(ip));
  return six.filter((row) => {
    const here = six.filter(({ ip }) => ip === row.ip);
    const of = (kind: Attempt["kind"]) => here.filter((each) => each.kind === kind);
    const isBare = row.kind === "syn" && areBare(of("syn"), of("connect"));
    return !worked(row) && row.kind !== "echo" && row.reason !== "unknown" && !isBare;
  });
}

/** The numbers that a text counts, as `3 of 10 SYN`. */
const COUNTED =
  /(\d+) of (\d+) (transaction|connection attempt|connection|TLS handshake|HTTP request|SYN|echo request)s?\b/g;

const KINDS_OF: Readonly<Record<string, readonly string[]>> = {
  ...{ connection: ["connect"], "TLS handshake": ["handshake"], "HTTP request": ["request"] },
  ...{ SYN: ["syn"], "echo request": ["echo"], "connection attempt": ["connect", "syn"] },
};

/** The numbers that a ledger has for a noun: of all addresses or of one, and of all attempts or of those that are judged. */
function numbersOf(rows: readonly Attempt[], noun: string): ReadonlySet<string> {
  const isGone = ({ reason }: Attempt) => reason === "timeout" || reason === "retransmitted";
  const sets = [rows, ...Map.groupBy(rows, ({ ip }) => ip).values()].flatMap((set) => {
    const all =
      noun === "transaction"
        ? transactionsOf(set)
        : set.filter(({ kind }) => KINDS_OF[noun]?.includes(kind));
    const known = all.filter(({ reason }) => reason !== "unknown");
    return [
      ...[all, known, all.filter(({ isRead }) => isRead)],
      known.filter((row) => row.kind !== "syn" || !isGone(row)),
      known.filter((row) => row.reason === null || isGone(row)),
      all.filter(({ kind }) => kind === "connect"),
    ];
  });
  return new Set(
    sets.flatMap((set) => {
      const groups = [...Map.groupBy(set, ({ reason }) => reason).values()];
      const good = set.filter(worked).length;
      const counts = [good, set.length - good, ...groups.map(({ length }) => length)];
      return [...counts, set.filter(isGone).length].map((count) => `${count} of ${set.length}`);
    }),
  );
}

/** What is wrong with the verdict on a check. */
function mistakesIn(hearing: Heard, seed: number) {
  const { rows } = hearing;
  const verdict = verdictOf(hearing);
  const { code, answer, fault, headline, evidence, advice, text } = verdict;
  const six = withRetransmitted(rows.filter(({ ip }) => isIpv6(ip)));
  const wrong: Record<string, boolean> = {
    "works, with a failure": code === "works" && failuresIn(rows).length > 0,
    "works, and read no body":
      code === "works" && hearing.port !== 22 && !six.some(({ isRead }) => isRead),
    "works, and is not said so": code === "works" && (answer !== "yes" || fault !== null),
    "has no fault": code !== "works" && fault === null,
    "fails, and the answer is yes": FAILURES.includes(code as Finding) && answer === "yes",
    "has other parts": text !== [headline, evidence, advice].filter(Boolean).join(" "),
    "is not about the name": !headline.includes(NAME) || !headline.endsWith("."),
    "has a hole": /undefined|null|NaN|\{port\}|Infinity/.test(text),
  };
  const numbers = new Map<string, ReadonlySet<string>>();
  for (const [words, , , noun = ""] of text.matchAll(COUNTED)) {
    const counted = /^\d+ of \d+/.exec(words)?.[0] ?? "";
    const all = numbers.getOrInsertComputed(noun, (each) => numbersOf(six, each));
    wrong[`does not count ${words}`] = !all.has(counted);
  }
  const documented = attemptsOf(rows);
  const sum = (counts: readonly number[]) => counts.reduce((all, one) => all + one, 0);
  wrong["attempts do not add up"] =
    sum(documented.map(({ made }) => made)) !== rows.length ||
    documented.some((each) => sum(Object.values(each.failed)) !== each.made - each.worked);
  if (seed % ONE_AGAIN === 0) Object.assign(wrong, mistakesAgain(hearing, seed));
  return { code, found: Object.keys(wrong).filter((name) => wrong[name]) };
}

/** What the verdict on a check depends on, and should not. */
function mistakesAgain(hearing: Heard, seed: number): Record<string, boolean> {
  const { rows, steps, port } = hearing;
  const verdict = verdictOf(hearing);
  const random = randomFrom(seed);
  const mixed = <T>(all: readonly T[]) =>
    all
      .map((each) => [random(), each] as const)
      .toSorted(([a], [b]) => a - b)
      .map(([, each]) => each);
  const other = verdictOf({ ...hearing, rows: mixed(rows), steps: mixed(steps) });
  const alone = checkVerdict(NAME, port, { ...hearing, rows: rows.filter(({ ip }) => isIpv6(ip)) });
  return {
    "depends on the order": JSON.stringify(other) !== JSON.stringify(verdict),
    "depends on IPv4": alone.code !== verdict.code,
  };
}

test("over 20,000 random ledgers, a verdict claims nothing that was not counted", () => {
  const seen = new Map<string, number>();
  const mistakes: object[] = [];
  for (let seed = 1; seed <= LEDGERS; seed++) {
    const { code, found } = mistakesIn(hearingOf(seed), seed);
    seen.set(code, (seen.get(code) ?? 0) + 1);
    if (found.length > 0) mistakes.push({ seed, found });
  }
  expect(mistakes.slice(0, 5)).toEqual([]);
  // The ledgers were varied enough to say something.
  const wanted = ["works", "partly", "sometimes", "stopped", "unknown", "path-loss", "rejected"];
  for (const code of wanted)
    expect({ code, count: seen.get(code) ?? 0 }).toSatisfy(({ count }) => count > 9);
});

/** Rows of one kind at an address, one for each reason; `.` is one that has worked. */
const rowsFor = (
  kind: Attempt["kind"],
  reasons: readonly (string | null)[],
  more: Partial<Attempt> = {},
) =>
  reasons.map((reason, at): Attempt => {
    const finding = reason !== null && isFinding(reason) ? { finding: reason } : {};
    const read = kind === "request" ? { isRead: at % 4 === 0 } : {};
    const about = { kind, ip: ipOf(0), turn: at + 1, atMs: at * 300, ms: 10, reason };
    return { ...about, ...finding, ...read, ...more };
  });

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

/** A site whose ten transactions work. */
const SOUND = [
  ...rowsFor("connect", times(10, null)),
  ...rowsFor("handshake", times(10, null)),
  ...rowsFor("request", times(10, null), { httpStatus: 200 }),
  ...rowsFor("syn", times(20, null)),
  ...rowsFor("echo", times(20, null)),
];

const without = (kind: Attempt["kind"]) => SOUND.filter((row) => row.kind !== kind);

const of = (rows: readonly Attempt[], steps: readonly Step[] = [], addresses = 1) =>
  checkVerdict(NAME, 443, { rows, steps, addresses });

test.each<[what: string, rows: readonly Attempt[], expected: object]>([
  ["works", SOUND, { code: "works", answer: "yes", fault: null, advice: null }],
  [
    "was heard too shortly for a body",
    SOUND.filter(({ isRead }) => !isRead),
    {
      ...{ code: "unknown", answer: "not-known" },
      evidence: expect.stringMatching(/^It answers, and no body was read in time\. \d/),
    },
  ],
  [
    "was heard for nine of ten transactions",
    SOUND.flatMap((row) => {
      if (row.kind === "request" && row.turn === 10) return [];
      return { ...row, isOpen: ["connect", "handshake"].includes(row.kind) };
    }),
    { code: "works", evidence: expect.stringMatching(/^9 of 9 transactions over IPv6 worked/) },
  ],
  [
    "has one request of ten that fails",
    [
      ...without("request"),
      ...rowsFor("request", [...times(4, null), "http-error", ...times(5, null)]),
    ],
    {
      ...{ code: "sometimes", answer: "sometimes", fault: "site" },
      headline: `${NAME} works over IPv6 only sometimes: 1 of 10 transactions failed, by http error.`,
    },
  ],
  [
    "has one request that fails at the second of two addresses",
    [
      ...SOUND,
      ...without("request").map((row) => ({ ...row, ip: ipOf(1) })),
      ...rowsFor("request", ["http-error", ...times(9, null)], { ip: ipOf(1) }),
    ],
    {
      headline: `${NAME} works over IPv6 only sometimes: 1 of 20 transactions failed, all at ${ipOf(1)}, by http error.`,
      evidence: `At ${ipOf(1)}, 1 of 10 HTTP requests failed, by http error.`,
    },
  ],
  [
    "stops after six requests",
    [...without("request"), ...rowsFor("request", [...times(6, null), ...times(4, "http-silent")])],
    { code: "stopped", answer: "sometimes", fault: "site" },
  ],
  [
    "stops, and then its port refuses",
    [
      ...rowsFor("connect", [...times(6, null), ...times(4, "refused")]),
      ...rowsFor("handshake", times(6, null)),
      ...rowsFor("request", times(6, null)),
      ...rowsFor("syn", [...times(6, null), ...times(14, "refused")]),
      ...rowsFor("echo", times(20, null)),
    ],
    { code: "stopped", headline: expect.stringContaining("4 of 10 transactions failed, by RST") },
  ],
  [
    "stops, by resets before and after a request, behind a kernel that goes on to answer SYNs",
    [
      ...rowsFor("connect", [...times(7, null), ...times(3, "refused")]),
      ...rowsFor("handshake", times(7, null)),
      ...rowsFor("request", [...times(6, null), "http-silent"]),
      ...rowsFor("syn", times(20, null)),
      ...rowsFor("echo", times(20, null)),
    ],
    { code: "stopped", headline: expect.stringContaining("4 of 10 transactions failed, most by") },
  ],
  [
    "never sends a body to the end",
    [
      ...without("request"),
      ...times(10, 0).flatMap((_, at) => {
        const isRead = at % 4 === 0;
        const [row] = rowsFor("request", [isRead ? "response-incomplete" : null], { isRead });
        return [{ ...(row as Attempt), turn: at + 1, atMs: at * 300 }];
      }),
    ],
    { code: "response-incomplete", answer: "no", fault: "unknown" },
  ],
  [
    "is refused by a router",
    [
      ...rowsFor("connect", times(10, "refused")),
      ...rowsFor("syn", times(20, "prohibited"), { at: ROUTER }),
      ...rowsFor("echo", times(20, null)),
    ],
    { code: "rejected", fault: "path", at: ROUTER, headline: expect.stringContaining(ROUTER) },
  ],
  [
    "is refused by a firewall that answers in its name",
    [
      ...rowsFor("connect", times(10, "refused")),
      ...rowsFor("syn", times(20, "prohibited"), { at: ipOf(0) }),
      ...rowsFor("echo", times(20, null)),
    ],
    { code: "port-closed", fault: "site" },
  ],
  [
    "is behind routers that loop",
    [
      ...rowsFor("connect", times(10, "refused")),
      ...rowsFor("syn", times(20, "hop-limit-exceeded"), { at: ROUTER }),
      ...rowsFor("echo", times(20, "hop-limit-exceeded"), { at: ROUTER }),
    ],
    { code: "path-loop", fault: "path", at: ROUTER },
  ],
  [
    "is not reached because this machine's own address answers with an error",
    [...rowsFor("connect", times(10, "refused")), ...rowsFor("syn", times(20, "not-sent"))],
    { code: "not-sent", fault: "here", answer: "not-from-here" },
  ],
  [
    "limits new connections",
    [
      ...without("syn"),
      ...rowsFor("syn", [...times(9, null), "timeout", null, ...times(7, "timeout"), null, null]),
    ],
    {
      code: "unknown",
      answer: "not-known",
      evidence: expect.stringContaining("8 of 20 SYNs and 0 of 20 echo requests"),
    },
  ],
  [
    "has loss on the return path",
    [
      ...rowsFor("connect", times(10, null)),
      ...rowsFor("handshake", times(10, null)),
      ...rowsFor("request", times(10, null)),
      ...rowsFor("syn", times(14, null)),
      ...rowsFor("syn", times(6, null), { ms: 1012 }).map((row) => ({
        ...row,
        turn: row.turn + 14,
      })),
      ...rowsFor("echo", [...times(15, null), ...times(5, "timeout")]),
    ],
    {
      code: "path-loss",
      fault: "path",
      evidence: expect.stringContaining("lost on the return path"),
    },
  ],
  [
    "answers no bare SYNs, and all connections",
    [...without("syn"), ...rowsFor("syn", times(20, "timeout"))],
    { code: "works" },
  ],
  [
    "answers only some echo requests",
    [...without("echo"), ...rowsFor("echo", [null, null, ...times(18, "timeout")])],
    { code: "works" },
  ],
  [
    "redirects to what does not work",
    [
      ...without("request"),
      ...rowsFor("request", times(10, null), { finding: "redirect-broken", text: "It redirects." }),
    ],
    { code: "redirect-broken", answer: "no", fault: "site" },
  ],
  [
    "redirects so at one of its servers alone",
    [
      ...without("request"),
      ...rowsFor("request", times(7, null)),
      ...rowsFor("request", times(3, null), {
        finding: "redirect-broken",
        text: "It redirects.",
      }).map((row) => ({ ...row, turn: row.turn + 7 })),
    ],
    { code: "sometimes", evidence: "3 of 10 HTTP requests: It redirects." },
  ],
])("a name that %s", (_, rows, expected) => {
  expect(of(rows)).toMatchObject(expected);
});

test.each(["fd00::80", "2001:db8:1::1", "::1"])(
  "%s is not public if nothing answers there",
  (ip) => {
    const rows = rowsFor("connect", times(10, "timeout"), { ip });
    const more = rowsFor("syn", times(20, "timeout"), { ip });
    const policy = stepOf("policy", ip, { finding: "special-address", text: "It is special." }, 0);
    expect(of([...rows, ...more], [policy])).toMatchObject({ code: "not-public", fault: "site" });
  },
);

test("a name with more addresses than are tried says of how many", () => {
  const eight = Array.from({ length: 8 }, (_, at) =>
    SOUND.map((row) => ({ ...row, ip: ipOf(at) })),
  ).flat();
  expect(of(eight, [], 12).headline).toContain("at the 8 of 12 addresses");
  expect(of(eight, [], 8).headline).not.toContain("of 8");
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

describe("loss in the rounds of mtr", () => {
  const judge = (lost: number, isOverTcp: boolean, to?: number, errors = 0) => {
    const code = lost === 0 ? "no-loss" : lost < 3 ? "unclear" : "loss";
    const verdict = { code, text: "", ...(to !== undefined && { from: to - 1, to }) };
    const details = { verdict, toTarget: { sent: 20, errors, loss: lost * 5 }, reached: true };
    const document = { hops: [{}, { ip: ROUTER }, {}], details };
    return judgeMtr(document as unknown as MtrResult, isOverTcp);
  };

  test("of one probe is chance, of two it is doubtful, and of more a finding", () => {
    const found = [0, 1, 2, 3, 20].map((lost) => judge(lost, true, 2).finding);
    expect(found).toEqual([undefined, undefined, "path-doubtful", "path-loss", "path-loss"]);
  });

  test("names the router behind which it begins", () => {
    expect(judge(9, true, 2).at).toBe(ROUTER);
  });

  test("of SYNs at the target alone is doubtful, as it may limit them", () => {
    const found = [judge(9, true, 3), judge(9, true)].map(({ finding }) => finding);
    expect(found).toEqual(["path-doubtful", "path-doubtful"]);
  });

  test("does not count what an error has answered", () => {
    const found = [judge(9, true, 2, 8), judge(9, true, 2, 7)].map(({ finding }) => finding);
    expect(found).toEqual([undefined, "path-loss"]);
  });

  test("of echo requests counts only before the target, which may answer only some", () => {
    const found = [judge(9, false), judge(9, false, 3), judge(9, false, 2)].map(
      ({ finding }) => finding,
    );
    expect(found).toEqual([undefined, undefined, "path-loss"]);
  });
});

describe("the families are compared", () => {
  const compare = (
    six: readonly number[],
    four: readonly number[],
    status: readonly [number, number] = [200, 200],
  ) =>
    compareFamilies(
      [six, four].flatMap((all, family) => {
        const ip = family === 0 ? ipOf(0) : IPV4;
        return [
          ...all.map(
            (ms, at): Attempt => ({ kind: "connect", ip, turn: at, atMs: 0, ms, reason: null }),
          ),
          {
            kind: "request",
            ip,
            turn: 1,
            atMs: 0,
            ms: 1,
            reason: null,
            httpStatus: status[family] as number,
          },
        ];
      }),
    );

  const around = (ms: number, spread: number) =>
    Array.from({ length: 10 }, (_, at) => ms + (at * spread) / 10);

  test.each<[string, readonly number[], readonly number[], string]>([
    ["the same", around(20, 2), around(20, 2), "IPv4 connects as fast."],
    ["clearly slower", around(90, 9), around(20, 9), "IPv4 connects 70 ms faster."],
    ["clearly faster", around(20, 9), around(90, 9), "IPv4 connects 70 ms slower."],
    [
      "slower but for one delay",
      [...around(20, 2).slice(1), 900],
      around(20, 2),
      "IPv4 connects as fast.",
    ],
    [
      "scattered",
      around(20, 300),
      around(30, 300),
      "Which of the families connects faster is not clear.",
    ],
  ])("times that are %s", (_, six, four, text) => {
    expect(compare(six, four)?.text).toBe(text);
  });

  test("and 50 ms are a finding", () => {
    expect(compare(around(70, 2), around(20, 2))?.finding).toBe("slower");
    expect(compare(around(60, 2), around(20, 2))?.finding).toBeUndefined();
  });

  test("and chance alone calls one faster in less than 2 of 100 comparisons", () => {
    const ten = fc.array(fc.double({ min: 10, max: 300, noNaN: true }), {
      minLength: 10,
      maxLength: 10,
    });
    const pairs = fc.sample(fc.tuple(ten, ten), { numRuns: 4000, seed: 29 });
    const called = pairs.filter(([six, four]) => {
      const { least = 0, most = 0 } = slownessOf(six, four) ?? {};
      return least > 0 || most < 0;
    });
    expect(called.length / pairs.length).toBeLessThan(0.02);
  });

  test("not if one of them has not answered", () => {
    expect(compareFamilies(rowsFor("connect", times(10, null)))).toBeNull();
    expect(compareFamilies([])).toBeNull();
  });

  test("by their responses: an error of IPv6 alone is a finding, a redirect or an error of both is none", () => {
    const statuses = [200, 204, 301, 302, 400, 403, 404, 429, 499];
    for (const six of statuses) {
      for (const four of statuses) {
        const { finding } = compare(around(20, 2), around(20, 2), [six, four]) as Seen;
        expect(finding).toBe(six >= 400 && four < 400 ? "http-differs" : undefined);
      }
    }
  });

  test("by as many requests: what a server limits after that is no difference", () => {
    const statuses = [...times(3, 200), ...times(7, 429)];
    const rows = [ipOf(0), IPV4].flatMap((ip) => [
      ...rowsFor("connect", times(10, null), { ip }),
      ...rowsFor("request", times(ip === IPV4 ? 3 : 10, null), { ip }).map((row, at) => {
        return { ...row, httpStatus: statuses[at] as number };
      }),
    ]);
    expect(compareFamilies(rows)?.finding).toBeUndefined();
    const six = viewsOf(rows).filter(({ ip }) => ip === ipOf(0));
    expect(six.find(({ name }) => name === "http")?.text).toContain(
      "7 of 10 HTTP requests were answered with status 429.",
    );
  });

  test("by their certificates", () => {
    const shown = (ip: string, chain: readonly string[]) => [
      ...rowsFor("connect", times(5, null), { ip }),
      ...rowsFor("handshake", times(5, null), { ip, chain }),
    ];
    const textOf = (six: string, four: string) =>
      compareFamilies([...shown(ipOf(0), [six]), ...shown(IPV4, [four])])?.text ?? "";
    expect(textOf("a", "a")).not.toContain("certificates");
    expect(textOf("a", "b")).toContain("Their chains of certificates differ.");
  });
});

test("a warning has a finding, by its type", () => {
  // @ts-expect-error: a warning without a finding
  const seen: Seen = { status: "warn", text: "Something may be wrong." };
  expect(seen.finding).toBeUndefined();
  for (const code of CODES) expect(FINDINGS[code].words).not.toBe("");
});

describe("of several addresses", () => {
  const [FIRST, SECOND, THIRD] = [ipOf(0), ipOf(1), ipOf(2)];
  const at = (ip: string, rows: readonly Attempt[]) => rows.map((row) => ({ ...row, ip }));
  const closed = (ip: string) => [
    ...rowsFor("connect", times(10, "refused"), { ip }),
    ...rowsFor("syn", times(20, "refused"), { ip }),
  ];
  /** Whose last connections fail. */
  const stops = (ip: string) => [
    ...rowsFor("connect", [...times(4, null), ...times(6, "timeout")], { ip }),
    ...rowsFor("handshake", times(4, null), { ip }),
    ...rowsFor("request", times(4, null), { ip, httpStatus: 200 }),
  ];
  const over = (rows: readonly Attempt[], more: Partial<Hearing> = {}) =>
    checkVerdict(NAME, 443, { rows, steps: [], addresses: 3, ...more });

  test("connections to one that refuses fail at first, as clients go on to the next", () => {
    const { headline } = over([...SOUND, ...closed(SECOND)], { addresses: 2 });
    expect(headline).toContain("about half of new connections fail at first:");
  });

  test("one that has stopped is told beside one that is dead, and no share is", () => {
    const rows = [...SOUND, ...stops(SECOND), ...closed(THIRD)];
    const { code, headline, evidence } = over(rows);
    expect(code).toBe("partly");
    expect(headline).toContain(
      `${THIRD} refuses connections to port 443; ${SECOND} worked, and then stopped`,
    );
    expect(headline).not.toContain("new connections");
    expect(evidence).toContain(`At ${SECOND}, `);
  });

  test("one that is silent is dead before a connection to it has timed out", () => {
    const silent = (kind: "syn" | "echo") => rowsFor(kind, times(5, "timeout"), { ip: SECOND });
    const { code, headline } = over([...SOUND, ...silent("syn"), ...silent("echo")], {
      addresses: 2,
    });
    expect(code).toBe("partly");
    expect(headline).toContain(`${SECOND} does not answer`);
    expect(over([...SOUND, ...silent("syn")], { addresses: 2 }).headline).not.toContain(
      "does not answer",
    );
  });

  test("those that go on are not said to have stopped", () => {
    const { code, headline } = over([...SOUND, ...stops(SECOND)], { addresses: 2 });
    expect(code).toBe("stopped");
    expect(headline).toStartWith(
      `${NAME} works over IPv6, but one of its two addresses worked, and then stopped: `,
    );
    expect(over([...stops(FIRST), ...at(SECOND, stops(FIRST))]).headline).toContain(
      "worked over IPv6, and then stopped",
    );
  });

  test("what nobody but a filter has does not make it fail", () => {
    const doubt = { ip: THIRD, resolver: "resolver_c", text: "It may filter.", isNowhere: true };
    const { code, headline, fault } = over([...SOUND, ...closed(THIRD)], { doubted: [doubt] });
    expect([code, fault]).toEqual(["resolvers-differ", "dns"]);
    expect(headline).toContain(`resolver_c alone has ${THIRD}, which refuses`);
    expect(over([...SOUND, ...at(THIRD, SOUND)], { doubted: [doubt], addresses: 2 }).code).toBe(
      "works",
    );
  });
});

test("a site that hangs is at fault only where large packets are known to arrive", () => {
  const rows = [
    ...without("request").filter(({ kind }) => kind !== "handshake"),
    ...rowsFor("handshake", times(10, "tls-silent")),
  ];
  const large = (step: object) => ({ name: "mtu", ip: ipOf(0), ms: 5, ...step }) as Step;
  const faultWith = (...steps: readonly Step[]) => of(rows, steps).fault;
  expect(faultWith(large({ status: "ok", text: "The path MTU is 1500." }))).toBe("site");
  expect(faultWith()).toBe("unknown");
  expect(faultWith(large({ status: "skipped", text: "Not finished in time." }))).toBe("unknown");
  const doubtful = { status: "warn", finding: "large-doubtful", text: "Some get no answer." };
  expect(faultWith(large(doubtful))).toBe("unknown");
  expect(faultWith(large({ ...doubtful, status: "fail", finding: "large-packets" }))).toBe("path");
});

test("advice is for what has stopped it, to the one at fault", () => {
  const adviceOf = (reason: string, more: Partial<Attempt> = {}) => {
    const kind = reason.startsWith("certificate") ? "handshake" : "connect";
    const rows = rowsFor(kind, [...times(4, null), ...times(6, reason)]).map((row) =>
      row.reason === null ? row : { ...row, ...more },
    );
    const others = without(kind).filter((row) => row.kind !== "syn" && row.kind !== "echo");
    return of([...others, ...rows]);
  };
  expect(adviceOf("certificate-expired")).toMatchObject({
    ...{ code: "stopped", fault: "site", advice: FINDINGS["certificate-expired"].advice },
  });
  expect(adviceOf("no-route", { at: "2001:db8:c001:2::2" })).toMatchObject({
    ...{ code: "stopped", fault: "path", advice: FINDINGS.unreachable.advice },
  });
  expect(adviceOf("timeout")).toMatchObject({ code: "stopped", advice: FINDINGS.stopped.advice });
});

test("what was not tried is not called broken", () => {
  const policy = { name: "policy", ip: ipOf(0), status: "fail", finding: "not-allowed", ms: 0 };
  const steps = [{ ...policy, text: `${ipOf(0)} is not probed.` }] as Step[];
  expect(of([], steps)).toMatchObject({
    ...{ code: "not-allowed", answer: "not-from-here" },
    headline: expect.stringMatching(/^Whether \S+ works over IPv6 cannot be told from here: /),
  });
});

test("redirects are not followed over IPv4, which says nothing of them", () => {
  const four = SOUND.filter(({ kind }) => kind !== "syn" && kind !== "echo");
  const rows = [
    ...without("request"),
    ...rowsFor("request", times(10, null), { finding: "redirect-loop", text: "It redirects." }),
    ...four.map((row) => ({ ...row, ip: IPV4 })),
  ];
  expect(of(rows)).toMatchObject({
    code: "redirect-loop",
    headline: expect.not.stringContaining("IPv4"),
  });
});

test("a machine without IPv4 has not tested it, and says nothing of it", () => {
  const rows = [...SOUND, ...rowsFor("connect", times(10, "not-sent"), { ip: IPV4 })];
  expect(viewsOf(rows).filter(({ ip }) => ip === IPV4)).toEqual([
    {
      name: "tcp",
      ip: IPV4,
      status: "skipped",
      text: "Not tested: this server has no IPv4.",
      ms: expect.any(Number),
    },
  ]);
  const { code, text } = checkVerdict("www.example", 443, { steps: [], rows, addresses: 1 });
  expect([code, text]).toEqual(["works", expect.not.stringMatching(/IPv4/)]);
});

test("a name that does not exist is told by the words of its resolver", () => {
  const says = (text: string) => {
    const names = { name: "names", status: "fail", finding: "no-such-name", text, ms: 1 } as const;
    return checkVerdict("nope.example", 443, { steps: [names], rows: [], addresses: 0 }).text;
  };
  expect(
    says('"nope.example" does not exist (NXDOMAIN from resolver_a); check the spelling.'),
  ).toBe("nope.example does not exist (NXDOMAIN from resolver_a). Check the spelling.");
  expect(
    says(
      '"nope.example" is an alias of "gone.example", which does not exist (NXDOMAIN from resolver_a); its owner must correct the CNAME record.',
    ),
  ).toBe(
    'nope.example is an alias of "gone.example", which does not exist (NXDOMAIN from resolver_a). Its owner must correct the CNAME record.',
  );
});

test("advice names the address and the port", () => {
  const rows = [
    ...rowsFor("connect", times(10, "refused")),
    ...rowsFor("syn", times(20, "refused")),
  ];
  const { advice } = checkVerdict("www.example", 443, { steps: [], rows, addresses: 1 });
  expect(advice).toBe(
    `Make the server listen on ${ipOf(0)} port 443, and allow it in the firewalls.`,
  );
});

test("steps have one order, whichever address was known first", () => {
  const step = (name: Step["name"], ip: string) => ({ name, ip });
  const steps = ["2001:db8::2", "192.0.2.1", "2001:db8::1"].flatMap((ip) => [
    ...[step("tcp", ip), step("policy", ip), step("mtr", ip)],
  ]);
  const orderOf = (each: typeof steps) => inOrder(each).map(({ name, ip }) => `${name} ${ip}`);
  expect(orderOf(steps).slice(0, 4)).toEqual([
    ...["policy 2001:db8::1", "tcp 2001:db8::1", "policy 2001:db8::2", "tcp 2001:db8::2"],
  ]);
  expect(orderOf(steps.toReversed()).slice(0, 6)).toEqual(orderOf(steps).slice(0, 6));
});
