/**
 * Measures ping, traceroute and the path MTU beside the system's programs, in the same run and the same network:
 * `bun run bench icmp`. It runs in its own network namespace, as the tests do. With the folder of another version
 * behind it, `bun run bench icmp FOLDER`, it measures only what the engine costs, of both versions in turn.
 */
import "../test/lab/enter.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TraceOutcome } from "../src/tools/trace/engine.ts";
import type { TracedPaths } from "../src/tools/trace/path-search.ts";
import { parseIpv6 } from "../test/addr/parse.ts";
import { openIcmp } from "../test/icmp/engines.ts";
import { startInternet } from "../test/lab/internet.ts";
import type { Router } from "../test/lab/internet-description.ts";
import { startKernelChain } from "../test/lab/kernel-chain.ts";
import { startKernelGraph } from "../test/lab/kernel-graph.ts";
import { nftRule } from "../test/lab/nft.ts";
import { findProgram, run } from "../test/lab/run.ts";
import { type Service, startService } from "../test/lab/service.ts";
import { median } from "./measure.ts";

const TARGET = "2001:db8:2::7";
const engine = openIcmp();

const table = (title: string, rows: Record<string, Record<string, string | number>>) => {
  console.log(`\n${title}`);
  console.table(rows);
};

/** How long something took in milliseconds, and its result. */
async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; result: T }> {
  const from = performance.now();
  const result = await work();
  return { ms: performance.now() - from, result };
}

/** The output of a command, whatever its exit status. */
const output = (...command: string[]) => run(["sh", "-c", '"$@" 2>&1 || true', "sh", ...command]);

const timesIn = (text: string) => [...text.matchAll(/time=([\d.]+)/g)].map(([, ms]) => Number(ms));

async function ourPing(target: string, count: number, intervalMs: number): Promise<number[]> {
  const request = { target: parseIpv6(target), count, intervalMs, timeoutMs: 2000 };
  const outcome = await engine.ping(request);
  return outcome.kind === "done" ? outcome.results.map(({ rtt }) => rtt) : [];
}

/** Like `ourPing`, through a running service. */
async function servicePing(
  { url, key }: Service,
  target: string,
  count: number,
): Promise<number[]> {
  const PER_REQUEST = 10;
  const times: number[] = [];
  for (let sent = 0; sent < count; sent += PER_REQUEST) {
    const response = await fetch(`${url}/ping/${target}?count=${PER_REQUEST}`, {
      headers: { "X-API-Key": key },
    });
    const { results } = (await response.json()) as { results: { rtt: number }[] };
    times.push(...results.map(({ rtt }) => rtt));
  }
  return times;
}

async function rtt(): Promise<void> {
  await using chain = await startKernelChain({ routers: 2 });
  const COUNT = 200;
  const rows: Record<string, Record<string, string>> = {};
  const compare = async (name: string, pingOurs = () => ourPing(chain.target, COUNT, 20)) => {
    const [ours, theirs] = await Promise.all([
      pingOurs(),
      output("ping", "-6", "-n", "-i", "0.02", "-c", `${COUNT}`, chain.target),
    ]);
    rows[name] = {
      "sixscope µs": (median(ours) * 1000).toFixed(1),
      "ping µs": (median(timesIn(theirs)) * 1000).toFixed(1),
      answered: `${ours.length} of ${COUNT}`,
    };
  };
  await compare("warming up");
  await compare("idle");
  const busy = setInterval(() => Bun.sleepSync(50), 1);
  await compare("event loop blocked for 50 ms at a time");
  clearInterval(busy);
  if (findProgram("wrk") !== null) {
    await using service = await startService({
      SIXSCOPE_RATE_ANONYMOUS: "10000000",
      SIXSCOPE_PING_INTERVAL_MS: "20",
      SIXSCOPE_LOG_LEVEL: "warn",
    });
    const load = output("wrk", "-t1", "-c2", "-d6s", `${service.url}/myip`);
    await compare("under load", () => servicePing(service, chain.target, COUNT));
    const [, rate = "?"] = /Requests\/sec:\s+(\d+)/.exec(await load) ?? [];
    rows[`the service under ${rate} requests a second`] = rows["under load"] ?? {};
    delete rows["under load"];
  }
  if (findProgram("fping") !== null) {
    const text = await output("fping", "-6", "-C", `${COUNT}`, "-p", "20", "-q", chain.target);
    const times = text.split(":").at(-1)?.trim().split(/\s+/).map(Number) ?? [];
    rows["fping, afterwards"] = { "ping µs": (median(times) * 1000).toFixed(1) };
  }
  table("Median round-trip time over two kernel routers, measured at the same time", rows);

  const FOUR = ["ping", "-6", "-n", "-c", "4"];
  const ours = await timed(() => ourPing(chain.target, 4, 200));
  const theirs = await timed(() => output(...FOUR, chain.target));
  const quick = await timed(() => output(...FOUR, "-i", "0.2", chain.target));
  table("A whole ping of four", {
    sixscope: { ms: ours.ms.toFixed(0) },
    "ping -c 4": { ms: theirs.ms.toFixed(0) },
    "ping -c 4 -i 0.2": { ms: quick.ms.toFixed(0) },
  });
}

