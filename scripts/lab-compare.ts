/**
 * Prints our answer beside the standard program's for each network of the laboratory: `bun
 * scripts/lab-compare.ts [PART OF A CASE'S NAME]`. It runs in its own network namespace, as the tests do.
 */
import "../test/lab/enter.ts";
import { RESOLVER } from "../test/here/description.ts";
import { type Network, startNetwork } from "../test/here/network.ts";
import { TRIALS } from "../test/here/networks.ts";
import { startInternet } from "../test/lab/internet.ts";
import type { Path, Router } from "../test/lab/internet-description.ts";
import { startKernelChain } from "../test/lab/kernel-chain.ts";
import { nftRule } from "../test/lab/nft.ts";
import { sixscopeProgram } from "../test/lab/program.ts";
import { findProgram, LAB_VARIABLE, run } from "../test/lab/run.ts";
import { startService } from "../test/lab/service.ts";
import { PREFIX, startTranslator } from "../test/lab/translator.ts";
import { skip } from "./skip.ts";

const ROUTERS = 6;
const TARGET_NODE = ROUTERS + 1;
const LEFT_COLUMNS = 64;

const where = process.env[LAB_VARIABLE] ?? "the laboratory was not entered";
if (where !== "inside") skip({ reason: where, canBeInstalled: false });
for (const program of ["ping", "traceroute", "mtr", "tracepath", "nft"]) {
  if (findProgram(program) === null) {
    skip({ reason: `${program} is not installed`, canBeInstalled: true });
  }
}

/** The fields of the answers that are compared. */
interface Answer {
  readonly error?: { readonly code: string };
  readonly mtu?: number | null;
  readonly atMost?: number | null;
  readonly packetTooBig?: { readonly from: string; readonly hop: number } | null;
  readonly lastLarge?: number | null;
  readonly firstSmall?: number | null;
  readonly results?: readonly {
    readonly seq: number;
    readonly ttl: number;
    readonly rtt: number;
  }[];
  readonly stats?: {
    readonly transmitted: number;
    readonly received: number;
    readonly loss: number;
  };
  readonly hops?: readonly {
    readonly hop: number;
    readonly ip: string | null;
    readonly rtt?: number | null;
    readonly mtu?: number | null;
    readonly atMost?: number | null;
    readonly loss?: number | null;
    readonly sent?: number;
    readonly avg?: number | null;
    readonly cause?: string | null;
  }[];
  readonly details?: {
    readonly verdict?: { readonly code: string; readonly text: string };
    readonly cause?: string;
    readonly reason?: string;
    readonly complete?: boolean;
    readonly labels?: number;
    readonly paths?: readonly {
      readonly flowLabel: number;
      readonly addresses: readonly (string | null)[];
      readonly reason: string;
    }[];
    readonly lost?: readonly {
      readonly seq: number;
      readonly reason: string;
      readonly from?: string;
    }[];
    readonly doubtful?: readonly {
      readonly from: string;
      readonly mtu: number;
      readonly doubt: string;
    }[];
  };
}

/** What is printed of a look at a machine. */
interface HereAnswer {
  readonly steps: readonly {
    readonly name: string;
    readonly status: string;
    readonly ms: number;
  }[];
  readonly details: { readonly verdict: { readonly code: string; readonly text: string } };
}

/** An exact size, or both bounds. */
const boundsText = ({ mtu = null, atMost = null }: Pick<Answer, "mtu" | "atMost">) =>
  mtu === atMost ? (mtu ?? "unknown") : `${mtu ?? "unknown"} to ${atMost}`;

const sentencesOf = ({ details }: Answer) => details?.verdict?.text.split(". ") ?? [];

const traceLines = ({ hops = [], details }: Answer) => [
  ...hops.map(({ hop, ip, rtt }) => `${hop}  ${ip ?? "silent"}  ${rtt ?? ""}`),
  `${details?.reason}`,
];

