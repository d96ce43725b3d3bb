/** `sixscope mtr` and `mtu` over real kernel routers, and our formats beside mtr itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";
import { type CommandResult, type Service, sixscope, startService } from "../lab/service.ts";
import { COLOUR, inTerminal, screenOf } from "../lab/terminal.ts";

const [PROGRAM] = await sixscopeProgram();
const WITH_HOSTNAME = join(import.meta.dir, "../lab/with-hostname.ts");
const ROUTERS = 4;
const missing = labMissing ?? programMissing("nft");
const labTest = testWith(missing);
const terminalTest = testWith(missing, programMissing("script"));
const mtrTest = testWith(missing, programMissing("mtr"));
const rightsTest = testWith(missing, programMissing("setpriv"));

/** Nothing answers there, so hops have no names. */
const ENVIRONMENT = { SIXSCOPE_RESOLVER_A: "[::1]:9" };

let chain: KernelChain;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  chain = await startKernelChain({ routers: ROUTERS, limitsErrors: false });
  service = await startService(ENVIRONMENT);
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  await chain.stop();
});

/** Both ways to an answer: in this process, and from a service. */
const WAYS = ["here", "from a service"] as const;

function tool(way: (typeof WAYS)[number], ...args: string[]): Promise<CommandResult> {
  const server = service.url.replace("/api/v1", "");
  const there = { SIXSCOPE_SERVER: server, SIXSCOPE_KEY: service.key };
  return sixscope(args, way === "here" ? ENVIRONMENT : there);
}

const set = (node: number, script: string) => chain.exec(node, ["nft", "-f", "-"], script);

/** Does something while a router drops packets. */
async function whileDropping<T>(node: number, what: string, act: () => Promise<T>): Promise<T> {
  await set(node, nftRule("output", `icmpv6 type ${what} drop`));
  try {
    return await act();
  } finally {
    await set(node, "flush ruleset");
  }
}

/** Does something while the link to node 3 is narrow. */
async function whileNarrow<T>(act: () => Promise<T>): Promise<T> {
  await chain.setMtu(3, 1420);
  try {
    return await act();
  } finally {
    await chain.setMtu(3, 1500);
  }
}

/** The text with T for each column of times, and without flow labels, which differ from run to run. */
const withoutTimes = (text: string) =>
  text.replaceAll(/( +\d+\.\d\d){5,8}/g, " T").replaceAll(/flow label \d+/g, "flow label N");

