/**
 * Runs the executable in the most hostile world, beside ten honest clients:
 *
 *     bun scripts/hostile.ts [SECONDS [SEED]]
 *
 * The network answers every probe from a new address, with all extensions and all errors; the resolvers
 * are slow, endless and large; Valkey and an agent answer anything; clients with keys ask for the dearest,
 * read slowly or leave; pages of others use a visitor's rights; and a server answers commands with
 * anything. The service has the memory of its unit.
 *
 * It fails if the service takes more memory, stops, logs a fault or is late, if an honest client gets a
 * wrong or late answer, if a page of others gets a probe, or if a command shows a control character or
 * takes too much. The seed repeats what is chosen, not when it happens. Everything is in a network
 * namespace of its own; it needs root, and knot, nats-server, openssl and iproute2 from Debian.
 */
import "../test/lab/enter.ts";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatSocketAddress } from "../src/addr/socket-address.ts";
import { makeCertificate } from "../test/lab/certificate.ts";
import { startKnot } from "../test/lab/dns-server.ts";
import { startInternet } from "../test/lab/internet.ts";
import { labMissing, programMissing } from "../test/lab/lab.ts";
import { metricsText, seriesIn } from "../test/lab/metrics.ts";
import { startAgent, startNats } from "../test/lab/nats.ts";
import { findProgram } from "../test/lab/run.ts";
import { type Service, sixscope, spawn, startService } from "../test/lab/service.ts";
import { randomFrom } from "../test/lab/simulation.ts";
import { compile, hostTarget } from "./build/compile.ts";
import { readSource } from "./build/source.ts";
import { HONEST_TARGET, hostileNetwork } from "./hostile/network.ts";
import {
  EVIL_LOCATION,
  startHostileAgent,
  startHostileServer,
  startHostileService,
  startHostileValkey,
} from "./hostile/peers.ts";
import { below, pick } from "./hostile/random.ts";
import { startHostileResolver } from "./hostile/resolver.ts";
import { MAX_SYNS, startVictim, VICTIM, WEB_SERVERS } from "./hostile/victim.ts";
import { median, residentMiB } from "./measure.ts";
import { skip } from "./skip.ts";

const MiB = 2 ** 20;

/** The memory of the unit. */
const MAX_MIB = 256;
/** A command that a server attacks. */
const MAX_COMMAND_MIB = 256;
/** A timer that is later than this many milliseconds is late: a bound of a bucket of the metrics. */
const LATE_MS = 50;
/** A timer must not be later than this many seconds, for which no foreign text may hold the service up: another such bound. */
const HELD_UP_SECONDS = 1;
/** The share of the time that the service waits for a processor, above which its late timers show the machine, not the service. */
const MUCH_WAITED = 0.5;
/** Milliseconds until all code has run once: what is used for the first time takes a third of a second of a processor at once. */
const WARM_MS = 2000;
/**
 * How many more of the service's timers may be late than of those of a process beside it that does nothing: this
 * share, and the share of the time in which the service is ready to run but waits for a processor, on which the
 * attackers and resolvers work too.
 */
const MAX_LATE_SHARE = 0.1;

/** Honest answers: half of them, and all but one in 20. The machine does the attackers' work too, so only starving is a fault. */
const MAX_P50_MS = 3000;
const MAX_P95_MS = 10_000;
const MAX_STOP_SECONDS = 30;

/** The limits are not what is tried here. */
const ANONYMOUS = { SIXSCOPE_RATE_ANONYMOUS: "10000000", SIXSCOPE_RATE_PREFIX: "10000000" };

const HONEST_CLIENTS = 10;
const HONEST_PAUSE_MS = 50;
/** With the others below they are six keys, so a sixth of the slots is the share of each: one for each honest client. */
const ATTACKERS = 2;
const RUNS_OF_ATTACKER = 18;
/** TCP runs of one key at one port, which an honest client checks and pings too. */
const CROWD = 12;
/** Runs of one key that wants all slots, each of 100 s. */
const HOG_RUNS = 70;
/** Checks that are begun and aborted at the same time. */
const ABORTERS = 4;
const SAMPLE_MS = 100;

/** The location of an honest agent. */
const LOCATION = "ams";

const [secondsText = "20", seedText = String(Date.now() % 1_000_000)] = Bun.argv.slice(2);
const [seconds, seed] = [Number(secondsText), Number(seedText)];
if (!(seconds > 0 && Number.isInteger(seed))) {
  console.error("usage: bun scripts/hostile.ts [SECONDS [SEED]]");
  process.exit(2);
}
const missing =
  labMissing ??
  ["knotd", "nats-server", "openssl"].filter((name) => !findProgram(name)).map(programMissing)[0];
