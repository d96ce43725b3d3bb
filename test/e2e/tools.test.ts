/** The tools at the command line: in a pipe, in a terminal, and through a service somewhere else. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import example from "../../src/tools/ping/example.json" with { type: "json" };
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { type Internet, startInternet } from "../lab/internet.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { describeWith, labMissing, programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";
import { COLOUR, inTerminal, screenOf, Terminal } from "../lab/terminal.ts";

const [PROGRAM] = await sixscopeProgram();

const TARGET = "2001:db8:ff::1";
const BLACKHOLE = "2001:db8:ff::2";
const NO_ROUTE = "2001:db8:ff::3";

const routers = [1, 2, 3, 4, 5].map((hop) => ({
  address: `2001:db8:1::${hop}`,
  rttMs: 10 * hop,
  silent: hop === 3,
}));
const end = { rttMs: 60 };

/** Of the routers, all but the fourth have names. */
const NAMES = `@ SOA ns.example. host.example. 1 60 60 60 60
@ NS ns.example.
${[1, 2, 3, 5].map((hop) => `${hop}${".0".repeat(15)}.0.0.0.0.1.0.0.0 PTR r${hop}.example.net.`).join("\n")}
`;
const ZONE = `@ SOA ns host 1 60 60 60 60
@ NS ns
target AAAA ${TARGET}
www CNAME target
`;

const missing = tunMissing ?? programMissing("knotd");
const labTest = testWith(missing);
const terminalTest = testWith(missing, programMissing("script"));