const mtrLines = (answer: Answer) => [
  ...(answer.hops ?? []).map(
    ({ hop, ip, sent, loss, avg, cause }) =>
      `${hop}  ${ip ?? "silent"}  sent ${sent}  loss ${loss} %  avg ${avg}  ${cause ?? ""}`,
  ),
  ...sentencesOf(answer),
];

const TRACEROUTE = ["-6", "-n", "-q", "1", "-w", "1", "-m", "15"] as const;
const MTR = ["mtr", "-6", "-n", "-r", "-w", "-i", "0.2", "-G", "1"] as const;

/** A trace and an mtr of a TCP port. */
const overTcp = (port: number, program: readonly string[]) => {
  const trace = {
    query: "names=no",
    lines: (answer: Answer) => [...traceLines(answer), ...sentencesOf(answer)],
    program,
  };
  const mtr = {
    query: "names=no&rounds=10&intervalMs=200",
    lines: mtrLines,
    program: [...MTR, "-c", "10", "-T", "-P", `${port}`],
  };
  return { trace, mtr } as const;
};

const OPEN = overTcp(443, ["traceroute", "-T", "-p", "443", ...TRACEROUTE]);
const CLOSED = overTcp(80, ["traceroute", "-T", "-p", "80", ...TRACEROUTE]);

/** Each of our tools: its parameters, its answer in lines, and the program beside it. */
const TOOLS = {
  ping: {
    query: "count=5",
    lines: ({ results = [], stats, details }: Answer) => [
      ...results.map(({ seq, ttl, rtt }) => `seq ${seq}  ttl ${ttl}  ${rtt} ms`),
      ...(details?.lost ?? []).map(
        ({ seq, reason, from = "" }) => `seq ${seq}  ${reason}  ${from}`,
      ),
      `${stats?.received} of ${stats?.transmitted} answered, loss ${stats?.loss} %`,
    ],
    program: ["ping", "-6", "-n", "-c", "5", "-i", "0.2", "-W", "3.2"],
  },
  traceroute: {
    query: "names=no",
    lines: traceLines,
    program: ["traceroute", "-I", ...TRACEROUTE],
  },
  "traceroute?protocol=tcp&port=443": OPEN.trace,
  "mtr?protocol=tcp&port=443": OPEN.mtr,
  "traceroute?protocol=tcp&port=80": CLOSED.trace,
  "mtr?protocol=tcp&port=80": CLOSED.mtr,
  "traceroute?paths=16": {
    query: "names=no",
    lines: ({ details }: Answer) => [
      ...(details?.paths ?? []).map(
        ({ flowLabel, addresses, reason }) =>
          `label ${flowLabel}  ${addresses.map((ip) => ip ?? "silent").join("  ")}  ${reason}`,
      ),
      `${details?.labels} flow labels, ${details?.complete ? "complete" : "perhaps more"}`,
    ],
    // It has no option for the flow label, but another checksum for each path. Debian has it; no test needs it.
    program: ["sh", "-c", 'exec scamper -I "tracelb -P icmp-echo $0"'],
  },
  mtr: {
    query: "names=no&rounds=30&intervalMs=200",
    lines: mtrLines,
    program: [...MTR, "-c", "30"],
  },
  mtu: {
    query: "names=no",
    lines: ({ packetTooBig: told, lastLarge, firstSmall, hops = [], details, ...size }: Answer) => [
      ...hops.map(({ hop, ip, ...each }) => `${hop}  ${ip ?? "silent"}  ${boundsText(each)}`),
      `${details?.verdict?.code}  mtu ${boundsText(size)}${details?.cause ? `  cause ${details.cause}` : ""}`,
      ...(told ? [`told by ${told.from} (hop ${told.hop})`] : []),
      ...(firstSmall
        ? [`larger packets end between hops ${lastLarge ?? 0} and ${firstSmall}`]
        : []),
      ...(details?.doubtful ?? []).map(
        (each) => `not believed: ${each.mtu} of ${each.from} (${each.doubt})`,
      ),
    ],
    program: ["tracepath", "-6", "-n", "-m", "12"],
  },
} as const;