if (missing) skip({ reason: missing, canBeInstalled: labMissing === null });
console.log(`# ${seconds} s, seed ${seed}`);

const random = randomFrom(seed);
const faults = new Map<string, number>();
const fault = (text: string) => faults.set(text, (faults.get(text) ?? 0) + 1);
const counts = new Map<string, number>();
const count = (text: string) => counts.set(text, (counts.get(text) ?? 0) + 1);
const honestMs: number[] = [];
const residentMiBs: number[] = [];

const folder = mkdtempSync(join(tmpdir(), "sixscope-hostile-"));
const group = makeMemoryGroup();
try {
  const program = [join(folder, "sixscope")] as const;
  await compile(hostTarget(), await readSource(), program[0]);
  const { description, targets } = hostileNetwork(random);
  await using internet = await startInternet(description);
  await using knot = await startKnot({
    zones: { "honest.test": "@ 60 SOA a b 1 60 60 60 60\n@ NS a\na AAAA 2001:db8::53\n" },
  });
  await using nats = await startNats();
  const files = { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") };
  await makeCertificate({ commonName: "resolver", alternatives: "IP:::1", days: 2, ...files });
  const [cert, key] = await Promise.all([
    Bun.file(files.certFile).text(),
    Bun.file(files.keyFile).text(),
  ]);
  const resolver = await startHostileResolver(random, { cert, key });
  await startHostileAgent(random, nats.url);
  await using victim = await startVictim(seed);
  await using _agent = await startAgent(
    { SIXSCOPE_NATS_URL: nats.url, SIXSCOPE_LOCATION: LOCATION, SIXSCOPE_RESOLVER_A: "[::1]:1" },
    [],
    program,
  );
  await startHostileService(random, nats.url, LOCATION, HONEST_TARGET);
  await using service = await startService(
    {
      SIXSCOPE_LISTEN: "[::1]:0",
      SIXSCOPE_METRICS_LISTEN: "[::1]:0",
      SIXSCOPE_KEYLESS_FROM: "::1",
      SIXSCOPE_RATE_KEY: "10000000",
      ...ANONYMOUS,
      SIXSCOPE_RESOLVER_A: resolver.plain,
      SIXSCOPE_RESOLVER_B: resolver.encrypted,
      SIXSCOPE_RESOLVER_C: formatSocketAddress(knot.endpoint),
      SIXSCOPE_NATS_URL: nats.url,
      NODE_EXTRA_CA_CERTS: files.certFile,
      BUN_JSC_forceRAMSize: `${128 * MiB}`,
    },
    group === null ? [] : ["sh", "-c", `echo $$ > ${group}/cgroup.procs; exec "$@"`, "sh"],
    program,
  );
  // Another one, because with Valkey the keys come from there.
  await using instance = await startService(
    { ...ANONYMOUS, SIXSCOPE_VALKEY_URL: await startHostileValkey(random) },
    [],
    program,
  );
  const idleMiB = residentMiB(service.pid);
  const server = await startHostileServer(random);
  const flood = Bun.spawn([process.execPath, join(import.meta.dir, "soak-attack.ts"), service.url]);
  const timers = Bun.spawn([
    process.execPath,
    join(import.meta.dir, "hostile-timers.ts"),
    `${LATE_MS}`,
  ]);
  const beforeMs = waitedMs(service.pid);
  const warm = Bun.sleep(WARM_MS).then(() => heldUp(service));
  await runAll(service, instance, targets, server, program);
  const waitedShare = (waitedMs(service.pid) - beforeMs) / (seconds * 1000);
  flood.kill();
  timers.kill();
  const lateBeside = Number(await new Response(timers.stdout).text());
  const late = (await heldUp(service)) - (await warm);
  if (late > 0) {
    const text = `${late} timers are later than ${HELD_UP_SECONDS} s`;
    if (waitedShare > MUCH_WAITED) console.log(`${text}, which is not judged here`);
    else fault(text);
  }
  await check(service, idleMiB, lateBeside, waitedShare);
  const ports = await victim.syns();
  console.log(
    `SYNs to ${ports.length} ports: ${ports.reduce((sum, { count }) => sum + count, 0)}, at most ${Math.max(...ports.map(({ most }) => most))} to one in a second`,
  );
  for (const { place, most } of ports)
    if (most > MAX_SYNS) fault(`${place} gets ${most} SYNs in a second`);
  const instanceMiB = residentMiB(instance.pid, "VmHWM");
  if (instanceMiB > MAX_MIB) fault(`an instance takes ${instanceMiB} MiB from Valkey`);
  const probes = internet.count();
  count(`probes: ${probes}, questions: ${resolver.questions()}`);
} finally {
  rmSync(folder, { recursive: true });
  if (group !== null) setTimeout(() => rmdirSync(group));
}
for (const [text, number] of [...counts].sort()) console.log(`${number} × ${text}`);
for (const [text, number] of faults) console.log(`FAULT ${number} times: ${text}`);
process.exit(faults.size === 0 ? 0 : 1);

/** Does everything at once, until the time is over. */
async function runAll(
  service: Service,
  instance: Service,
  targets: readonly string[],
  server: string,
  program: readonly string[],
): Promise<void> {
  const endMs = performance.now() + seconds * 1000;
  const repeat = async (pauseMs: number, work: () => unknown) => {
    while (performance.now() < endMs) {
      await work();
      await Bun.sleep(pauseMs);
    }
  };
  const addKey = async (name: string) => {
    const environment = { SIXSCOPE_KEYS_FILE: service.keysFile };
    const { stdout } = await sixscope(["keys", "add", name], environment, program);
    return stdout.split("\n")[0] ?? "";
  };
  const keys = await Promise.all(
    Array.from({ length: ATTACKERS }, (_, at) => addKey(`attacker-${at}`)),
  );
  const [aborter = "", checker = ""] = keys;
  const [hog = "", crowd = "", inCrowd = ""] = await Promise.all(
    ["hog", "crowd", "in-crowd"].map(addKey),
  );
  const leave = (key: string, path: string, ms: number) =>
    ask(
      service,
      key,
      path,
      AbortSignal.timeout(Math.max(1, Math.min(ms, endMs - performance.now()))),
    );
  await Promise.all([
    ...Array.from({ length: HONEST_CLIENTS }, () =>
      repeat(HONEST_PAUSE_MS, () => beHonest(service)),
    ),
    ...keys.flatMap((key) =>
      Array.from({ length: RUNS_OF_ATTACKER }, () =>
        repeat(0, () => attack(service, key, targets)),
      ),
    ),
    ...Array.from({ length: HOG_RUNS }, () =>
      repeat(SAMPLE_MS, () => leave(hog, `/mtr/${HONEST_TARGET}?rounds=100&intervalMs=1000`, 1e6)),
    ),
    ...Array.from({ length: CROWD }, () => {
      const path = `/mtr/${VICTIM.crowded}?protocol=tcp&rounds=100&intervalMs=100`;
      return repeat(SAMPLE_MS, () => leave(crowd, path, 1e6));
    }),
    ...Array.from({ length: ABORTERS }, () =>
      repeat(0, () => leave(aborter, `/check/${VICTIM.aborted}`, below(random, 500))),
    ),
    ...WEB_SERVERS.map((ip) =>
      repeat(SAMPLE_MS, () => leave(checker, `/check/${ip}?port=80`, 1e6)),
    ),
    ...["ping", "check"].map((tool) =>
      repeat(HONEST_PAUSE_MS, () => beHonestInCrowd(service, inCrowd, tool)),
    ),
    ...Array.from({ length: 4 }, () => repeat(5, () => visitForeignPage(service))),
    repeat(10, () => askInstance(instance)),
    repeat(0, () => runCommand(server, program, endMs)),
    repeat(SAMPLE_MS, () => {
      try {
        residentMiBs.push(residentMiB(service.pid));
      } catch {
        fault("the service has ended");
      }
    }),
  ]);
}

/** One request of an honest client, whose answer is known. */
async function beHonest(service: Service): Promise<void> {
  const [path, expected] = pick(Math.random, [
    ["/myip", '"ip":"::1"'],
    ["/validate?address=2001:db8::1", '"type":"Documentation'],
    [`/ping/${HONEST_TARGET}?count=1`, '"received":1'],
    [`/ping/${HONEST_TARGET}?count=1&from=${LOCATION}`, '"received":1'],
    ["/dns/a.honest.test?resolver=resolver_c", "2001:db8::53"],
  ]);
  const startMs = performance.now();
  try {
    const response = await fetch(service.url + path, { headers: { "X-API-Key": service.key } });
    const body = await response.text();
    if (response.status !== 200)
      fault(`honest ${path} answers ${response.status}: ${body.slice(0, 100)}`);
    else if (!body.includes(expected)) fault(`honest ${path} answers ${body.slice(0, 100)}`);
  } catch (error) {
    fault(`honest ${path}: ${error}`);
  }
  honestMs.push(performance.now() - startMs);
}

/** A run of an honest client at a port that many want: it is answered, or refused as the interface says. */
async function beHonestInCrowd(service: Service, key: string, tool: string): Promise<void> {
  const path = `/${tool}/${VICTIM.crowded}?${tool === "ping" ? "protocol=tcp&" : ""}port=443`;
  const headers = { "X-API-Key": key };
  try {
    const body = await (await fetch(service.url + path, { headers })).json();
    const { error, details } = body as {
      readonly error?: { readonly code: string };
      readonly details?: { readonly verdict?: { readonly code?: string } };
    };
    const code = error?.code ?? details?.verdict?.code;
    count(`honest ${tool} at a crowded port: ${code}`);
    if (code === undefined || (error !== undefined && code !== "TOO_MANY_PROBES"))
      fault(`honest ${path} answers ${JSON.stringify(body).slice(0, 100)}`);
  } catch (error) {
    fault(`honest ${path}: ${error}`);
  }
}

/** One of the dearest requests, read whole, slowly, or not at all. */
async function attack(service: Service, key: string, targets: readonly string[]): Promise<void> {
  const target = pick(random, targets);
  const path = pick(random, [
    `/mtr/${target}?rounds=100&intervalMs=100&maxHops=64`,
    `/mtr/${target}?rounds=20&maxHops=64`,
    `/traceroute/${target}?paths=16&maxHops=64`,
    `/traceroute/${target}?maxHops=64`,
    `/mtu/${target}`,
    `/check/${pick(random, WEB_SERVERS)}`,
    `/ping/${target}?count=${1 + below(random, 10)}`,
    `/ping/x${below(random, 1e9)}.evil.test`,
    `/dns/x${below(random, 1e9)}.evil.test?resolver=all&type=${pick(random, ["AAAA", "TXT", "PTR", "CNAME"])}`,
    `/ping/${target}?from=${EVIL_LOCATION}`,
    `/mtr/${target}?from=all&rounds=20`,
    `/traceroute/${target}?from=evil-${below(random, 3000)},${EVIL_LOCATION}`,
  ]);
  const Accept = pick(random, ["text/event-stream", "application/json"]);
  const manner = pick(random, ["whole", "whole", "leaves", "stops reading"]);
  if (manner === "stops reading") return await stopReading(service, path, key);
  const signal = AbortSignal.timeout(manner === "leaves" ? below(random, 3000) : seconds * 1000);
  await ask(service, key, path, signal, Accept);
}

/** Asks, counts what comes, and looks for faults of the service in it. */
async function ask(
  service: Service,
  key: string,
  path: string,
  signal: AbortSignal,
  Accept = "application/json",
): Promise<void> {
  try {
    const response = await fetch(service.url + path, {
      headers: { Accept, "X-API-Key": key },
      signal,
    });
    const body = await response.text();
    const [, code = "a result"] = /"code":"([A-Z_]+)"/.exec(body) ?? [];
    count(`${path.split("/")[1]} answers ${response.status} with ${code}`);
    if (code === "INTERNAL_ERROR") fault(`${path} answers ${code}`);
  } catch {
    count(`left ${path.split("/")[1]}`);
  }
}

/** Asks for events and reads none of them. */
async function stopReading(service: Service, path: string, key: string): Promise<void> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname.replaceAll(/[[\]]/g, ""));
  socket.on("error", () => {}).pause();
  socket.write(
    `GET /api/v1${path} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nX-API-Key: ${key}\r\n\r\n`,
  );
  await Bun.sleep(below(random, 20_000));
  socket.destroy();
}

