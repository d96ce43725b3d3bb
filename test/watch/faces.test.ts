/** A service that watches: what its API, its metrics, its commands and a receiver of changes say of the same runs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Call } from "../../src/api/endpoint.ts";
import { invocation } from "../../src/cli/terminal.ts";
import { parseConfig } from "../../src/config/settings.ts";
import { askStatus } from "../../src/server/status.ts";
import { readEvents } from "../../src/util/event-stream.ts";
import { watches } from "../../src/watch/endpoint.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { metricsText, seriesIn, until } from "../lab/metrics.ts";
import { runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

const TARGET = "2001:db8:77::1";
const NAME = `ping ${TARGET} count=1`;
const SECRET = "a secret";

let folder: string;
let service: Service;
let receiver: Bun.Server<undefined>;
const posts: { body: string; signature: string | null }[] = [];
const file = () => join(folder, "watches");

beforeAll(async () => {
  if (labMissing !== null) return;
  await runIp([`addr add ${TARGET}/128 dev lo nodad`]);
  folder = mkdtempSync(join(tmpdir(), "sixscope-watch-"));
  receiver = Bun.serve({
    hostname: "::1",
    port: 0,
    async fetch(request) {
      posts.push({
        body: await request.text(),
        signature: request.headers.get("x-sixscope-signature"),
      });
      // The first answer of each is lost.
      return new Response(null, { status: posts.length === 1 ? 503 : 204 });
    },
  });
  writeFileSync(file(), `# all\n${NAME}   every=10s\nping a b\n`);
  writeFileSync(join(folder, "secret"), `${SECRET}\n`);
  service = await startService({
    SIXSCOPE_WATCH_FILE: file(),
    SIXSCOPE_HISTORY_FILE: join(folder, "history.db"),
    SIXSCOPE_METRICS_LISTEN: "[::1]:0",
    SIXSCOPE_PROBE_TIMEOUT_MS: "200",
    SIXSCOPE_NOTIFY_URL: `http://[::1]:${receiver.port}/`,
    SIXSCOPE_NOTIFY_SECRET_FILE: join(folder, "secret"),
  });
});

afterAll(async () => {
  if (labMissing !== null) return;
  await service[Symbol.asyncDispose]();
  void receiver.stop(true);
  rmSync(folder, { recursive: true });
});

const ask = async (path: string) => {
  const response = await fetch(service.url + path, { headers: { "X-API-Key": service.key } });
  return { status: response.status, document: await response.json() };
};

const PATH = `/watch/${encodeURIComponent(NAME)}`;

const command = (...args: readonly string[]) =>
  sixscopeHere(["watch", ...args], {
    SIXSCOPE_WATCH_FILE: file(),
    SIXSCOPE_KEYS_FILE: service.keysFile,
    SIXSCOPE_HISTORY_FILE: join(folder, "history.db"),
  });

labTest("without a key, nothing is told of watches", async () => {
  for (const path of ["/watch", PATH, `${PATH}/changes/1`]) {
    expect((await fetch(service.url + path)).status).toBe(401);
  }
});

labTest("all faces say the same of a run, and of a line that is wrong", async () => {
  await until(async () => (await ask("/watch")).document.watches[0]?.verdict != null);
  const { document } = await ask("/watch?points=3");
  const [watch] = document.watches;
  expect(watch).toMatchObject({
    ...{ name: NAME, tool: "ping", target: TARGET, from: null, everySeconds: 10 },
    verdict: { code: "no-loss" },
    last: { rtt: expect.any(Number), loss: 0 },
    changes: { day: 0, month: 0 },
  });
  expect(document.details.wrong).toEqual([{ line: 3, text: expect.stringContaining("") }]);
  expect(document.details.days[NAME].bad.at(-1)).toBe(false);
  expect(document.details.days[NAME].rtt).toHaveLength(3);

  const { series, changes } = (await ask(`${PATH}?since=1h&points=1`)).document;
  expect(series.at(-1)).toMatchObject({ code: "no-loss", loss: 0, gap: null });
  expect(changes).toEqual([]);

  const metrics = seriesIn(await metricsText(service));
  expect(metrics[`sixscope_watch_verdict{name="${NAME}",code="no-loss"}`]).toBe(1);
  expect(metrics[`sixscope_watch_changes_total{name="${NAME}",kind="flap"}`]).toBe(0);
  const last = metrics[`sixscope_watch_last_run_timestamp_seconds{name="${NAME}"}`] ?? 0;
  expect(last * 1000).toBeGreaterThanOrEqual(Date.parse(watch.last.at));

  const listed = await command("list");
  expect(listed.stdout).toContain(NAME);
  expect(listed.stdout).toContain("no loss");
  const told = JSON.parse((await command("list", "--json")).stdout);
  expect(told.watches[0].name).toBe(NAME);
  const shown = await command("show", "ping", TARGET, "count=1", "--since", "1h");
  expect(shown.stdout).toContain("no loss");
  expect(shown.status).toBe(0);
});

labTest("a service that does not answer is not a watch that does not exist", async () => {
  const elsewhere = { SIXSCOPE_KEYS_FILE: join(folder, "others.json") };
  for (const words of [["list"], ["show", NAME]]) {
    const { status, stderr } = await sixscopeHere(["watch", ...words], elsewhere);
    expect(status).toBe(1);
    expect(stderr).toContain(`no service that watches answers at ${folder}/others.json.status`);
  }
});

labTest("what does not exist is not found, and a time that is none is refused", async () => {
  for (const path of ["/watch/ping%20x", `${PATH}/changes/9999`, `${PATH}/changes/x`]) {
    const { status, document } = await ask(path);
    expect([status, document.error.code]).toEqual([404, "NOT_FOUND"]);
  }
  for (const query of ["since=yesterday", "since=1h&until=2h", "points=0", "points=2001"]) {
    const { status, document } = await ask(`${PATH}?${query}`);
    expect([query, status, document.error.code]).toEqual([query, 400, "INVALID_PARAMETER"]);
  }
  const unknown = await command("show", "ping x");
  expect(unknown.status).toBe(1);
  expect(unknown.stderr).toContain(`"ping x" is not watched; see ${invocation()} watch list`);
  // A name has all characters that a line can have.
  const odd = `/watch/${encodeURIComponent("ping fe80::1%eth0 a/b?c#d %2F +")}`;
  const { details } = (await ask(odd)).document.error;
  expect(details.path).toBe(`/api/v1${odd}`);
});

labTest(
  "sixscope watch adds and removes lines, which the service sees, and leaves the others",
  async () => {
    const before = readFileSync(file(), "utf8");
    const names = async () =>
      (await ask("/watch")).document.watches.map(({ name }: { name: string }) => name);
    const added = await command("add", "ping", "::1", "every=1d", "count=2");
    expect(added).toMatchObject({ status: 0, stderr: "" });
    expect(readFileSync(file(), "utf8")).toBe(`${before}ping ::1 every=1d count=2\n`);
    await until(async () => (await names()).includes("ping ::1 count=2"));
    for (const lines of [["ping ::1  count=2 every=5m"], ["here every=1d", "here every=5m"]]) {
      const twice = await command("add", ...lines);
      expect([twice.status, twice.stderr]).toEqual([
        1,
        expect.stringContaining("would be watched twice"),
      ]);
    }
    const wrong = await command("add", "ping ::1 count=3", "ping a b");
    expect(wrong.status).toBe(2);
    expect(wrong.stderr).toContain('"ping a b" cannot be watched: ');
    expect((await command("add", "check\nwww.example.com")).status).toBe(2);
    for (const name of ["", "every=5m", "# a comment"]) {
      const before = await Bun.file(file()).text();
      expect((await command("remove", name)).status).not.toBe(0);
      expect(await Bun.file(file()).text()).toBe(before);
    }
    expect((await command("remove", "ping", "::1", "count=2")).status).toBe(0);
    // A wrong line can be removed too, which no run has.
    expect((await command("remove", "ping a b")).status).toBe(0);
    expect(readFileSync(file(), "utf8")).toBe(before.replace("ping a b\n", ""));
    expect((await command("remove", "ping a b")).status).toBe(1);
    // The service may see the file between the two removals.
    const wrongLines = async () => (await ask("/watch")).document.details.wrong;
    await until(async () => (await wrongLines()).length === 0);
    expect(await names()).toHaveLength(1);
  },
);

labTest("sixscope watch says errors in words", async () => {
  await command("add", "here", "eth9", "every=10s");
  const lineOfIt = async () =>
    (await command("list")).stdout.split("\n").find((line) => line.startsWith("here eth9"));
  await until(async () => /since/.test((await lineOfIt()) ?? ""));
  expect(await lineOfIt()).toMatch(
    /^here eth9 {2}invalid parameter {2}since \S+ {2}interface: there is none/,
  );
  expect((await command("show", "here", "eth9")).stdout).toContain("  invalid parameter\n");
  await command("remove", "here", "eth9");
});

labTest(
  "a target that stops replying is told once, with both sides, as an event, and to a receiver",
  async () => {
    const end = new AbortController();
    const headers = { "X-API-Key": service.key, Accept: "text/event-stream" };
    const response = await fetch(`${service.url}/watch`, { headers, signal: end.signal });
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    const events: { event: string; data: Record<string, unknown> }[] = [];
    const texts = response.body?.pipeThrough(new TextDecoderStream());
    const reading = (async () => {
      for await (const { event, data } of readEvents(texts as ReadableStream<string>))
        events.push({ event, data: JSON.parse(data) });
    })();
    await runIp([`addr del ${TARGET}/128 dev lo`, "route add unreachable 2001:db8:77::/48"]);
    await until(async () => events.some(({ event }) => event === "change"));
    const change = events.find(({ event }) => event === "change")?.data;
    expect(change).toMatchObject({ name: NAME, kind: "verdict", confirmed: true });
    const runs = events.filter(({ event, data }) => event === "run" && data["code"] !== "no-loss");
    expect(runs.length).toBeGreaterThanOrEqual(2);
    const { document } = await ask(`${PATH}/changes/${change?.["id"]}`);
    expect(document.before.details.verdict.code).toBe("no-loss");
    expect(document.after.details?.verdict.code ?? document.after.error.code).not.toBe("no-loss");
    expect(document.diff[0].kind).toBe("verdict");
    const { watches } = (await ask("/watch")).document;
    expect(watches[0].changes).toEqual({ day: 1, month: 1 });

    // The first answer was no 2xx, so it comes twice.
    await until(async () => posts.length === 2);
    const [first, second] = posts;
    expect(second).toEqual(first as (typeof posts)[number]);
    const { name, id, at, kind, text } = change ?? {};
    expect(JSON.parse(first?.body ?? "")).toEqual({ id, name, at, kind, text });
    const hmac = createHmac("sha256", SECRET)
      .update(first?.body ?? "")
      .digest("hex");
    expect(first?.signature).toBe(`sha256=${hmac}`);

    // The stream ends with the whole when the service stops, and does not hold it up.
    service.signal("SIGTERM");
    await reading;
    expect(events.at(-1)?.event).toBe("result");
    expect(await service.exited).toBe(0);
    expect(posts.length).toBe(2);
  },
);

labTest("without a history, runs go on, and /readyz, /watch and the status say why", async () => {
  const own = join(folder, "own-watches");
  writeFileSync(own, "ping ::1 every=10s count=1\n");
  await using broken = await startService({
    SIXSCOPE_WATCH_FILE: own,
    // A folder cannot be a database.
    SIXSCOPE_HISTORY_FILE: folder,
  });
  const readyz = async () => await (await fetch(new URL("/readyz", broken.url))).text();
  await until(async () => (await readyz()).includes(`without history: ${folder}: `));
  const headers = { "X-API-Key": broken.key };
  const list = async () => await (await fetch(`${broken.url}/watch`, { headers })).json();
  await until(async () => (await list()).watches[0].last !== null);
  expect((await list()).details.problem).toStartWith(`${folder}: `);
  const settings = parseConfig({ SIXSCOPE_KEYS_FILE: broken.keysFile });
  expect((await askStatus(settings))?.withoutHistory).toStartWith(`${folder}: `);
});

test("others are answered between the days of two watches", async () => {
  const order: string[] = [];
  const watching = {
    list: () => ({ watches: [{ name: "here" }, { name: "here from=all" }], details: {} }),
    day(name: string) {
      order.push(name);
      setImmediate(() => order.push("another"));
      return {};
    },
  };
  const services = { watching } as unknown as Parameters<typeof watches.handle>[2];
  const answer = await watches.handle({ points: 1 }, {} as Call, services);
  expect(answer).toMatchObject({ details: { days: { here: {}, "here from=all": {} } } });
  expect(order).toEqual(["here", "another", "here from=all", "another"]);
});

test("of more than a thousand streams of events, the oldest one ends", async () => {
  const ended: number[] = [];
  const watching = {
    list: () => ({ watches: [], details: {} }),
    subscribe: () => () => {},
    stopping: new AbortController().signal,
  };
  const services = { watching } as unknown as Parameters<typeof watches.handle>[2];
  const gone = new AbortController();
  const call = { signal: gone.signal, onEvent() {} } as unknown as Call;
  const streams = Array.from({ length: 1_002 }, (_, at) =>
    Promise.resolve(watches.handle({ points: undefined }, call, services)).then(
      () => void ended.push(at),
      () => {},
    ),
  );
  await Bun.sleep(0);
  expect(ended).toEqual([0, 1]);
  gone.abort();
  await Promise.all(streams);
  expect(ended).toEqual([0, 1]);
});

labTest("where nothing is watched, no history is made", async () => {
  const history = join(folder, "unused.db");
  const none = join(folder, "none");
  await using quiet = await startService({
    SIXSCOPE_WATCH_FILE: none,
    SIXSCOPE_HISTORY_FILE: history,
    SIXSCOPE_METRICS_LISTEN: "[::1]:0",
  });
  const headers = { "X-API-Key": quiet.key };
  const response = await fetch(`${quiet.url}/watch?points=3`, { headers });
  expect(await response.json()).toEqual({ watches: [], details: { wrong: [], flaps: 0 } });
  for (const path of ["here", "here/changes/1"])
    expect((await fetch(`${quiet.url}/watch/${path}`, { headers })).status).toBe(404);
  expect(await metricsText(quiet)).toContain("sixscope_watch_verdict");
  // A stream begins before the first event, which never comes.
  const end = new AbortController();
  const stream = await fetch(`${quiet.url}/watch`, {
    headers: { ...headers, Accept: "text/event-stream" },
    signal: end.signal,
  });
  expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
  end.abort();
  const settings = { SIXSCOPE_WATCH_FILE: none, SIXSCOPE_KEYS_FILE: quiet.keysFile };
  const listed = await sixscopeHere(["watch", "list"], settings);
  expect(listed).toMatchObject({ status: 0, stdout: expect.stringMatching(/^nothing is watched/) });
  mkdirSync(none);
  const told = `cannot read the file of watches, ${none}: it is a directory`;
  await until(async () => quiet.stderr().includes(told));
  expect(await (await fetch(new URL("/readyz", quiet.url))).text()).toBe("ready\n");
  expect(existsSync(history)).toBe(false);
});
