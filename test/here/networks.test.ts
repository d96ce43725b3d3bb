/** What `sixscope here` says of real networks, beside what `ip` and `ping` say of them. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { CODES } from "../../src/tools/here/codes.ts";
import { hereResult } from "../../src/tools/here/result.ts";
import { labMissing, programMissing, testWith, tunMissing, usersMissing } from "../lab/lab.ts";
import { insideNamespace } from "../lab/namespace.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { labEnvironment, run } from "../lab/run.ts";
import { type NetworkDescription, RESOLVER } from "./description.ts";
import type { Place } from "./looker.ts";
import { type Network, startNetwork } from "./network.ts";
import { TRIALS } from "./networks.ts";
import { BESIDE, SLAAC, STATIC, setting, type Trial, TWO_LINKS } from "./trial.ts";

/** Networks that stand at once: each waits most of its time. */
const AT_ONCE = 10;
/** How far the seconds of `ip` and of the verdict may differ: both round, and look one after the other. */
const SECONDS_APART = 3;
const POLL_MS = 20;
const FOR_EVER = 0xffff_ffff;
/** What a run may send, and with it `ping` and the kernel. */
const MAX_RUN = { packets: 150 + 30, bytes: 65_536 + 4096 } as const;

interface Step {
  readonly name: string;
  readonly status: string;
  readonly text: string;
  readonly ms: number;
}

/** What is read of the document. */
interface HereDocument {
  readonly interfaces: readonly {
    readonly name: string;
    readonly addresses: readonly { readonly ip: string; readonly prefixLength: number }[];
  }[];
  readonly steps: readonly Step[];
  readonly details: {
    readonly startedAt: string;
    readonly verdict: {
      readonly code: string;
      readonly text: string;
      readonly inSeconds?: number;
    };
  };
}

/** A row of `ip -j addr`, and one of `ip -j route`. */
interface AddressRow {
  readonly ifname: string;
  readonly addr_info: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly deprecated?: boolean;
    readonly valid_life_time: number;
  }[];
}
interface RouteRow {
  readonly dst: string;
  readonly expires?: number;
}

/** The client's tables as ip(8) has them, and when that was in milliseconds. */
async function tablesOf({ client }: Network) {
  const ip = (...command: string[]) => run(["ip", "-n", client.namespace, "-6", "-j", ...command]);
  const [addresses, routes] = await Promise.all([ip("addr"), ip("route", "show", "table", "all")]);
  return {
    addresses: JSON.parse(addresses || "[]") as readonly AddressRow[],
    routes: JSON.parse(routes || "[]") as readonly RouteRow[],
    readMs: Date.now(),
  };
}

type Tables = Awaited<ReturnType<typeof tablesOf>>;

/** When the last preferred global address ends, and when the last default route; in milliseconds. */
function endsOf({ addresses, routes, readMs }: Tables) {
  const validSeconds = addresses
    .flatMap(({ addr_info }) => addr_info)
    .filter(({ scope, deprecated }) => scope === "global" && !deprecated)
    .map(({ valid_life_time }) => (valid_life_time === FOR_EVER ? Infinity : valid_life_time));
  const expireSeconds = routes
    .filter(({ dst }) => dst === "default")
    .map(({ expires = Infinity }) => expires);
  return {
    address: readMs + Math.max(...validSeconds) * 1000,
    route: readMs + Math.max(...expireSeconds) * 1000,
  };
}

/** Whether the Internet answers the system's ping within some seconds, which asks meanwhile. */
async function reaches({ client }: Network): Promise<boolean> {
  const ping = ["ping", "-6", "-n", "-q", "-c", "3", "-i", "0.5", "-w", "4", RESOLVER];
  const child = insideNamespace(client.namespace, () =>
    Bun.spawn(ping, { env: labEnvironment, stdout: "pipe", stderr: "ignore" }),
  );
  return / [1-9]\d* received/.test(await new Response(child.stdout).text());
}

/** Processes that wait for a network to look at. */
const idle: ReturnType<typeof startLooker>[] = [];

afterAll(async () => {
  for (const { child } of idle) child.kill();
  await Promise.all(idle.map(({ child }) => child.exited));
});

function startLooker() {
  let said: PromiseWithResolvers<string>;
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "looker.ts")], {
    ipc: (message) => said.resolve(message),
    onExit: () => said.reject(new Error("the looker ended")),
  });
  const ask = (place: Place) => {
    said = Promise.withResolvers();
    child.send(place);
    return said.promise;
  };
  return { child, ask };
}

/** The document of `sixscope here` without its command line. */
async function look({ client }: Network): Promise<HereDocument> {
  const looker = idle.pop() ?? startLooker();
  const document = JSON.parse(await looker.ask(client)) as HereDocument;
  idle.push(looker);
  return document;
}