/** A page of another site uses the rights of its visitor, who needs no key. */
async function visitForeignPage(service: Service): Promise<void> {
  const headers = pick<Record<string, string>>(random, [
    { Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
    { Origin: "null" },
  ]);
  const response = await fetch(`${service.url}/ping/${HONEST_TARGET}?count=1`, { headers }).catch(
    () => null,
  );
  await response?.body?.cancel();
  if (response?.status === 200) fault("a page of another site gets a probe without a key");
}

/** A request to an instance whose Valkey is hostile: Valkey may refuse it, and do no more. */
async function askInstance({ url }: Service): Promise<void> {
  const response = await fetch(`${url}/myip`).catch(() => null);
  if (response?.status !== 200 && response?.status !== 429) {
    fault(`the instance with a hostile Valkey answers ${response?.status ?? "nothing"}`);
  }
  await response?.body?.cancel();
}

/** A command asks the hostile server; a stream that goes on is left when the time is over. */
async function runCommand(
  server: string,
  program: readonly string[],
  endMs: number,
): Promise<void> {
  const [tool = "", ...options] = pick<readonly string[]>(random, [
    ["ping", "::1"],
    ["trace", "::1", "--json"],
    ["mtr", "::1", "--json", "--stream"],
    ["my-ip"],
  ]);
  const child = spawn([...program, tool, ...options, "--server", server], {});
  const timer = setTimeout(() => child.kill("SIGKILL"), Math.max(0, endMs - performance.now()));
  let usedMiB = 0;
  // Not the usage when it has ended, which begins with that of this process.
  const sampler = setInterval(() => {
    try {
      usedMiB = Math.max(usedMiB, residentMiB(child.pid, "VmHWM"));
    } catch {
      // It has ended.
    }
  }, SAMPLE_MS);
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  clearTimeout(timer);
  clearInterval(sampler);
  if (usedMiB > MAX_COMMAND_MIB) fault(`sixscope ${tool} takes ${Math.round(usedMiB)} MiB`);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them.
  if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e]/.test(stdout + stderr)) {
    fault(`sixscope ${tool} prints a control character`);
  }
  count(`sixscope ${tool} ends with ${child.exitCode}`);
}