let folder: string;
let knot: KnotServer;
let internet: Internet;
let environment: Record<string, string>;

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-tools-"));
  knot = await startKnot({ zones: { "8.b.d.0.1.0.0.2.ip6.arpa.": NAMES, "example.test.": ZONE } });
  internet = await startInternet({
    destinations: [
      { to: TARGET, routers, end },
      { to: BLACKHOLE, routers, end: "blackhole" },
      {
        to: NO_ROUTE,
        routers: [...routers, { address: "2001:db8:1::6", rttMs: 60, error: { type: 1, code: 0 } }],
        end,
      },
    ],
  });
  environment = { SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` };
});

afterAll(async () => {
  if (missing !== null) return;
  await internet[Symbol.asyncDispose]();
  await knot.stop();
  rmSync(folder, { recursive: true });
});

const tool = (...args: string[]) => sixscope(args, environment);

/** Lines without times and flow labels, which differ from run to run. */
const withoutTimes = (text: string) =>
  text.replaceAll(/( ?) *\b\d+\.\d{3}\b/g, "$1T").replaceAll(/flow label \d+/g, "flow label N");

describe("into a pipe", () => {
  labTest("ping prints a line for each sample and a summary", async () => {
    const { status, stdout, stderr } = await tool(
      "ping",
      "target.example.test",
      "-c",
      "2",
      "-i",
      "0.05",
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(withoutTimes(stdout)).toBe(`ping target.example.test
seq         time hop limit
  1 T ms        59
  2 T ms        59

target.example.test (${TARGET})
The target replied to all 2 requests.
Replies  2 of 2, 0 % lost
Times    min T, mean T, max T ms
Probed   ${TARGET} from 2001:db8::1
`);
  });

  labTest("ping says why a sample is lost", async () => {
    const { status, stdout } = await tool("ping", NO_ROUTE, "-c", "1");
    expect(status).toBe(1);
    expect(withoutTimes(stdout)).toBe(`ping ${NO_ROUTE}
seq         time hop limit
  1 T ms            no route from 2001:db8:1::6 (ICMPv6 type 1, code 0)

${NO_ROUTE}
The target did not reply to the request. 2001:db8:1::6 answered the request with no route.
Replies  0 of 1, 100 % lost
Probed   ${NO_ROUTE} from 2001:db8::1
`);
  });

  labTest.each(["trace", "traceroute"])("%s prints the hops below each other", async (command) => {
    const { status, stdout, stderr } = await tool(command, TARGET);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(withoutTimes(stdout)).toBe(`trace ${TARGET}
hop         time hop limit  address
  1 T ms        64  2001:db8:1::1   r1.example.net
  2 T ms        63  2001:db8:1::2   r2.example.net
  3                         no reply
  4 T ms        61  2001:db8:1::4
  5 T ms        60  2001:db8:1::5   r5.example.net
  6 T ms        59  ${TARGET}

${TARGET}
The target replied at hop 6.
Probed  ${TARGET} from 2001:db8::1, flow label N
`);
  });

  labTest("trace -n asks for no names, and -m ends it", async () => {
    const { status, stdout } = await tool("trace", "-n", "-m", "2", TARGET);
    expect(status).toBe(1);
    expect(withoutTimes(stdout)).toBe(`trace ${TARGET}
hop         time hop limit  address
  1 T ms        64  2001:db8:1::1
  2 T ms        63  2001:db8:1::2

${TARGET}
No reply from the target within 2 hops (the limit you set).
Probed  ${TARGET} from 2001:db8::1, flow label N
`);
  });

  labTest("trace names the networks of the operator's file", async () => {
    const file = join(folder, "networks.csv");
    writeFileSync(file, "2001:db8:1::/64,Example Transit\n");
    const settings = { ...environment, SIXSCOPE_NETWORKS_FILE: file };
    const { stdout, stderr } = await sixscope(["trace", "-n", "-m", "1", TARGET], settings);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^ {2}1 .* ms {8}64 {2}2001:db8:1::1 {2}Example Transit$/m);
  });

  const lookUps: [string[], number, RegExp][] = [
    [
      ["www.example.test"],
      0,
      /^type +TTL {2}value\nCNAME 3600 {2}target\.example\.test\.\nAAAA {2}3600 {2}2001:db8:ff::1\n\nwww\.example\.test\nresolver_a has 1 AAAA record for www\.example\.test\.\nQuestion {2}www\.example\.test\. AAAA\nServer {4}\[::1\]:\d+ over UDP, NOERROR, \d+ ms\n$/,
    ],
    [["target.example.test", "aaaa"], 0, /^AAAA 3600 {2}2001:db8:ff::1\n/m],
    [["www.example.test", "MX"], 1, /^CNAME .*\n\n.*\n.*exists and has no MX record\.\n/m],
    [
      ["www.example.test", "MX"],
      1,
      /^SOA +example\.test\. ns\.example\.test\. .*, kept for 60 s\n/m,
    ],
    [["no.example.test"], 1, /"no\.example\.test" does not exist/],
    [
      ["no.example.test"],
      1,
      /^no\.example\.test\nQuestion .*\nServer .* NXDOMAIN\nSOA +example\.test\. /,
    ],
    [["-x", "2001:db8:1::1"], 0, /^PTR {2}3600 {2}r1\.example\.net\.\n/m],
    [["a..b"], 2, /not a valid hostname/],
  ];
  labTest.each(lookUps)("dns %p", async (args, status, said) => {
    const result = await tool("dns", ...args);
    expect(result.status).toBe(status);
    expect(result.stdout + result.stderr).toMatch(said);
  });

  labTest("dns asks the server behind the @", async () => {
    const server = `@[::1]:${knot.endpoint.port}`;
    const { status, stdout } = await sixscope(["dns", "target.example.test", server], {
      SIXSCOPE_RESOLVER_A: "[::1]:1",
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining(TARGET) });
  });

  test("validate prints what is known of an address, and ends with 1 for another text", async () => {
    const { status, stdout } = await tool("validate", "2001:0db8::0001");
    expect(status).toBe(0);
    expect(stdout).toMatch(/^2001:db8::1\nType {18}Documentation\nShortest form +2001:db8::1$/m);
    expect(stdout).toMatch(/^Interface ID +0000:0000:0000:0001, numbered by hand \(low byte\)$/m);
    expect(await tool("validate", "2001:db8::g")).toMatchObject({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(/^sixscope: "2001:db8::g" is not a valid IPv6 address/),
    });
  });
});

describe("as JSON", () => {
  labTest("one document", async () => {
    const { status, stdout } = await tool("ping", "--json", "-c", "1", TARGET);
    expect(status).toBe(0);
    expect(stdout).toEndWith("}\n");
    expect(JSON.parse(stdout)).toMatchObject({ target: TARGET, stats: { received: 1 } });
  });

  labTest("the document of an error", async () => {
    const { status, stdout, stderr } = await tool("dns", "--json", "no.example.test");
    expect({ status, stderr }).toEqual({ status: 1, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "HOSTNAME_NOT_FOUND" } });
  });

  labTest("with --stream, one event a line, which together are the result", async () => {
    const { status, stdout } = await tool("trace", "--json", "--stream", TARGET);
    expect(status).toBe(0);
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const hops = new Map(events.slice(0, -1).map(({ event, data }) => [data.hop, { event, data }]));
    const { event, data } = events.at(-1);
    expect(event).toBe("result");
    expect([...hops.values()].toSorted((a, b) => a.data.hop - b.data.hop)).toEqual(
      data.hops.map((hop: object) => ({ event: "hop", data: hop })),
    );
  });
});

describe("in a terminal", () => {
  const command = (args: string, variables = "") =>
    `${variables} SIXSCOPE_RESOLVER_A=[::1]:${knot.endpoint.port} '${PROGRAM}' ${args}`;

  terminalTest.each([`ping -c 2 ${TARGET}`, `trace ${TARGET}`, "dns www.example.test"])(
    "%s shows what a pipe gets, in colours",
    async (args) => {
      const shown = await inTerminal(command(args));
      expect(shown).toMatch(COLOUR);
      const { stdout } = await tool(...args.split(" "));
      const stable = (text: string) => withoutTimes(text).replace(/\d+ ms$/m, "");
      expect(stable(screenOf(shown).join("\n"))).toBe(stable(stdout));
    },
  );

  terminalTest("a hop is shown when it answers, and its name is filled in", async () => {
    const trace = [PROGRAM, "trace", "-w", "10", BLACKHOLE];
    using terminal = new Terminal(trace, environment, 100);
    await terminal.until("r1.example.net");
    const { output } = terminal;
    const first = output.indexOf("2001:db8:1::1");
    expect(first).toBeGreaterThan(0);
    // The line has ended before its name is filled in.
    expect(output.slice(first, output.indexOf("r1.example.net"))).toContain("\n");
    // The trace goes on.
    terminal.child.kill("SIGINT");
    await terminal.until("interrupted");
  });

  terminalTest(
    "in a small one, lines are cut, and those that have left it stay as they are",
    async () => {
      const shown = await inTerminal(command(`trace -n ${TARGET}`), 36, 3);
      const upward = [...shown.matchAll(/\[(\d+)A/g)].map(([, rows]) => Number(rows));
      expect(Math.max(...upward)).toBeLessThan(3);
      const hops = screenOf(shown).filter((line) => /^ {2}\d/.test(line));
      expect(hops.length).toBe(6);
      for (const line of hops) expect(line.length).toBeLessThan(36);
    },
  );

  terminalTest("in a small one, a table that has changed is shown once more, whole", async () => {
    const shown = screenOf(await inTerminal(command(`trace ${TARGET}`), 100, 3));
    const table = shown.slice(shown.findLastIndex((line) => line.startsWith("hop ")) + 1);
    expect(table.slice(0, 2).map((line) => line.split(" ").at(-1))).toEqual([
      "r1.example.net",
      "r2.example.net",
    ]);
    expect(table.filter((line) => /^ {2}\d/.test(line))).toHaveLength(6);
    // Names too, which were cut as long as the table could change.
    const narrow = screenOf(await inTerminal(command(`trace ${TARGET}`), 14)).join("\n");
    expect(narrow).toContain("r1.example.net");
    expect(narrow).not.toContain("…");
  });

  terminalTest("an error breaks between its words", async () => {
    const lines = screenOf(await inTerminal(command("trace a..example || true"), 30));
    expect(lines.slice(1, 3)).toEqual([
      'sixscope: "a..example" is not',
      "a valid hostname: it has an",
    ]);
  });

  terminalTest.each(["NO_COLOR=1", "TERM=dumb"])("%s prevents colours", async (variable) => {
    expect(await inTerminal(command(`trace ${TARGET}`, variable))).not.toMatch(COLOUR);
  });
});

/** Runs a tool, does something when it has printed the text, and returns its end. */
async function runUntil(
  args: readonly string[],
  text: string,
  act: (child: Bun.Subprocess) => void,
  variables = environment,
) {
  await using child = Bun.spawn([PROGRAM, ...args], {
    env: { PATH: process.env["PATH"], ...variables },
    stdout: "pipe",
    stderr: "pipe",
  });
  let stdout = "";
  let isDone = false;
  for await (const chunk of child.stdout) {
    stdout += new TextDecoder().decode(chunk);
    if (isDone || !stdout.includes(text)) continue;
    isDone = true;
    act(child);
  }
  return { status: await child.exited, stdout, stderr: await new Response(child.stderr).text() };
}

describe("Ctrl-C", () => {
  const interrupt = (args: readonly string[], text: string) =>
    runUntil(args, text, (child) => child.kill("SIGINT"));

  labTest("ends a ping with the summary of what there is", async () => {
    const { status, stdout, stderr } = await interrupt(
      ["ping", "-c", "1000", "-i", "0.05", TARGET],
      "\n  3 ",
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const samples = stdout.match(/ ms {8}59$/gm)?.length ?? 0;
    expect(samples).toBeLessThan(1000);
    expect(stdout).toContain(
      `\n${TARGET}\nThe target replied to all ${samples} requests.\nReplies  ${samples} of ${samples}, 0 % lost\nTimes    min `,
    );
    expect(stdout).toEndWith("\ninterrupted\n");
  });

  labTest("ends a trace with the hops that there are", async () => {
    const { status, stdout, stderr } = await interrupt(
      ["trace", "--json", "--stream", "-w", "10", BLACKHOLE],
      '"hop":5',
    );
    expect(stderr).toBe("sixscope: interrupted, so there is no result\n");
    expect(status).toBe(1);
    expect(stdout).not.toContain('"event":"result"');
  });
});

labTest("a reader that stops early ends a ping", async () => {
  const script = `'${PROGRAM}' ping -c 100000 -i 0.05 ${TARGET} | head -n 3`;
  // Without an early end, this would take more than an hour.
  expect(withoutTimes(await run(["sh", "-c", script]))).toBe(
    `ping ${TARGET}\nseq         time hop limit\n  1 T ms        59\n`,
  );
});

describe("wrong usage ends with status 2", () => {
  test("of a target, which is seen when the tool begins", async () => {
    const { status, stdout, stderr } = await tool("ping", "1.2.3.4");
    expect({ status, stdout }).toEqual({ status: 2, stdout: "ping 1.2.3.4\n" });
    expect(stderr).toMatch(/^sixscope: 1\.2\.3\.4 is an IPv4 address; .*\n$/);
  });

  const rows: [string[], string][] = [
    [["ping"], "missing required argument 'target'"],
    [["ping", "::1", "--stream"], "--stream needs --json"],
    [["ping", "::1", "--count"], "option '-c, --count <n>' argument missing"],
    [["ping", "::1", "::2"], "too many arguments for 'ping'"],
    [["ping", "::1", "--server", "http://[::1]:1", "-i", "1"], "a service decides its own times"],
    [["ping", "::1", "--from", "ams"], "only a service knows other locations"],
    [["dns"], "missing the name to look up"],
    [["dns", "a.test", "MX", "b"], "too many words: b"],
    [
      ["dns", "a.test", "@nowhere"],
      "@nowhere has no address that the resolver of this machine knows",
    ],
    [["dns", "a.test", "@nowhere:99999"], "@nowhere:99999 is not a server; write"],
    [["dns", "a.test", "@https://nowhere"], "@https://nowhere is not a server; write"],
    [["dns", "a.test", "@::1", "@::2"], "name one server"],
    [["dns", "a.test", "@::1", "--server", "http://[::1]:1"], "a service decides its own times"],
    [["my-ip"], "only a service sees your address; name one with --server URL"],
  ];
  test.each(rows)("%p", async (args, said) => {
    const { status, stdout, stderr } = await tool(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    const [first, usage, ...others] = stderr.split("\n");
    expect(first).toStartWith("sixscope: ");
    expect(first).toContain(said);
    expect(usage).toStartWith(`usage: sixscope ${args[0]} [options]`);
    expect(usage).toEndWith(`; see sixscope ${args[0]} --help`);
    expect(others).toEqual([""]);
  });
});

describeWith(labMissing)("through a service in another namespace", () => {
  let chain: KernelChain;
  let service: Service;
  let there: Record<string, string>;

  beforeAll(async () => {
    chain = await startKernelChain({ routers: 1 });
    service = await startService(
      { SIXSCOPE_LISTEN: "[::]:8080", SIXSCOPE_PLAIN_HTTP_FROM: "::/0" },
      chain.inside(2, []),
    );
    there = { SIXSCOPE_SERVER: `http://[${chain.target}]:8080`, SIXSCOPE_KEY: service.key };
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await chain.stop();
  });

  /** Runs a tool, whose key may go over plain HTTP here. */
  const sixscopeThere = (args: readonly string[], environment = there) =>
    sixscope([...args, "--plain-http"], environment);

  test("ping and trace work from there", async () => {
    const ping = await sixscopeThere(["ping", "-c", "2", chain.source]);
    expect({ ...ping, stdout: withoutTimes(ping.stdout) }).toEqual({
      status: 0,
      stdout: `ping ${chain.source}
seq         time hop limit
  1 T ms        63
  2 T ms        63

${chain.source}
The target replied to all 2 requests.
Replies  2 of 2, 0 % lost
Times    min T, mean T, max T ms
Probed   ${chain.source} from ${chain.target}
`,
      stderr: "",
    });
    const trace = await sixscopeThere(["trace", "-n", chain.source]);
    expect(trace).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("\nThe target replied at hop 2.\n"),
    });
    const events = await sixscopeThere(["trace", "-n", "--json", "--stream", chain.source]);
    expect(
      events.stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).event),
    ).toEqual(["hop", "hop", "result"]);
  });

  test("my-ip prints the address that it sees", async () => {
    const { status, stdout } = await sixscopeThere(["my-ip"]);
    expect({ status, stdout }).toEqual({ status: 0, stdout: `${chain.source}\n` });
  });

  test("--json prints its document to the byte", async () => {
    const server = there["SIXSCOPE_SERVER"] ?? "";
    const body = await (await fetch(`${server}/api/v1/validate?address=2001:db8::1`)).text();
    const args = ["validate", "--json", "2001:db8::1"];
    const remote = await sixscope([...args, "--server", `${server}/`]);
    expect(remote).toEqual({ status: 0, stdout: `${body}\n`, stderr: "" });
    expect(await sixscope(args)).toEqual(remote);
  });

  test("its errors are reported as ours", async () => {
    expect(await sixscopeThere(["ping", "-c", "11", "::1"])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^sixscope: --count: a number from 1 to 10\./),
    });
    expect(await sixscopeThere(["validate", "g"])).toMatchObject({ status: 1 });
  });

  test("a wrong key is named", async () => {
    const wrong = { ...there, SIXSCOPE_KEY: "sx_wrong" };
    const { status, stderr } = await sixscopeThere(["ping", "::1"], wrong);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^sixscope: http.* does not accept the API key: it is unknown, revoked or expired/,
    );
  });

  test("a closed port is named", async () => {
    const { status, stderr } = await sixscope(["ping", "::1", "--server", "http://[::1]:1"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^sixscope: cannot get an answer from http:\/\/\[::1\]:1: ECONNREFUSED; check .*\n$/,
    );
  });
});

