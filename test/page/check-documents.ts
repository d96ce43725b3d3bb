/** Documents of checks for each drawing of the way, as the check itself concludes them from invented attempts. */
import { inOrder } from "../../src/tools/check/findings.ts";
import { judgeHere } from "../../src/tools/check/judge.ts";
import { type Attempt, attemptsOf } from "../../src/tools/check/ledger.ts";
import { pathOf, type Way } from "../../src/tools/check/path.ts";
import type { CheckResult, Seen } from "../../src/tools/check/result.ts";
import { checkVerdict } from "../../src/tools/check/verdict.ts";
import { stepOf, viewsOf } from "../../src/tools/check/views.ts";
import { STEPS } from "../../src/tools/here/codes.ts";
import { plural } from "../../src/util/text.ts";
import { HERE } from "../tools/documents.ts";

const ONE = "2001:db8:5:3b::1";
const TWO = "2001:db8:5:3b::2";
const FOUR = "192.0.2.59";

const NETWORKS = [
  [64_500, "Provider Example"],
  [64_501, "Transit Example"],
  [64_502, "Hoster Example"],
] as const;

/** Routers by their time and the index of their network. */
const ROUTERS = [
  [0.4, null],
  [3.1, 0],
  [3.6, 0],
  [4, 0],
  [4.9, 1],
  [8.2, 1],
  [9.1, 1],
  [11.6, 2],
  [12.4, 2],
] as const;

const SITE_MS = 14.2;

/** Hops to an address; those in `silent` did not answer. */
export function hopsTo(
  ip: string | null,
  count: number = ROUTERS.length,
  silent: readonly number[] = [],
) {
  const hops = ROUTERS.slice(0, count).map(([rtt, network], at) => {
    const [asn, name] = network === null ? [0, ""] : NETWORKS[network];
    const about = { asn, name, prefix: `2001:db8:${at}::/48`, source: "asn-file" as const };
    return silent.includes(at + 1)
      ? { hop: at + 1, ip: null, hostname: null, rtt: null }
      : {
          ...{
            hop: at + 1,
            ip: `2001:db8:7a:${at + 1}::1`,
            hostname: `r${at + 1}.example.net`,
            rtt,
          },
          ...(network !== null && { details: { network: about } }),
        };
  });
  const site = { hop: hops.length + 1, ip, hostname: null, rtt: SITE_MS };
  return ip === null ? hops : [...hops, site];
}

/** How attempts of a kind at an address end: always, or those of some turns. */
interface Fate {
  readonly kind: Attempt["kind"];
  readonly reason: string;
  readonly text: string;
  readonly turns?: readonly number[];
  readonly at?: string;
}

/** The attempts at an address, of which those with a fate fail. */
function rowsOf(ip: string, ms: number, fates: readonly Fate[] = []): Attempt[] {
  const rows: Attempt[] = [];
  const add = (kind: Attempt["kind"], turn: number, atMs: number, text: string) => {
    const fate = fates.find((each) => each.kind === kind && (each.turns?.includes(turn) ?? true));
    const { at, reason = null } = fate ?? {};
    const facts = {
      ...(kind === "request" && !fate && { httpStatus: 200, isRead: turn % 4 === 1 }),
    };
    const finding = fate && !["timeout", "refused"].includes(fate.reason) && at === undefined;
    rows.push({
      ...{
        kind,
        ip,
        turn,
        atMs,
        ms: ms + (turn % 3) / 10,
        reason,
        text: fate?.text ?? text,
        ...facts,
      },
      ...(finding && { finding: fate.reason as NonNullable<Attempt["finding"]> }),
      ...(at !== undefined && { at }),
    });
    return fate === undefined;
  };
  for (let turn = 1; turn <= 10; turn++) {
    if (
      add("connect", turn, 320 * turn, "It opens.") &&
      add("handshake", turn, 320 * turn + 1, "TLSv1.3, HTTP/2.")
    )
      add("request", turn, 320 * turn + 2, "The server answers with status 200.");
  }
  for (let turn = 1; ip.includes(":") && turn <= 20; turn++) {
    add("syn", turn, 160 * turn, "");
    add("echo", turn, 160 * turn + 1, "");
  }
  return rows;
}

const silence = (kind: Fate["kind"], turns?: readonly number[]): Fate => ({
  ...{ kind, reason: "timeout", text: "It was silent." },
  ...(turns && { turns }),
});