/** The document of `sixscope here`, and its exit status. */
async function here({ inside }: Network, name?: string, wrapper: readonly string[] = []) {
  const args = ["here", ...(name === undefined ? [] : [name]), "--json"];
  const command = inside([...wrapper, ...(await sixscopeProgram()), ...args]);
  const child = Bun.spawn(command, { env: labEnvironment, stdout: "pipe", stderr: "pipe" });
  const [text, complaint, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (text === "") throw new Error(`sixscope here: ${complaint}`);
  return { document: JSON.parse(text) as HereDocument, status };
}

const STEPS = [
  ...["kernel", "link", "address", "routers", "route", "gateway", "firewall", "source"],
  ...["resolvers", "beyond"],
];

/** When IPv6 ends by a verdict, in milliseconds: it was made when the last step was. */
const endOf = ({ steps, details: { startedAt, verdict } }: HereDocument) =>
  Date.parse(startedAt) +
  Math.max(...steps.map(({ ms }) => ms)) +
  (verdict.inSeconds ?? Number.NaN) * 1000;

/** What is so in every document. */
function checkDocument(document: HereDocument): void {
  const { steps, details } = document;
  const { verdict } = details;
  expect(hereResult().safeParse(document).error).toBeUndefined();
  expect(steps.map(({ name }) => name)).toEqual(STEPS);
  const failed = steps.filter(({ status }) => status === "fail");
  expect(failed.length).toBeLessThanOrEqual(verdict.code === "works" ? 0 : 1);
  for (const { text } of steps) expect(text.length).toBeLessThanOrEqual(300);
  expect(verdict.text).toMatch(/^.{1,400}$/);
}

/** A run sends little, and nothing to others than the configured resolvers. */
function checkTraffic(before: ReturnType<Network["traffic"]>, after: typeof before): void {
  expect(after.packets - before.packets).toBeLessThanOrEqual(MAX_RUN.packets);
  expect(after.bytes - before.bytes).toBeLessThanOrEqual(MAX_RUN.bytes);
  expect(after.strayPackets - before.strayPackets).toBe(0);
}

/** The addresses of all interfaces are those of ip(8), some of which come or go meanwhile. */
function compareAddresses({ interfaces }: HereDocument, before: Tables, after: Tables): void {
  const setOf = ({ addresses }: Tables) =>
    new Set(
      addresses.flatMap(({ ifname, addr_info }) =>
        addr_info.map(({ local, prefixlen }) => `${ifname} ${local}/${prefixlen}`),
      ),
    );
  const ours = new Set(
    interfaces.flatMap(({ name, addresses }) =>
      addresses.map(({ ip, prefixLength }) => `${name} ${ip}/${prefixLength}`),
    ),
  );
  const [earlier, later] = [setOf(before), setOf(after)];
  expect([...earlier.intersection(later).difference(ours)]).toEqual([]);
  expect([...ours.difference(earlier.union(later))]).toEqual([]);
}

let standing = 0;
const waiting: (() => void)[] = [];

/** Waits until fewer networks stand than may. */
async function takePlace(): Promise<Disposable> {
  if (standing === AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  else standing++;
  return {
    [Symbol.dispose]() {
      const next = waiting.shift();
      if (next) next();
      else standing--;
    },
  };
}

async function tryNetwork(trial: Trial): Promise<void> {
  using _ = await takePlace();
  await using network = await startNetwork(trial.network);
  const tables = await tablesOf(network);
  const before = network.traffic();
  const { wrapper } = trial.network;
  const [{ document, status }, isReached] = await Promise.all([
    wrapper ? here(network, undefined, wrapper) : { document: await look(network), status: null },
    reaches(network),
  ]);
  const { verdict } = document.details;
  const about = `${verdict.code}: ${verdict.text}`;
  expect(verdict.code, about).toBe(trial.code);
  for (const part of trial.has ?? []) expect(verdict.text).toMatch(part);
  for (const part of trial.lacks ?? []) expect(verdict.text).not.toMatch(part);
  if (trial.reaches !== null) expect(isReached).toBe(trial.reaches);
  if (trial.document) expect(document).toMatchObject(trial.document);
  checkDocument(document);
  checkTraffic(before, network.traffic());
  compareAddresses(document, tables, await tablesOf(network));
  if (status !== null) expect(status).toBe(trial.code === "works" ? 0 : 1);
  expect(verdict.inSeconds === undefined, about).toBe(trial.ends === undefined);
  if (trial.ends === undefined) return;
  const ends = endsOf(tables);
  expect(Math.abs(endOf(document) - ends[trial.ends]) / 1000, about).toBeLessThan(SECONDS_APART);
  if (trial.code === "ending") expect(ends[trial.ends]).toBe(Math.min(ends.address, ends.route));
}

const programs = ["radvd", "rdisc6", "dnsmasq", "nft", "ping", "setpriv"].map(programMissing);

const NAMED: readonly [name: string, NetworkDescription, of: string, code: string, has?: string][] =
  [
    ["beside the way out", TWO_LINKS, "eth1", "works"],
    ["without a default route", BESIDE, "eth1", "works", "fe80::1 on eth0"],
    [
      "beside the way out, which is down",
      { ...TWO_LINKS, later: [["client", "ip link set eth1 down"]] },
      "eth1",
      "link-down",
    ],
    [
      "of the way out, which ignores advertisements",
      { ...SLAAC, first: setting("eth0/accept_ra", 0), settled: [] },
      "eth0",
      "ra-ignored",
    ],
  ];

// The test that takes longest begins first.
describe("networks", () => {
  const networkTest = testWith(labMissing, ...programs).concurrent;

  networkTest.each(NAMED)(
    "an interface %s can be asked for",
    async (_, description, of, code, has = of) => {
      using _place = await takePlace();
      await using network = await startNetwork(description);
      const { document } = await here(network, of);
      const { verdict } = document.details;
      expect(verdict.code, verdict.text).toBe(code);
      expect(verdict.text).toContain(of);
      expect(verdict.text).toContain(has);
    },
  );

  networkTest("an interface that is not there is a wrong parameter", async () => {
    using _ = await takePlace();
    await using network = await startNetwork(STATIC);
    const { document, status } = await here(network, "eth7");
    expect(document).toMatchObject({
      error: {
        code: "INVALID_PARAMETER",
        details: { parameter: "interface", value: "eth7", allowed: ["eth0"] },
      },
    });
    expect(status).toBe(2);
  });

  networkTest("a resolver that takes more than a second to answer is heard", async () => {
    using _ = await takePlace();
    await using network = await startNetwork({ ...STATIC, answersAfterMs: 1600 });
    const codes: string[] = [];
    // A busy machine delays its answers more, at times beyond what a look waits.
    while (codes.length < 5 && codes.at(-1) !== "works")
      codes.push((await look(network)).details.verdict.code);
    expect(codes.at(-1)).toBe("works");
  });

  networkTest("an interface that vanishes in the middle is down", async () => {
    using _ = await takePlace();
    await using network = await startNetwork(SLAAC);
    const before = network.traffic();
    const looking = here(network);
    while (network.traffic().packets === before.packets) await Bun.sleep(POLL_MS);
    await run(["ip", "-n", network.client.namespace, "link", "del", "eth0"]);
    const { document } = await looking;
    checkDocument(document);
    expect(document.details.verdict.code).toBe("link-down");
  });

  networkTest("an address ends in the second that was told, as ip monitor sees it", async () => {
    using _ = await takePlace();
    await using network = await startNetwork(STATIC);
    const change = "addr replace 2001:db8:1::5/64 dev eth0 valid_lft 40 preferred_lft 40";
    const look = async () => {
      const startMs = performance.now();
      await run(["ip", "-n", network.client.namespace, ...change.split(" ")]);
      return { ...(await here(network)), isQuick: performance.now() - startMs < 20_000 };
    };
    let { document, isQuick } = await look();
    // A busy machine can need all of this time.
    while (!isQuick) ({ document, isQuick } = await look());
    expect(document.details.verdict.code).toBe("ending");
    const monitor = Bun.spawn(
      ["ip", "-n", network.client.namespace, "-ts", "-6", "monitor", "address"],
      {
        env: labEnvironment,
        stdout: "pipe",
      },
    );
    let [text, deletedMs] = ["", Number.NaN];
    for await (const part of monitor.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      const [, time = ""] = /^\[(\S+)\] Deleted .*\n? .*2001:db8:1::5\//m.exec(text) ?? [];
      deletedMs = Date.parse(time);
      if (time !== "") break;
    }
    monitor.kill();
    expect(Math.abs(endOf(document) - deletedMs) / 1000).toBeLessThan(SECONDS_APART);
  });

  const missing = (needs: Trial["needs"]) => {
    if (needs === "tun") return tunMissing;
    return needs === "root" ? usersMissing : labMissing;
  };
  for (const needs of [undefined, "tun", "root"] as const) {
    const trialTest = testWith(missing(needs), ...programs).concurrent;
    trialTest.each(TRIALS.filter((trial) => trial.needs === needs))("$name: $code", tryNetwork);
  }
});

test("every code has its network, but for that of a kernel without IPv6", () => {
  const tried = new Set(TRIALS.map(({ code }) => code));
  expect(CODES.filter((code) => !tried.has(code))).toEqual(["kernel-without-ipv6"]);
});

test("each network has a name of its own, 29 of them those of the first trial", () => {
  expect(new Set(TRIALS.map(({ name }) => name)).size).toBe(TRIALS.length);
  const first = TRIALS.filter(({ firstTrial }) => firstTrial);
  expect(first.filter(({ code }) => code === "works")).toHaveLength(5);
  expect(first.filter(({ code }) => code !== "works")).toHaveLength(24);
});