/** How many lines of a trace name a router or the target. */
const namedIn = (text: string) => (text.match(/2001:db8:[12]::/g) ?? []).length;

async function traces(): Promise<void> {
  const HOPS = 30;
  const rows: Record<string, Record<string, string>> = {};
  for (const rttMs of [0.1, 100]) {
    for (const kind of ["no silent hop", "5 silent hops", "silent target"]) {
      const silent = kind === "5 silent hops" ? [6, 7, 8, 9, 10] : [];
      const routers = Array.from({ length: HOPS - 1 }, (_, index): Router => {
        const hop = index + 1;
        return {
          address: `2001:db8:1::${hop.toString(16)}`,
          rttMs: (rttMs * hop) / HOPS,
          silent: silent.includes(hop),
        };
      });
      const end = kind === "silent target" ? "blackhole" : { rttMs };
      await using _ = await startInternet({ destinations: [{ to: TARGET, routers, end }] });
      const request = { target: parseIpv6(TARGET), maxHops: HOPS, timeoutMs: 2000 };
      const ours = await timed(() => engine.traceroute(request));
      const found =
        ours.result.kind === "done" ? ours.result.hops.filter(({ ip }) => ip !== null).length : 0;
      const row = { sixscope: `${ours.ms.toFixed(0)} ms, ${found}` };
      const others = {
        traceroute: ["traceroute", "-6", "-I", "-n", "-q", "1"],
        mtr: ["mtr", "-6", "-n", "-r", "-w", "-c", "1"],
      };
      const theirs = await Promise.all(
        Object.entries(others).map(async ([name, command]) => {
          if (findProgram(name) === null) return [name, "not installed"];
          const { ms, result } = await timed(() => output(...command, TARGET));
          const named = namedIn(result.split("\n").slice(1).join("\n"));
          return [name, `${ms.toFixed(0)} ms, ${named}`];
        }),
      );
      rows[`${rttMs} ms, ${kind}`] = { ...row, ...Object.fromEntries(theirs) };
    }
  }
  table(`A trace over ${HOPS} hops: time, and how many hops it names`, rows);
}

/** IPv6 packets that this network namespace has sent. */
function packetsSent(): number {
  const [, count] = /^Ip6OutRequests\s+(\d+)/m.exec(readFileSync("/proc/net/snmp6", "utf8")) ?? [];
  return Number(count);
}

