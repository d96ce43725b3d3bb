import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiError } from "../../src/api/errors.ts";
import { servedEndpoint } from "../../src/server/endpoints.ts";
import checkExample from "../../src/tools/check/example.json" with { type: "json" };
import { toolNamed } from "../../src/tools/table.ts";
import { History } from "../../src/watch/history.ts";
import type { WatchChange } from "../../src/watch/result.ts";
import { hashOf, parseSchedule, type ScheduleRules } from "../../src/watch/schedule.ts";
import { OWNER, Watcher, type WatcherParts } from "../../src/watch/watcher.ts";
import { randomFrom } from "../lab/simulation.ts";
import { FakeClock } from "../util/fake-clock.ts";
import { EPOCH_MS, quietLog } from "./runs.ts";
import { mtrOf, type Network, traceOf } from "./simulated.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-watcher-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

/** A call of a simulated tool. */
interface Asked {
  readonly tool: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

/** A simulated network, and the watches that look at it. */
function startLab(
  lines: string,
  answer: (asked: Asked) => object | Promise<object>,
  more: { maxProbes?: number; isConnected?: boolean; beginMs?: number } = {},
) {
  const clock = new FakeClock();
  const stopping = new AbortController();
  const asked: Asked[] = [];
  const clients = new Set<string>();
  const endpointOf: ScheduleRules["endpointOf"] = (tool) => ({
    ...servedEndpoint(toolNamed(tool)),
    handle(values, { client }) {
      const question = { tool, values, atMs: clock.nowMs() };
      asked.push(question);
      clients.add(client);
      return answer(question) as never;
    },
  });
  const rules = { endpointOf, config: { probePorts: [[1, 65_535]] as const } };
  let beginMs = EPOCH_MS + (more.beginMs ?? 0);
  const nowMs = () => beginMs + clock.nowMs();
  const history = new History(join(folder, "history.db"), 16, quietLog, nowMs);
  const services = {
    config: { maxProbes: more.maxProbes ?? 64, notify: null },
    locations: more.isConnected ? { own: null, isConnected: true } : null,
  } as unknown as WatcherParts["services"];
  const parts = {
    services,
    rules,
    history,
    log: quietLog,
    stopping: stopping.signal,
    clock,
    nowMs,
  };
  const watcher = new Watcher(parts);
  const runs: { name: string; at: string; code: string | null; gap: string | null }[] = [];
  const changes: (WatchChange & { name: string })[] = [];
  watcher.subscribe((event, data) => (event === "run" ? runs : changes).push(data as never));
  const schedule = parseSchedule(lines, rules);
  watcher.apply(schedule);
  const stop = () => {
    stopping.abort();
    history.close();
  };
  const jump = (ms: number) => {
    beginMs += ms;
  };
  return { jump, clock, watcher, history, asked, clients, runs, changes, schedule, stop, rules };
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const check = (code = "works", steps: object[] = checkExample.steps) => ({
  ...checkExample,
  steps,
  details: { ...checkExample.details, verdict: { code, text: `It is ${code}.` } },
});

const withCertificate = (sha256: string) =>
  checkExample.steps.map((step) =>
    step.name === "tls"
      ? { ...step, certificate: { sha256, notAfter: "2027-05-01T00:00:00Z", issuer: "Example CA" } }
      : step,
  );

const random = randomFrom(1);
const mtr = (network: Partial<Network> = {}, changes: object = {}) => {
  const document = mtrOf({ choice: "flow", silence: 0.1, ...network }, 7, random);
  const verdict = { code: random() < 0.2 ? "loss" : "no-loss", text: "It is as ever." };
  const times = { min: 19, p50: 20 + random(), max: 30 };
  const hops = document.hops.map((hop) => ({ ...hop, ...times }));
  const toTarget = { sent: 10, loss: random() < 0.05 ? 10 : 0 };
  return { ...document, hops, details: { ...document.details, verdict, toTarget, ...changes } };
};

test("an hour of a quiet network tells nothing, also where routers choose by packet", async () => {
  const lab = startLab(
    "check www.example.com every=1m\nmtr 2001:db8:ffff::80 every=1m\nmtr 2001:db8:ffff::81 every=1m",
    ({ tool, values }) =>
      tool === "check"
        ? check()
        : mtr(values["target"] === "2001:db8:ffff::81" ? { choice: "packet" } : {}),
  );
  await lab.clock.advance(HOUR);
  expect(lab.changes).toEqual([]);
  expect(lab.runs.length).toBe(180);
  expect(lab.runs.every(({ gap }) => gap === null)).toBe(true);
  expect([...lab.clients]).toEqual([OWNER]);
  lab.stop();
});

test("traces through routers that choose by packet are soon known to come and go", async () => {
  const lines = Array.from({ length: 10 }, (_, at) => `trace 2001:db8:ffff::${at + 1} every=1m`);
  const lab = startLab(lines.join("\n"), () =>
    traceOf({ choice: "packet", silence: 0 }, 7, random),
  );
  await lab.clock.advance(2 * HOUR);
  expect(lab.changes.filter(({ confirmed }) => confirmed).length).toBeLessThanOrEqual(2);
  // Two flaps a hop, and then none for a day.
  expect(lab.changes.length).toBeLessThanOrEqual(10 * 5);
  lab.stop();
});

/** When the truth changes. */
const AT = 10 * MINUTE;

test.each<[reason: string, line: string, before: () => object, after: () => object, kind: string]>([
  [
    "a site that dies",
    "check www.example.com every=1m",
    check,
    () => check("no-answer"),
    "verdict",
  ],
  [
    "a certificate",
    "check www.example.com every=1m",
    () => check("works", withCertificate("aa")),
    () => check("works", withCertificate("bb")),
    "certificate",
  ],
  [
    "a router",
    "mtr 2001:db8:ffff::80 every=1m",
    mtr,
    () => mtr({ replaced: { hop: 2, way: 0 } }),
    "path",
  ],
  [
    "an address",
    "mtr www.example.com every=1m",
    mtr,
    () => ({ ...mtr(), ip: "2001:db8:ffff::99" }),
    "addresses",
  ],
  [
    "loss",
    "mtr 2001:db8:ffff::80 every=10s",
    mtr,
    () => mtr({}, { toTarget: { sent: 10, loss: 30 } }),
    "loss",
  ],
  [
    "delay",
    "mtr 2001:db8:ffff::80 every=10s",
    mtr,
    () => ({ ...mtr(), hops: mtr().hops.map((hop) => ({ ...hop, p50: 40 })) }),
    "rtt",
  ],
])("%s is told in time, with both sides", async (_reason, line, before, after, kind) => {
  const lab = startLab(line, ({ atMs }) => (atMs < AT ? before() : after()));
  await lab.clock.advance(AT + 2 * MINUTE);
  expect(lab.changes.map((change) => [change.kind as string, change.confirmed])).toEqual([
    [kind, true],
  ]);
  const [change] = lab.changes;
  if (change === undefined) return;
  const detail = lab.watcher.change(change.name, change.id);
  expect(detail?.diff).toMatchObject([{ kind, text: change.text }]);
  expect([detail?.before, detail?.after].map((side) => side !== null)).toEqual(
    ["rtt", "loss"].includes(kind) ? [false, false] : [true, true],
  );
  lab.stop();
});

test("a verdict that becomes bad has a check from all locations as evidence; one that becomes good has none", async () => {
  const locations = [
    { location: "ams", result: check() },
    { location: "fra", result: check("no-answer") },
  ];
  const lab = startLab(
    "ping www.example.com every=1m",
    ({ tool, atMs }) =>
      tool === "check"
        ? { name: "www.example.com", locations, details: {} }
        : {
            target: "www.example.com",
            stats: {},
            results: [],
            details: {
              verdict: {
                code: atMs > AT && atMs < 2 * AT ? "no-reply" : "no-loss",
                text: "It is so.",
              },
            },
          },
    { isConnected: true },
  );
  await lab.clock.advance(3 * AT);
  expect(lab.changes.length).toBe(2);
  const evidence = lab.changes.map(({ name, id }) => lab.watcher.change(name, id)?.evidence);
  expect(evidence).toEqual([locations, null]);
  const checks = lab.asked.filter(({ tool }) => tool === "check");
  expect(checks.map(({ values }) => [values["name"], values["from"]])).toEqual([
    ["www.example.com", "all"],
  ]);
  lab.stop();
});

test("what does not come again is a flap, and told to nobody", async () => {
  let count = 0;
  const lab = startLab("check www.example.com every=1m", () =>
    check(++count === 5 ? "no-answer" : "works"),
  );
  await lab.clock.advance(10 * MINUTE);
  expect(lab.changes.map(({ kind, confirmed }) => [kind as string, confirmed])).toEqual([
    ["verdict", false],
  ]);
  expect(lab.watcher.changeCounts.get("check www.example.com")).toEqual(new Map([["flap", 1]]));
  expect(lab.watcher.list().watches[0]?.changes).toEqual({ day: 0, month: 0 });
  // One more for the confirmation.
  expect(count).toBe(11);
  lab.stop();
});

test("an error about the target is a run, one about the service a gap", async () => {
  const gone = new ApiError("HOSTNAME_NOT_FOUND", {
    hostname: "gone.example.com",
    resolver: "resolver_a",
    attempts: [],
    question: { name: "gone.example.com.", type: "AAAA" },
    records: [],
  } as never);
  const unreachable = (rcode: string) =>
    new ApiError("RESOLVER_FAILURE", { hostname: rcode, rcode, reason: "EPERM" } as never);
  const errors: Readonly<Record<string, ApiError>> = {
    "gone.example.com": gone,
    "2001:db8::1": new ApiError("ICMP_UNAVAILABLE", { reason: "EPERM" }),
    // No question left, or none met a resolver.
    "2001:db8::2": unreachable("SHORTAGE"),
    "2001:db8::3": unreachable("UNREACHABLE"),
  };
  const targets = [...Object.keys(errors), "2001:db8::4"];
  const lines = targets.map((target) => `ping ${target} every=1m`);
  const lab = startLab(lines.join("\n"), ({ values }) => {
    const error = errors[values["target"] as string];
    if (error) throw error;
    // From two locations, which have no resolver.
    const { body } = unreachable("UNREACHABLE");
    return { locations: ["ams", "fra"].map((location) => ({ location, ...body })) };
  });
  await lab.clock.advance(3 * MINUTE);
  const byName = Map.groupBy(lab.runs, ({ name }) => name);
  expect(byName.get("ping gone.example.com")?.map(({ code, gap }) => [code, gap])).toEqual(
    Array(3).fill(["HOSTNAME_NOT_FOUND", null]),
  );
  for (const target of [1, 2, 3, 4]) {
    const gaps = byName.get(`ping 2001:db8::${target}`);
    expect(gaps?.length).toBe(3);
    expect(gaps?.every(({ code, gap }) => code === null && gap !== null)).toBe(true);
  }
  lab.stop();
});

test("runs are spread over the interval, at most half of the probes at once, and what cannot begin is a gap", async () => {
  const lines = Array.from({ length: 200 }, (_, at) => `ping 2001:db8::${at + 1} every=1m`).join(
    "\n",
  );
  let running = 0;
  let most = 0;
  const lab = startLab(
    lines,
    async () => {
      most = Math.max(most, ++running);
      // As if the targets did not answer: 8 at once are not enough for 200 a minute.
      await new Promise<void>((resolve) => lab.clock.after(10_000, resolve));
      running--;
      return check();
    },
    { maxProbes: 16 },
  );
  await lab.clock.advance(3 * MINUTE);
  expect(most).toBe(8);
  const gaps = lab.runs.filter(({ gap }) => gap !== null);
  expect(gaps.length).toBeGreaterThan(100);
  expect(new Set(gaps.map(({ gap }) => gap))).toEqual(
    new Set(["8 runs of watches were under way, as many as may be"]),
  );
  const seconds = new Set(
    lab.schedule.watches.map(({ name }) => Math.floor((hashOf(name) % MINUTE) / 10_000)),
  );
  expect(seconds.size).toBe(6);
  lab.stop();
});

test("after a restart, the verdict and what was compared are as before, and the time between is a gap", async () => {
  const line = "check www.example.com every=1m";
  const first = startLab(line, () => check("works", withCertificate("aa")));
  await first.clock.advance(5 * MINUTE);
  first.stop();
  const second = startLab(line, () => check("works", withCertificate("bb")), { beginMs: HOUR });
  expect(second.watcher.list().watches[0]?.verdict?.code).toBe("works");
  await second.clock.advance(2 * MINUTE);
  expect(second.changes.map(({ kind }) => kind as string)).toEqual(["certificate"]);
  const [gap, ...runs] = second.runs;
  expect(gap?.gap).toBe("the service did not run");
  expect(runs.every((each) => each.gap === null)).toBe(true);
  const name = "check www.example.com";
  const series = second.watcher.series(name, EPOCH_MS, EPOCH_MS + HOUR, 60)?.series ?? [];
  expect(series.filter((part) => part.gap !== null).length).toBeGreaterThan(50);
  second.stop();
});

test.each([
  ["runs more often than before", "check www.example.com every=6h"],
  ["was not watched for a time", "here every=1m"],
])("a watch that %s has no gap, because the service ran", async (_what, before) => {
  const line = "check www.example.com every=1m";
  const lab = startLab(line, () => check());
  await lab.clock.advance(5 * MINUTE);
  lab.watcher.apply(parseSchedule(before, lab.rules));
  await lab.clock.advance(4 * HOUR);
  lab.watcher.apply(parseSchedule(line, lab.rules));
  await lab.clock.advance(5 * MINUTE);
  expect(lab.runs.filter(({ gap }) => gap !== null)).toEqual([]);
  lab.stop();
});

test.each([-10 * HOUR, 10 * HOUR])(
  "runs go on when the clock jumps by %d ms, and none is lost",
  async (ms) => {
    const lab = startLab("check www.example.com every=1m", () => check());
    await lab.clock.advance(10 * MINUTE);
    lab.jump(ms);
    await lab.clock.advance(10 * MINUTE);
    expect(lab.runs.map(({ gap }) => gap)).toEqual(Array(20).fill(null));
    const all = lab.watcher.series("check www.example.com", 0, 2 * EPOCH_MS, 1);
    expect(all?.series[0]?.runs).toBe(20);
    expect(lab.changes).toEqual([]);
    lab.stop();
  },
);

test("5,000 watches of a file are read, each wrong line is told, and the others go on", () => {
  const { rules, stop } = startLab("", () => ({}));
  const good = Array.from(
    { length: 5_000 },
    (_, at) => `check host-${at}.example.com every=${10 + at}s`,
  );
  const { watches, wrong } = parseSchedule([...good, "chekc www.example.com"].join("\n"), rules);
  expect([watches.length, wrong.length, wrong[0]?.line]).toEqual([5_000, 1, 5_001]);
  stop();
});

test.each<[line: string, expected: object | string]>([
  [
    "check www.example.com",
    { name: "check www.example.com", everyMs: 300_000, target: "www.example.com", from: null },
  ],
  [
    "  mtr  2001:db8::80 every=1m   rounds=10 from=ams,fra # core",
    { name: "mtr 2001:db8::80 rounds=10 from=ams,fra", everyMs: 60_000, from: "ams,fra" },
  ],
  ["here every=1d from=all", { name: "here from=all", target: null, everyMs: 86_400_000 }],
  ["dns example.com type=MX", { tool: "dns" }],
  ["ping www.example.com every=9s", "every"],
  ["ping www.example.com every=2d", "every"],
  ["ping www.example.com every=1", "every"],
  ["ping", "target"],
  ["ping 192.0.2.1", "192.0.2.1"],
  ["ping www.example.com count=0", "count"],
  ["ping www.example.com count=4 count=5", "twice"],
  ["ping www.example.com colour=red", "colour"],
  ["ping www.example.com www.example.net", "twice"],
  ["validate 2001:db8::1", "validate"],
  ["check www.example.com from=AMS", "from"],
  ["dns a..b", "a..b"],
])("the line %j", (line, expected) => {
  const { rules, stop } = startLab("", () => ({}));
  const { watches, wrong } = parseSchedule(line, rules);
  if (typeof expected === "string")
    expect([watches.length, wrong[0]?.text]).toEqual([0, expect.stringContaining(expected)]);
  else expect(watches[0]).toMatchObject(expected);
  stop();
});

test("paths of a watch keep one flow label, which differs between watches", () => {
  const { schedule, stop } = startLab(
    "mtr 2001:db8::1 every=1d\nmtr 2001:db8::2\ntrace 2001:db8::1\ntrace 2001:db8::2 flowLabel=7",
    () => ({}),
  );
  const labels = schedule.watches.map(({ values }) => values["flowLabel"] as number);
  expect(new Set(labels).size).toBe(4);
  expect(labels[3]).toBe(7);
  expect(labels.every((label) => label > 0 && label <= 0xfffff)).toBe(true);
  stop();
});