type Tool = keyof typeof TOOLS;

await using service = await startService({ SIXSCOPE_RESOLVER_A: "[::1]:9" });
await using chain = await startKernelChain({ routers: ROUTERS });

async function ours(tool: Tool, target: string): Promise<string[]> {
  const { query, lines } = TOOLS[tool];
  const [path, more = ""] = tool.split("?");
  const response = await fetch(`${service.url}/${path}/${target}?${query}&${more}`, {
    headers: { "X-API-Key": service.key },
  });
  const answer = (await response.json()) as Answer;
  return answer.error ? [answer.error.code] : lines(answer);
}

/** The output of the program in at most 60 s, whatever its exit status. */
async function theirs(tool: Tool, target: string): Promise<string[]> {
  const script = 'timeout 60 "$@" 2>&1 || true';
  const text = await run(["sh", "-c", script, "sh", ...TOOLS[tool].program, target]);
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Lines below a title with the time that they took; the kernel has forgotten the path MTU before. */
async function timed(title: string, lines: () => Promise<string[]>): Promise<string[]> {
  await run(["ip", "-6", "route", "flush", "cache"]);
  const from = performance.now();
  const found = await lines();
  return [`${title}: ${((performance.now() - from) / 1000).toFixed(2)} s`, ...found];
}

/** Prints what both say, one after the other, so that limits of routers hit both alike. */
async function compare(
  target: string,
  tools: readonly Tool[],
  change: () => () => Promise<void> = () => async () => {},
): Promise<void> {
  for (const tool of tools) {
    const undoFirst = change();
    const left = await timed(`sixscope ${tool}`, () => ours(tool, target));
    await undoFirst();
    await Bun.sleep(1500);
    const undo = change();
    const right = await timed(TOOLS[tool].program.join(" "), () => theirs(tool, target));
    await undo();
    printBeside(left, right);
  }
}

function printBeside(left: readonly string[], right: readonly string[]): void {
  console.log();
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    console.log(`${(left[at] ?? "").padEnd(LEFT_COLUMNS - 2)}  ${right[at] ?? ""}`.trimEnd());
  }
}

/** A web server at the target, until its namespace ends. */
async function listen(): Promise<void> {
  const script = 'Bun.listen({ hostname: "::", port: 443, socket: { data() {} } }); console.log(1)';
  const server = Bun.spawn(chain.inside(TARGET_NODE, [process.execPath, "-e", script]));
  await server.stdout.getReader().read();
}

const everyRouter = Array.from({ length: ROUTERS }, (_, index) => index + 1);
const nft = (node: number, script: string) => chain.exec(node, ["nft", "-f", "-"], script);

const setMtus = async (mtu: number) => {
  for (let number = 1; number <= TARGET_NODE; number++) await chain.setMtu(number, mtu);
};

/** A firewall rule in some routers. */
const rule = (hook: Parameters<typeof nftRule>[0], text: string, ...nodes: number[]) =>
  Promise.all(nodes.map((node) => nft(node, nftRule(hook, text))));

/** A case: what makes the network so, the tools to compare, and the target if it is not the chain's. */
type Case = readonly [
  name: string,
  setUp: () => Promise<unknown>,
  tools: readonly Tool[],
  target?: string,
];

/** Half the time of 30 rounds. */
const HALF_MS = 3000;

/** Changes while mtr runs: a rule in the fourth router, or none, at times in milliseconds from its start. */
const CHANGES: readonly (readonly [name: string, rule: string, timesMs: readonly number[]])[] = [
  ["a black hole after half", "icmpv6 type echo-request drop", [HALF_MS]],
  ["no route after half", "icmpv6 type echo-request reject with icmpv6 no-route", [HALF_MS]],
  [
    "a good way and a hole in turn",
    "icmpv6 type echo-request drop",
    [600, 1200, 1800, 2400, 3000, 3600, 4200, 4800, 5400],
  ],
];