async function pathMtus(): Promise<void> {
  await using chain = await startKernelChain({ routers: 6 });
  const request = { target: parseIpv6(chain.target), maxHops: 30, timeoutMs: 2000 };
  const rows: Record<string, Record<string, string>> = {};
  /** The time, the packets and the MTU. */
  const measure = async (work: () => Promise<unknown>) => {
    await run(["ip", "-6", "route", "flush", "cache"]);
    const before = packetsSent();
    const { ms, result } = await timed(work);
    return `${ms.toFixed(0)} ms, ${packetsSent() - before} packets, ${result}`;
  };
  const compare = async (name: string) => {
    const sixscope = await measure(async () => {
      const outcome = await engine.mtu(request);
      return outcome.kind === "done" ? outcome.mtu : outcome.kind;
    });
    const tracepath = await measure(async () => {
      const text = await output("tracepath", "-6", "-n", "-m", "10", chain.target);
      return /Resume: pmtu (\d+)/.exec(text)?.[1] ?? "not installed";
    });
    rows[name] = { sixscope, tracepath };
  };
  await compare("1500 everywhere");
  await chain.setMtu(4, 1420);
  await compare("1420 behind hop 3");
  if (findProgram("nft") !== null) {
    const rule = nftRule("output", "icmpv6 type packet-too-big drop");
    await chain.exec(3, ["nft", "-f", "-"], rule);
    await compare("the same, Packet Too Big is filtered");
  }
  table("The path MTU over six kernel routers: time, packets, MTU", rows);
}

/**
 * 1 to 16 routers side by side, over a TUN device; scamper finds by checksum what sixscope finds by flow label.
 * Routers choose by a hash, so that scamper's checksums, one after another, do not take turns.
 */
async function allPaths(): Promise<void> {
  const rows: Record<string, Record<string, string>> = {};
  for (const count of [1, 2, 4, 8, 16]) {
    const equalPaths = Array.from({ length: 1009 }, (_, hash) => {
      const path = Number(Bun.hash.wyhash(`${hash}`) % BigInt(count));
      const hosts = ["1", "2", `a${path.toString(16)}`, "3"];
      return { routers: hosts.map((host) => ({ address: `2001:db8:1::${host}` })) };
    });
    const destinations = [{ to: TARGET, equalPaths, balanceBy: "checksum" as const }];
    await using _ = await startInternet({ destinations });
    const request = { target: parseIpv6(TARGET), maxHops: 30, timeoutMs: 2000, paths: 16 };
    const { ms, result } = await timed(() => engine.paths(request));
    const found = result.kind === "done" ? result.paths.length : result.kind;
    const sent = result.kind === "done" ? result.sent : 0;
    const theirs = await timed(() => output("scamper", "-I", `tracelb -P icmp-echo ${TARGET}`));
    const [, nodes, probes] = /(\d+) nodes, .* (\d+) probes/.exec(theirs.result) ?? [];
    rows[`${count} beside each other`] = {
      sixscope: `${ms.toFixed(0)} ms, ${sent} packets, ${found} paths`,
      "scamper (MDA)": probes
        ? `${theirs.ms.toFixed(0)} ms, ${probes} packets, ${Number(nodes) - 4} paths`
        : "not installed",
    };
  }
  table("All paths over four hops and the target: time and packets", rows);

  const names = Array.from({ length: 8 }, (_, index) => `x${index}`);
  const beside = Object.fromEntries(names.map((name) => [name, ["b"]]));
  await using network = await startKernelGraph(
    { a: names, ...beside, b: ["T"], T: [] },
    { "net/ipv6/icmp/ratelimit": 0 },
  );
  const request = { target: parseIpv6(network.target), maxHops: 30, timeoutMs: 2000, paths: 16 };
  const cost = async (work: () => Promise<number>) => {
    await work();
    const before = process.cpuUsage();
    const { ms, result: sent } = await timed(work);
    const { user, system } = process.cpuUsage(before);
    return {
      ms: ms.toFixed(0),
      packets: sent,
      "CPU µs a probe": ((user + system) / sent).toFixed(0),
    };
  };
  const sentBy = (outcome: TracedPaths | TraceOutcome) =>
    outcome.kind === "done" ? outcome.sent : 0;
  table("Eight paths through kernel routers without limits, whose work is counted too", {
    "all paths": await cost(async () => sentBy(await engine.paths(request))),
    "75 traces, 16 at once": await cost(async () => {
      let sent = 0;
      for (let flowLabel = 1; flowLabel <= 75; ) {
        const traces = Array.from({ length: 16 }, () =>
          engine.traceroute({ ...request, flowLabel: flowLabel++ }),
        );
        for (const outcome of await Promise.all(traces)) sent += sentBy(outcome);
      }
      return sent;
    }),
  });
}