describe.each(WAYS)("%s", (way) => {
  labTest("mtr prints a table of the hops, and says which limits its answers", async () => {
    const limited = "time-exceeded numgen inc mod 2 == 0";
    const { status, stdout, stderr } = await whileDropping(2, limited, () =>
      tool(way, "mtr", "-n", "-c", "10", "-i", "0.15", chain.target),
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [hop1, hop2, hop3, hop4] = chain.hops;
    expect(withoutTimes(stdout)).toBe(`mtr ${chain.target}
hop loss sent rcvd  last   avg  best worst stdev jitter   p50   p95  address
  1   0%   10   10 T  ${hop1}
  2  50%   10    5 T  ${hop2}  does not answer every probe
  3   0%   10   10 T  ${hop3}
  4   0%   10   10 T  ${hop4}
  5   0%   10   10 T  ${chain.target}

${chain.target}
The target replied to all 10 probes. Hop 2 ignores some probes; that is not loss, as later hops lose less.
Rounds  10, times in ms
Probed  ${chain.target} from ${chain.source}, flow label N
`);
  });

  labTest("mtr ends with 1 where the target is not reached, and shows silent hops", async () => {
    const { status, stdout } = await whileDropping(2, "time-exceeded", () =>
      tool(way, "mtr", "-n", "-c", "2", "-m", "3", chain.target),
    );
    expect(status).toBe(1);
    expect(stdout).toContain(`\n  2 100%    2    0${" ".repeat(51)}no reply\n`);
    expect(stdout).toContain(
      `\n\n${chain.target}\nThe target did not reply; the last answers came from hop 3 (${chain.hops[2]}).\n`,
    );
  });

  labTest("trace takes a flow label, and finds all ways", async () => {
    const args = ["trace", "-n", "--paths", "4", "--flow-label", "74565", chain.target];
    const { status, stdout, stderr } = await tool(way, ...args);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(
      /\n {2}5 .*\n\n.*\nFound 1 path with \d+ flow labels. At each router, a further next hop is unlikely \(5 %\)\.\nProbed .*, flow label 74565\n$/,
    );
    const mtr = await tool(way, "mtr", "--json", "-c", "1", "--flow-label", "74565", chain.target);
    expect(JSON.parse(mtr.stdout)).toMatchObject({ details: { flowLabel: 74_565 } });
  });

  labTest("mtu says who told the size", async () => {
    const { status, stdout, stderr } = await whileNarrow(() =>
      tool(way, "mtu", "-n", chain.target),
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [hop1, hop2, hop3, hop4] = chain.hops;
    expect(withoutTimes(stdout)).toBe(`mtu ${chain.target}
hop     largest  address
  1  1500 bytes  ${hop1}
  2  1500 bytes  ${hop2}  says Packet Too Big: 1420 bytes, not 1500
  3  1420 bytes  ${hop3}
  4  1420 bytes  ${hop4}
  5  1420 bytes  ${chain.target}

${chain.target}
The path MTU is 1420 bytes: the link behind hop 2 (${hop2}) is the narrowest.
Path MTU  1420 bytes
Probed    ${chain.target} from ${chain.source}, flow label N
`);
  });

  labTest("mtu names a black hole, and where it is", async () => {
    const { status, stdout } = await whileNarrow(() =>
      whileDropping(2, "packet-too-big", () => tool(way, "mtu", "-n", chain.target)),
    );
    expect(status).toBe(0);
    const [, hop2, hop3] = chain.hops;
    expect(stdout).toContain(
      `\nPackets of more than 1420 bytes vanish, and no Packet Too Big comes, so connections hang when they send much. The narrow link is between hop 2 (${hop2}) and hop 3 (${hop3}).\nPath MTU  1420 bytes\n`,
    );
    expect(stdout).toContain("\n  1  1500 bytes  ");
  });

  labTest("loopback is clear at the size of its interface", async () => {
    const { status, stdout } = await tool(way, "mtu", "::1");
    expect(status).toBe(0);
    expect(stdout).toContain(
      "\nThe target answers packets of 65536 bytes, the largest that this machine can send.\nPath MTU  65536 bytes\n",
    );
    expect(stdout).toContain("\n  1 65536 bytes  ::1\n");
  });

  labTest("--json prints the document, --json --stream the events", async () => {
    const [mtr, mtu] = await Promise.all([
      tool(way, "mtr", "--json", "--stream", "-n", "-c", "2", "-i", "0.1", "::1"),
      tool(way, "mtu", "--json", "-n", "::1"),
    ]);
    const lines = mtr.stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).event)).toEqual([
      "round",
      "round",
      "round",
      "result",
    ]);
    expect(JSON.parse(mtu.stdout)).toMatchObject({
      mtu: 65_536,
      details: { verdict: { code: "clear" } },
    });
  });

  labTest("an error is said, not shown in a format", async () => {
    const result = await tool(way, "mtr", "--format", "mtr-json", "2001:db8::g");
    expect(result).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining("not a valid IPv6 address"),
    });
  });
});

labTest("mtu ends with 1 where the target does not answer", async () => {
  const impatient = { ...ENVIRONMENT, SIXSCOPE_PROBE_TIMEOUT_MS: "300" };
  const { status, stdout } = await whileDropping(
    ROUTERS + 1,
    "{ echo-reply, destination-unreachable }",
    () => sixscope(["mtu", "-n", chain.target], impatient),
  );
  expect(status).toBe(1);
  expect(stdout).toContain(
    `\n${chain.target}\nThe target answers neither echo requests nor UDP packets. Packets of 1500 bytes get to hop 4 `,
  );
});