const nothing = async () => {};
const OPEN_PORT = ["traceroute?protocol=tcp&port=443", "mtr?protocol=tcp&port=443"] as const;
const CLOSED_PORT = ["traceroute?protocol=tcp&port=80", "mtr?protocol=tcp&port=80"] as const;
const RESETS = "tcp flags & rst == rst";
const TOO_BIG = "icmpv6 type packet-too-big";
const ONE_A_SECOND = "limit rate over 1/second burst 1 packets drop";
/** The prefix of the first link, which holds our own address. */
const own = chain.source.replace(/1$/, "");

// biome-ignore format: a table
const CASES: readonly Case[] = [
  ["all is well", nothing, ["ping", "traceroute", "mtr", "mtu"]],
  ["a host that is not there", nothing, ["ping", "traceroute"], `${own}99`],
  ["the anycast address of a link's routers", nothing, ["ping", "traceroute"], `${chain.hops[1]?.replace(/2$/, "")}`],
  ["a host that is not there, behind six routers", nothing, ["traceroute"], chain.target.replace(/2$/, "99")],
  ["a loop between hops 4 and 5", () => chain.exec(5, ["ip", "route", "replace", `${chain.target}/128`, "via", `${chain.hops[4]?.replace(/2$/, "1")}`]), ["traceroute"]],
  ["a router that rejects", () => rule("forward", "icmpv6 type echo-request reject with icmpv6 admin-prohibited", 4), ["ping", "traceroute"]],
  ["a router that drops", () => rule("forward", "icmpv6 type echo-request drop", 4), ["ping", "traceroute"]],
  ["a target that limits its replies", () => rule("output", "icmpv6 type echo-reply limit rate over 2/second burst 1 packets drop", TARGET_NODE), ["traceroute"]],
  ["one error a second from all routers", () => rule("output", `icmpv6 type { time-exceeded, packet-too-big } ${ONE_A_SECOND}`, ...everyRouter), ["traceroute", "mtr", "mtu"]],
  ["loss of 10 % at hop 5 that goes on", () => rule("forward", "icmpv6 type echo-request numgen random mod 10 == 0 drop", 4), ["mtr"]],
  ["loss of 10 % at hop 5 alone", () => rule("output", "icmpv6 type time-exceeded numgen random mod 10 == 0 drop", 5), ["mtr"]],
  ["MTU 1280 at the first hop", () => chain.setMtu(2, 1280), ["mtu"]],
  ["MTU 1420 in the middle", () => chain.setMtu(4, 1420), ["mtu"]],
  ["MTU 1480 at the last hop", () => chain.setMtu(TARGET_NODE, 1480), ["mtu"]],
  ["two narrowings", async () => { await chain.setMtu(2, 1480); await chain.setMtu(5, 1420); }, ["mtu"]],
  ["jumbo frames, narrowed to 1500", async () => { await setMtus(9000); await chain.setMtu(4, 1500); }, ["mtu"]],
  ["Packet Too Big is filtered", async () => { await chain.setMtu(4, 1420); await rule("output", `${TOO_BIG} drop`, 3); }, ["mtu"]],
  ["Packet Too Big is limited", async () => { await chain.setMtu(4, 1420); await rule("output", `${TOO_BIG} ${ONE_A_SECOND}`, 3); }, ["mtu"]],
  ["a router without a return path, before a narrow link", async () => { await chain.setMtu(4, 1420); await rule("output", `ip6 daddr ${chain.source} drop`, 3); }, ["traceroute", "mtu"]],
  ["MTU 1400 in the middle, the target drops all", async () => { await chain.setMtu(4, 1400); await rule("forward", `ip6 daddr ${chain.target} drop`, ROUTERS); }, ["mtu"]],
  ["MTU 1400 in the middle, the target drops echo requests", async () => { await chain.setMtu(4, 1400); await rule("forward", "icmpv6 type echo-request drop", ROUTERS); }, ["mtu"]],
  ["MTU 1400, then 1300 with a filtered Packet Too Big", async () => { await chain.setMtu(3, 1400); await chain.setMtu(5, 1300); await rule("output", `${TOO_BIG} drop`, 4); }, ["mtu"]],
  ["MTU 1400 on the return path without a Packet Too Big", () => rule("forward", "icmpv6 type echo-reply meta length > 1400 drop", 3), ["mtu"]],
  ["echo requests beyond 1000 bytes vanish", () => rule("forward", "icmpv6 type echo-request meta length > 1000 drop", ROUTERS), ["mtu"]],
  ["tcp: an open port", listen, OPEN_PORT],
  ["tcp: a closed port", nothing, CLOSED_PORT],
  ["tcp: a port that the target drops", () => rule("input", "tcp dport 443 drop", TARGET_NODE), OPEN_PORT],
  ["tcp: a port that a router drops", () => rule("forward", "tcp dport 443 drop", 4), OPEN_PORT],
  ["tcp: a port that a router rejects", () => rule("forward", "tcp dport 443 reject with icmpv6 admin-prohibited", 4), OPEN_PORT],
  ["tcp: a port that a router resets", () => rule("forward", "tcp dport 443 reject with tcp reset", 4), OPEN_PORT],
  ["tcp: resets get lost", () => rule("forward", `ip6 saddr ${chain.source} ${RESETS} drop`, 1), OPEN_PORT],
  ["tcp: one error a second from all routers", () => rule("output", `icmpv6 type time-exceeded ${ONE_A_SECOND}`, ...everyRouter), OPEN_PORT],
  ["packets beyond 1200 bytes vanish", () => rule("forward", "meta length > 1200 drop", 3), ["mtu"]],
];