/** A check that heard some attempts, and measured a way. */
function checkOf(
  name: string,
  rows: readonly Attempt[],
  {
    seen = {},
    way = null,
    here = null,
  }: {
    seen?: Readonly<Partial<Record<"names" | "mtu" | "policy", Seen>>>;
    way?: Way | null;
    here?: typeof HERE | null;
  } = {},
): CheckResult {
  const ips = [...new Set(rows.map(({ ip }) => ip))];
  const six = ips.filter((ip) => ip.includes(":"));
  const names = { text: `It has ${plural(six.length, "IPv6 address")} (${six.join(" and ")}).` };
  const steps = [
    ...(here ? [{ name: "here" as const, ...judgeHere(here), ms: 3700 }] : []),
    stepOf("names", null, seen.names ?? names, 24),
    ...(seen.mtu ? [stepOf("mtu", ONE, seen.mtu, 900)] : []),
  ];
  const hearing = { steps, rows, addresses: six.length };
  const verdict = checkVerdict(name, 443, hearing, { here, isPathHeard: here === null });
  const path = way && pathOf(way, verdict);
  return {
    ...{ name, port: 443, steps: inOrder([...steps, ...viewsOf(rows)]) },
    details: {
      ...{ startedAt: "2026-11-23T14:01:26.000Z", version: "1.0.0", verdict },
      attempts: attemptsOf(rows),
      ...(path && { path }),
      here: here
        ? here.steps.map(({ name, status }) => ({ name, status }))
        : STEPS.map((name) => ({ name, status: "ok" as const })),
    },
  };
}

const traced = (ip: string, hops: ReturnType<typeof hopsTo>, reached: boolean): Way => ({
  ip,
  trace: { hops, details: { reached } } as unknown as NonNullable<Way["trace"]>,
});

const four = rowsOf(FOUR, 15);

const broken = {
  ...HERE,
  steps: [
    {
      ...{ name: "gateway", status: "fail", finding: "gateway-silent", ms: 3000 },
      text: "fe80::1 on eth0 answered none of 3 neighbour solicitations.",
    },
  ],
  details: {
    ...HERE.details,
    verdict: {
      code: "gateway-silent",
      text: "The gateway of this machine, fe80::1 on eth0, is silent.",
    },
  },
} as unknown as typeof HERE;

/** By the drawing of the way. */
export const CHECKS: Readonly<Record<string, CheckResult>> = {
  works: checkOf("www.example.net", [...rowsOf(ONE, 14.2), ...rowsOf(TWO, 14.3), ...four], {
    way: traced(ONE, hopsTo(ONE, 9, [6]), true),
  }),
  half: checkOf(
    "www.example.org",
    [
      ...rowsOf(ONE, 14.2),
      ...rowsOf(TWO, 14, [silence("connect"), silence("syn"), silence("echo")]),
      ...four,
    ],
    { way: traced(TWO, hopsTo(null), false) },
  ),
  hole: checkOf(
    "black-hole.example.net",
    [
      ...rowsOf(ONE, 14.2, [
        { kind: "handshake", reason: "tls-silent", text: "It does not answer the TLS handshake." },
      ]),
      ...four,
    ],
    {
      seen: {
        mtu: { finding: "large-packets", text: "Packets over 1300 bytes vanish behind hop 7." },
      },
      way: {
        ...traced(ONE, hopsTo(ONE), true),
        mtu: { lastLarge: 7 } as unknown as NonNullable<Way["mtu"]>,
      },
    },
  ),
  here: checkOf(
    "www.example.net",
    [...rowsOf(ONE, 14, [silence("connect"), silence("syn"), silence("echo")]), ...four],
    { here: broken },
  ),
  sometimes: checkOf(
    "app.example.com",
    [
      ...rowsOf(ONE, 14.6),
      ...rowsOf(TWO, 14.6, [
        { kind: "connect", reason: "refused", text: "It was refused.", turns: [2, 5, 6, 10] },
        { kind: "syn", reason: "refused", text: "", turns: [2, 4, 9] },
      ]),
      ...four,
    ],
    { way: traced(TWO, hopsTo(TWO, 9, [6]), true) },
  ),
  refused: checkOf(
    "shop.example.com",
    [
      ...rowsOf(ONE, 14.2, [
        { kind: "connect", reason: "refused", text: "It was refused." },
        { kind: "syn", reason: "prohibited", text: "", at: "2001:db8:7a:4::1" },
      ]),
      ...four,
    ],
    { way: traced(ONE, hopsTo(null, 4), false) },
  ),
  dns: checkOf("www.example.org", [], {
    seen: {
      names: {
        finding: "dnssec-bogus",
        text: "DNSSEC: bogus. The signature of example.org ended on 2026-11-21.",
      },
    },
  }),
};