describeWith(labMissing)("a server that", () => {
  const HEADER =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  const END = "0\r\n\r\n";
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
  const SAMPLE = chunk('event: sample\ndata: {"seq":1,"ttl":64,"rtt":1.5}\n\n');

  /** Runs a ping through a server that sends this, and closes when the ping has printed the text. */
  async function pingThrough(answer: string, args: readonly string[] = [], text = "") {
    let close = () => {};
    const server = createServer((socket) => {
      if (text !== "") close = () => socket.end();
      socket.once("data", () => (text === "" ? socket.end(answer) : socket.write(answer)));
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    const { port } = server.address() as { port: number };
    const variables = { SIXSCOPE_SERVER: `http://[::1]:${port}` };
    const result = await runUntil(["ping", "::1", ...args], text, () => close(), variables);
    server.close();
    return result;
  }

  const cuts: [string, string][] = [
    ["in the middle of the stream", HEADER + SAMPLE],
    ["in the middle of an event", HEADER + SAMPLE + chunk("event: sam")],
    ["without a result", HEADER + SAMPLE + END],
  ];
  test.each(cuts)("ends %s is reported, behind what came", async (_, answer) => {
    const { status, stdout, stderr } = await pingThrough(answer, [], "\n  1 ");
    expect(status).toBe(1);
    expect(stdout).toBe("ping ::1\nseq         time hop limit\n  1     1.500 ms        64\n");
    expect(stderr).toMatch(/^sixscope: (cannot get an answer from http|http.* ended the stream)/);
  });

  test("sends an error later is reported with its message", async () => {
    const error = chunk(
      'event: error\ndata: {"error":{"code":"RESOLVER_TIMEOUT","message":"Slow.","details":{}}}\n\n',
    );
    expect(await pingThrough(HEADER + SAMPLE + error + END)).toMatchObject({
      status: 1,
      stderr: "sixscope: Slow.\n",
    });
  });

  test("sends control characters in its message does not rearrange the terminal", async () => {
    const message = "Slow.\\u001b[2J\\nsixscope: all is well";
    const error = chunk(
      `event: error\ndata: {"error":{"code":"RESOLVER_TIMEOUT","message":"${message}","details":{}}}\n\n`,
    );
    expect((await pingThrough(HEADER + error + END)).stderr).toBe(
      "sixscope: Slow.\ufffd[2J\ufffdsixscope: all is well\n",
    );
  });

  test("sends a result in another form is printed in ours", async () => {
    const document = { ...example, target: "::1" };
    const result = chunk(
      `:\n\nevent: result\ndata: ${JSON.stringify(document, null, 1).replaceAll("\n", "")}\n\n`,
    );
    expect((await pingThrough(HEADER + SAMPLE + result + END, ["--json"])).stdout).toBe(
      `${JSON.stringify(document)}\n`,
    );
  });

  const others: [string, string, string][] = [
    [
      "redirects",
      "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: http://[::1]:1/\r\nContent-Length: 0\r\n\r\n",
      "answers status 302",
    ],
    [
      "is no sixscope",
      "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno",
      "answers status 404",
    ],
  ];
  test.each(others)("%s is named", async (_, answer, said) => {
    const { status, stderr } = await pingThrough(answer);
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining(said) });
  });
});