const wanted = Bun.argv[2] ?? "";
for (const [name, text, timesMs] of CHANGES) {
  if (!name.includes(wanted)) continue;
  console.log(`\n== ${name} ==`);
  await compare(chain.target, ["mtr"], () => {
    const timers = timesMs.map((ms, at) =>
      setTimeout(() => void nft(4, at % 2 === 0 ? nftRule("forward", text) : "flush ruleset"), ms),
    );
    return async () => {
      timers.forEach(clearTimeout);
      await nft(4, "flush ruleset");
    };
  });
}

/** Routers over a TUN device; the first one lies about the link behind it. */
const LIES: readonly (readonly [name: string, router: Partial<Router>])[] = [
  ["Packet Too Big claims 1000", { claimedMtu: 1000 }],
  ["Packet Too Big claims 9000", { claimedMtu: 9000 }],
  ["Packet Too Big claims 1300 of 1400", { claimedMtu: 1300 }],
  ["Packet Too Big quotes another packet", { rules: [{ change: "destination" }] }],
];

for (const [name, setUp, tools, target = chain.target] of CASES) {
  if (!name.includes(wanted)) continue;
  console.log(`\n== ${name} ==`);
  await setUp();
  await compare(target, tools);
  for (const node of [...everyRouter, TARGET_NODE]) await nft(node, "flush ruleset");
  await setMtus(1500);
  await chain.exec(5, ["sh", "-c", `ip route del ${chain.target}/128 2>/dev/null || true`]);
}
for (const [name, lie] of LIES) {
  if (!name.includes(wanted)) continue;
  console.log(`\n== ${name} ==`);
  const routers = [{ address: "2001:db8:1::1", mtu: 1400, ...lie }, { address: "2001:db8:1::2" }];
  await using _ = await startInternet({ destinations: [{ to: "2001:db8:2::/48", routers }] });
  await compare("2001:db8:2::7", ["mtu"]);
}