labTest("mtr of a service takes as many rounds as the API allows", async () => {
  expect(await tool("from a service", "mtr", "-c", "101", "::1")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("from 1 to 100"),
  });
});

rightsTest.each(["trace", "mtr", "mtu"])(
  "%s says what to do without a raw socket",
  async (name) => {
    const withoutRights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    const program = [...withoutRights, PROGRAM];
    const { status, stderr } = await sixscope([name, "::1"], ENVIRONMENT, program);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^sixscope: no raw socket \(socket\(.*\): EPERM\); .*, or let a service do it with --server URL\n$/,
    );
  },
);

labTest("Ctrl-C ends mtr with what there is", async () => {
  await using child = Bun.spawn([PROGRAM, "mtr", "-c", "1000", chain.target], {
    env: { PATH: process.env["PATH"], ...ENVIRONMENT },
    stdout: "pipe",
    stderr: "pipe",
  });
  let stdout = "";
  for await (const chunk of child.stdout) {
    stdout += new TextDecoder().decode(chunk);
    if (stdout === `mtr ${chain.target}\n`) child.kill("SIGINT");
  }
  // On a busy machine a round may have ended before the signal.
  const REPLIED = "The target replied to";
  expect({ status: await child.exited, stderr: await new Response(child.stderr).text() }).toEqual({
    status: stdout.includes(REPLIED) ? 0 : 1,
    stderr: "",
  });
  expect(stdout).toMatch(
    new RegExp(
      `^2001:.*\\n(?:${REPLIED}.*\\n)?(?:Rounds {2}\\d+, times in ms\\n)?interrupted\\n$`,
      "m",
    ),
  );
});

describe("in a terminal", () => {
  const command = (args: string, variables = "") =>
    `${variables} SIXSCOPE_RESOLVER_A=[::1]:9 '${PROGRAM}' ${args}`;

  terminalTest.each(["mtr -c 3 -i 0.1", "mtu"])(
    "%s shows what a pipe gets, in place and in colours",
    async (args) => {
      const shown = await inTerminal(command(`${args} ${chain.target}`), 200);
      expect(shown).toMatch(COLOUR);
      const lines = screenOf(shown);
      const { stdout } = await tool("here", ...args.split(" "), chain.target);
      expect(withoutTimes(lines.join("\n"))).toBe(withoutTimes(stdout));
    },
  );

  terminalTest.each([
    [80, "mtr -c 3 -i 0.1", "hop loss sent  last   avg  best worst stdev  address"],
    [40, "mtr -c 3 -i 0.1", "hop loss sent   avg  address"],
    [80, "mtu", "hop     largest  address"],
    [40, "mtu", "hop     largest  address"],
    [40, "trace", "hop         time  address"],
  ])("of %d columns, %s fits", async (columns, args, titles) => {
    const shown = await inTerminal(command(`${args} ${chain.target}`), columns);
    const lines = screenOf(shown);
    for (const line of lines) expect(line.length).toBeLessThan(columns);
    expect(lines.filter((line) => line.startsWith("hop"))).toEqual([titles]);
    for (const hop of chain.hops) {
      expect(lines.filter((line) => /^ +\d/.test(line) && line.includes(hop))).toHaveLength(1);
    }
    expect(lines.join("")).not.toContain("…");
  });

  terminalTest("mtr changes its table after each round", async () => {
    const shown = await inTerminal(command(`mtr -c 3 -i 0.1 ${chain.target}`), 80);
    const rounds = [...shown.matchAll(/rounds (\d), times in ms/g)].map(([, round]) => round);
    expect(rounds).toEqual(["1", "2", "3"]);
    // A redrawn line is found by the cursor, and begins no new one.
    expect(screenOf(shown).filter((line) => line.startsWith("hop "))).toHaveLength(1);
    // Nothing of the round is left when the result is shown.
    expect(screenOf(shown).join("\n")).not.toContain(", rounds");
  });

  terminalTest("mtr prints a table that is longer than the screen once more", async () => {
    const shown = await inTerminal(command(`mtr -c 2 -i 0.1 ${chain.target}`), 80, 5);
    const lines = screenOf(shown);
    const table = lines.slice(lines.findLastIndex((line) => line.startsWith("hop ")));
    expect(table[0]).toEndWith("  address");
    expect(table.slice(1, 6).map((line) => line.split("  ").at(-1))).toEqual([...chain.hops]);
    expect(table.slice(7, 9)).toEqual([chain.target, "The target replied to all 2 probes."]);
  });

  terminalTest("NO_COLOR prevents colours", async () => {
    expect(await inTerminal(command(`mtr -c 1 ${chain.target}`, "NO_COLOR=1"), 80)).not.toMatch(
      COLOUR,
    );
  });
});