/** For how long the main thread of a process has waited for a processor, in milliseconds; proc(5). */
function waitedMs(pid: number): number {
  const [, nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}

/** How many timers were at most so late, by the bounds of the buckets in seconds. */
async function lagOf(service: Service): Promise<(bound: string) => number> {
  const series = seriesIn(await metricsText(service));
  return (bound) => series[`sixscope_event_loop_lag_seconds_bucket{le="${bound}"}`] ?? Number.NaN;
}

/** How many timers were later than `HELD_UP_SECONDS`. */
async function heldUp(service: Service): Promise<number> {
  const lag = await lagOf(service);
  return lag("+Inf") - lag(`${HELD_UP_SECONDS}`);
}

/** Compares what was measured with the bounds, and stops the service. */
async function check(
  service: Service,
  idleMiB: number,
  lateBeside: number,
  waitedShare: number,
): Promise<void> {
  const mostMiB = Math.max(...residentMiBs);
  const sorted = honestMs.toSorted((a, b) => a - b);
  const p95 = sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN;
  const lag = await lagOf(service);
  const late = 1 - lag(`${LATE_MS / 1000}`) / lag("+Inf");
  console.log(
    `resident MiB: idle ${idleMiB.toFixed(0)}, median ${median(residentMiBs).toFixed(0)}, most ${mostMiB.toFixed(0)}${group === null ? ", without a cgroup" : ""}`,
  );
  console.log(
    `timers later than ${LATE_MS} ms: ${(late * 100).toFixed(1)} %, beside it ${(lateBeside * 100).toFixed(1)} %; it waits for a processor ${(waitedShare * 100).toFixed(1)} % of the time`,
  );
  console.log(
    `honest answers: ${honestMs.length}, p50 ${median(honestMs).toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`,
  );
  if (!(mostMiB < MAX_MIB)) fault(`it takes ${mostMiB.toFixed(0)} MiB`);
  if (!(late - lateBeside < MAX_LATE_SHARE + waitedShare))
    fault(`${(late * 100).toFixed(1)} % of the timers are late`);
  if (!(median(honestMs) < MAX_P50_MS))
    fault(`half of the honest answers take ${median(honestMs).toFixed(0)} ms`);
  if (!(p95 < MAX_P95_MS)) fault(`one of 20 honest answers takes ${p95.toFixed(0)} ms`);
  service.signal("SIGTERM");
  const status = await Promise.race([service.exited, Bun.sleep(MAX_STOP_SECONDS * 1000)]);
  if (status !== 0) fault(`it stops with ${status ?? `nothing in ${MAX_STOP_SECONDS} s`}`);
  for (const line of service.stderr().split("\n").filter(Boolean)) {
    const level = /^time=\S+ level=(\w+) /.exec(line)?.[1];
    const isExpected = level !== "error" || / code=(LOCATION|RESOLVER)_/.test(line);
    if (level === undefined || !isExpected) fault(`the log has: ${line.slice(0, 200)}`);
  }
}

/** A memory group with the bound of the unit, or null where there can be none. */
function makeMemoryGroup(): string | null {
  const name = `sixscope-hostile-${process.pid}`;
  for (const [root, bound] of [
    ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
    ["/sys/fs/cgroup", "memory.max"],
  ] as const) {
    const path = join(root, name);
    try {
      mkdirSync(path);
      if (!existsSync(join(path, bound))) {
        rmdirSync(path);
        continue;
      }
      writeFileSync(join(path, bound), `${MAX_MIB * MiB}`);
      return path;
    } catch {
      // Try the other, or go without.
    }
  }
  return null;
}