const TRANSLATED = "IPv4 routers behind a translator";
if (TRANSLATED.includes(wanted) && findProgram("tayga") !== null) {
  console.log(`\n== ${TRANSLATED} ==`);
  await using _ = await startTranslator();
  await compare(`${PREFIX}c000:250`, ["traceroute"]);
}

/** Equal paths over a TUN device: the routers behind the first, and which of them loses everything. */
const PATHS: readonly (readonly [name: string, count: number, losing?: number])[] = [
  ["two equal paths", 2],
  ["four equal paths", 4],
  ["eight equal paths", 8],
  ["four equal paths, one losing everything", 4, 2],
];

for (const [name, count, losing] of PATHS) {
  if (!name.includes(wanted)) continue;
  console.log(`\n== ${name} ==`);
  const equalPaths = Array.from(
    { length: count },
    (_, path): Path => ({
      routers: [{ address: "2001:db8:1::1" }, { address: `2001:db8:1::a${path}` }],
      ...(path === losing && { end: "blackhole" }),
    }),
  );
  const destinations = [{ to: "2001:db8:2::/48", equalPaths, balanceBy: "checksum" as const }];
  await using _ = await startInternet({ destinations });
  await compare("2001:db8:2::7", ["traceroute?paths=16"]);
}

const half = "16 ways by packet to a target that answers half";
if (half.includes(wanted)) {
  console.log(`\n== ${half} ==`);
  const equalPaths = Array.from(
    { length: 16 },
    (_, path): Path => ({
      routers: [{ address: "2001:db8:1::1" }, { address: `2001:db8:1::a${path}` }],
      end: { loss: 0.5 },
    }),
  );
  const destinations = [{ to: "2001:db8:2::/48", equalPaths, balanceBy: "packet" as const }];
  await using _ = await startInternet({ destinations });
  await compare("2001:db8:2::7", ["mtr"]);
}

/** Networks around one machine: what it says of itself, and what three programs print there. */
const HERE = [
  "SLAAC",
  "forwarding ignores advertisements after one",
  "an address by SLAAC that another machine has",
  "a default route of type unreachable",
  "a router that went down after its advertisement",
  "one of two routers is dead",
  "two routers with different prefixes",
  "a firewall drops type 134 at input",
  "a narrow link beyond the gateway, which does not say so",
  "a router that advertises no more",
];
const AT_MACHINE = [
  ["rdisc6", "-1", "-w", "3600", "eth0"],
  ["ip", "-6", "route"],
  ["ping", "-6", "-n", "-c", "3", "-i", "0.5", "-w", "4", RESOLVER],
];

/** The output of a command at the client of a network, without empty lines, whatever its exit status. */
async function atClient({ inside }: Network, command: readonly string[]): Promise<string[]> {
  const script = '"$@" 2>&1 || true';
  const text = await run(inside(["sh", "-c", script, "sh", ...command]));
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Words in lines that fit into the left column. */
const folded = (text: string) =>
  text.match(new RegExp(`.{1,${LEFT_COLUMNS - 4}}(?: |$)`, "g"))?.map((line) => line.trim()) ?? [];

for (const { name, network: description } of TRIALS) {
  const title = `here: ${name}`;
  if (!HERE.includes(name) || !title.includes(wanted)) continue;
  if (["radvd", "rdisc6"].some((program) => findProgram(program) === null)) continue;
  console.log(`\n== ${title} ==`);
  await using network = await startNetwork(description);
  const left = await timed("sixscope here", async () => {
    const command = [...(await sixscopeProgram()), "here", "--json"];
    const answer = JSON.parse((await atClient(network, command)).join());
    const { steps, details } = answer as HereAnswer;
    return [
      ...steps.map(({ name, status, ms }) => `${name}  ${status}  ${ms} ms`),
      details.verdict.code,
      ...folded(details.verdict.text),
    ];
  });
  const right: string[] = [];
  for (const command of AT_MACHINE) {
    right.push(...(await timed(command.join(" "), () => atClient(network, command))));
  }
  printBeside(left, right);
}