describe("beside mtr itself", () => {
  /** The output of mtr on a machine whose name is the source address of its probes. */
  const mtr = (...args: string[]) =>
    run([
      ...["unshare", "--uts", process.execPath, WITH_HOSTNAME, chain.source],
      ...["mtr", "-6", "-n", "-c", "3", "-i", "0.2", ...args, chain.target],
    ]);
  const ours = async (format: string) => {
    const args = ["mtr", "-n", "-c", "3", "-i", "0.2", "--format", format, chain.target];
    return (await tool("here", ...args)).stdout;
  };
  const both = (...args: [ours: string, ...theirs: string[]]) =>
    whileDropping(2, "time-exceeded", async () => [
      await ours(args[0]),
      await mtr(...args.slice(1)),
    ]);
  const stable = (text: string) =>
    text.replace(/^Start: .{24}$/m, "Start:").replaceAll(/ +\d+\.\d(?=[ \n])/g, " T");

  mtrTest("the report is the same but for the times, and the verdict behind it", async () => {
    const [our, their] = (await both("mtr-report", "--report", "--report-wide")) as [
      string,
      string,
    ];
    expect(our).toMatch(/^Start: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000\nHOST: /);
    const VERDICT = "The target replied to all 3 probes.\n";
    expect(stable(our)).toBe(`${stable(their)}${VERDICT}`);
    expect(our).toContain("  2.|-- ???");
  });

  mtrTest("the JSON has the same keys, types, hosts and counts", async () => {
    const [our, their] = (await both("mtr-json", "--json")).map((text) => JSON.parse(text));
    const TIMES = ["Last", "Avg", "Best", "Wrst", "StDev"];
    const stableJson = (value: unknown) =>
      JSON.parse(
        JSON.stringify(value, (key, entry) => (TIMES.includes(key) ? typeof entry : entry)),
      );
    // mtr's packets have another size.
    const expected = stableJson({ report: { ...their.report } });
    expected.report.mtr.psize = "104";
    expect(stableJson(our)).toEqual(expected);
  });
});

test("wrong usage ends with status 2", async () => {
  const rows: [string[], string][] = [
    [["mtr"], "missing required argument 'target'"],
    [["mtr", "::1", "--format", "mtr-json", "--json"], "cannot be used with option '--json'"],
    [["trace", "::1", "--paths"], "argument missing"],
    [["mtu", "::1", "--format", "mtr-json"], "unknown option '--format'"],
    [["trace", "::1", "--format", "mtr-json"], "unknown option '--format'"],
    [["mtr", "::1", "--format", "mtr-json", "--stream"], "--stream needs --json"],
    [
      ["mtr", "::1", "--format", "mtr-json", "--from", "a,b", "--server", "http://[::1]:1"],
      "--format can show only one location",
    ],
  ];
  for (const [args, said] of rows) {
    const { status, stdout, stderr } = await sixscope(args, ENVIRONMENT);
    expect({ args, status, stdout }).toEqual({ args, status: 2, stdout: "" });
    expect(stderr).toContain(said);
  }
});