async function throughput(): Promise<void> {
  const PACKETS = 500_000;
  const exchange = join(import.meta.dir, "../test/icmp/exchange.ts");
  const { ms, result: child } = await timed(async () => {
    const started = Bun.spawn([process.execPath, exchange, String(PACKETS)], { stdout: "ignore" });
    await started.exited;
    return started;
  });
  const cpuMicroseconds = Number(child.resourceUsage()?.cpuTime.total);
  table("Packets to loopback and back through the FFI layer", {
    sixscope: {
      "probes a second": Math.round((PACKETS / ms) * 1000),
      "CPU µs a probe": (cpuMicroseconds / PACKETS).toFixed(1),
    },
  });
}

/** Prints the cost of the engine, of source trees in turn: medians. */
async function costs(trees: readonly string[]): Promise<void> {
  const ROUNDS = 5;
  await using chain = await startKernelChain({ routers: 0 });
  // The target drops what it has no route for, so that no error comes.
  const silent = "2001:db8:dead::1";
  await run(["ip", "-6", "route", "add", silent, "via", chain.target]);
  await chain.exec(1, ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
  await chain.exec(1, ["ip", "-6", "route", "add", "blackhole", silent]);
  const figure = async (tree: string, name: string, address: string) => {
    const script = join(import.meta.dir, "icmp-figures.ts");
    return JSON.parse(await run([process.execPath, script, tree, name, address]));
  };
  const pingTimes = (count: number, interval: string) =>
    output("ping", "-6", "-n", "-i", interval, "-c", `${count}`, chain.target);
  const rows: Record<string, Record<string, number[]>> = {};
  const note = (row: string, tree: string, value: number) => {
    const byTree = rows[row] ?? {};
    rows[row] = { ...byTree, [tree]: [...(byTree[tree] ?? []), value] };
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const tree of trees) {
      const [ours, theirs] = await Promise.all([
        figure(tree, "rtt", chain.target),
        pingTimes(200, "0.02"),
      ]);
      note(
        "round-trip time above that of ping, µs",
        tree,
        ours.us - 1000 * median(timesIn(theirs)),
      );
      note(
        "one unanswered ping of 10 s, ms of CPU",
        tree,
        (await figure(tree, "unanswered", silent)).cpuMs,
      );
      note("a trace of one hop, ms", tree, (await figure(tree, "trace", chain.target)).ms);
      const { perSecond, cpuUs } = await figure(tree, "probes", chain.target);
      note("five pings every 5 ms: probes a second", tree, perSecond);
      note("five pings every 5 ms: µs of CPU a probe", tree, cpuUs);
      await using service = await startService(
        { SIXSCOPE_RATE_KEY: "100000", SIXSCOPE_LOG_LEVEL: "warn" },
        [],
        [process.execPath, join(tree, "src/main.ts")],
      );
      const { url, key } = service;
      const all: number[] = [];
      for (let count = 0; count < 100; count++) {
        const request = () =>
          fetch(`${url}/ping/${chain.target}?count=1`, { headers: { "X-API-Key": key } });
        all.push((await timed(async () => await (await request()).text())).ms);
      }
      note("a ping of one packet over HTTP, ms", tree, median(all));
    }
    const { ms } = await timed(() =>
      Promise.all(Array.from({ length: 5 }, () => pingTimes(1000, "0.005"))),
    );
    note("five pings every 5 ms: probes a second", "ping", 5e6 / ms);
  }
  const cells = (byTree: Record<string, number[]>) =>
    Object.entries(byTree).map(([tree, values]) => [tree, median(values).toFixed(2)]);
  table(
    `What the engine costs, median of ${ROUNDS} rounds`,
    Object.fromEntries(
      Object.entries(rows).map(([name, byTree]) => [name, Object.fromEntries(cells(byTree))]),
    ),
  );
}

const OURS = join(import.meta.dir, "..");
const [, other] = Bun.argv.slice(2);
if (other === undefined) {
  await rtt();
  await traces();
  await pathMtus();
  await allPaths();
  await throughput();
}
await costs(other === undefined ? [OURS] : [other, OURS]);
await engine.close();
