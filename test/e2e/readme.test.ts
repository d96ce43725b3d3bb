/** The examples, tables and links of README and docs are true. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { ERROR_CATALOGUE } from "../../src/api/errors.ts";
import { describeCommands } from "../../src/cli/command-line.ts";
import { MAX_AGENTS, MAX_AGENTS_OF_ONE } from "../../src/locations/directory.ts";
import { MAX_ANNOUNCEMENT_BYTES } from "../../src/locations/protocol.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";
import { interfaceDocument } from "../lab/conformance.ts";
import { type KnotServer, startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { run, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { startBrokenSite } from "../tools/check/broken-site.ts";

const ROOT = join(import.meta.dir, "../..");

const pages = new Map(
  ["*.md", "docs/*.md"]
    .flatMap((pattern) => [...new Glob(pattern).scanSync(ROOT)].sort())
    .map((path) => [path, readFileSync(join(ROOT, path), "utf8")]),
);
const readme = page("README.md");
const api = page("docs/api.md");
const configuration = page("docs/configuration.md");
const operations = page("docs/operations.md");

/** The zone of the DNS example; the name and its address have not changed for decades. */
const ZONE = `
$TTL 86400
@ SOA a nstld 1 14400 7200 1209600 86400
@ NS  a
a AAAA 2001:503:ba3e::2:30
`;

const EXAMPLE = /```sh\n(curl -s [^\n]*)\n```\n\n```json\n([^`]+)```/g;
const readmeExamples = examplesOf(readme);
const apiExamples = examplesOf(api);

/** Rows of the table of types: the type, and an example of an address. */
const typeRows = [...api.matchAll(/^\| `([A-Z]\w+)` \| `([0-9a-f.]*:[0-9a-f:.]+)` \|/gm)].map(
  ([, type = "", address = ""]) => [type, address] as const,
);

const missing = labMissing ?? programMissing("knotd");
const labTest = testWith(missing);
const curlTest = testWith(missing, programMissing("curl"));
const SITE_PROGRAMS = ["nginx", "unbound", "tayga", "nft", "openssl", "dnssec-signzone", "script"];
const siteTest = testWith(missing, tunMissing, ...SITE_PROGRAMS.map(programMissing));

let knot: KnotServer;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  // The link of the look at the machine, on which no router answers.
  await runIp([
    "netns add neighbour",
    "link add eth0 address 02:00:5e:00:53:05 type veth peer name eth0 netns neighbour",
    "link set eth0 up",
  ]);
  await run(["ip", "-n", "neighbour", "link", "set", "eth0", "up"]);
  knot = await startKnot({ zones: { "root-servers.net.": ZONE } });
  service = await startService({ SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}` });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  await knot.stop();
});

function page(path: string): string {
  return pages.get(path) ?? "";
}

/** Every curl of a page with the answer below it. */
function examplesOf(text: string) {
  return [...text.matchAll(EXAMPLE)].map(([, command = "", answer = ""]) => ({
    command,
    path: /'http:\/\/\[::1\]:8080(\/[^']*)'/.exec(command)?.[1] ?? "",
    withKey: command.includes("X-API-Key"),
    answer: JSON.parse(answer) as unknown,
  }));
}

/** The examples that a service alone cannot answer; they are those of the interface document. */
const NEEDS_MORE = /^\/api\/v1\/(watch|locations)/;

/** The example of an endpoint in the interface document. */
function documentedExample(path: string): unknown {
  const isOf = (form: string) =>
    new RegExp(`^/api/v1${form.replace(/\{\w+\}/g, "[^/?]+")}(\\?|$)`).test(path);
  const [, operation] = Object.entries(interfaceDocument.paths).find(([form]) => isOf(form)) ?? [];
  const { examples } = operation?.get.responses["200"]?.content["application/json"] ?? {};
  const [example] = Object.values(examples ?? {});
  return example && "value" in example ? example.value : undefined;
}

/** True if one answer is another one without some of its fields and rows. */
function isShortOf(short: unknown, whole: unknown): boolean {
  if (typeof short !== "object" || short === null) return short === whole;
  if (typeof whole !== "object" || whole === null) return false;
  if (!Array.isArray(short)) {
    const entries = Object.entries(short);
    return entries.every(([name, value]) => isShortOf(value, Reflect.get(whole, name)));
  }
  if (!Array.isArray(whole) || (short.length === 0 && whole.length > 0)) return false;
  let at = -1;
  return short.every((row) => {
    at = whole.findIndex((other, index) => index > at && isShortOf(row, other));
    return at >= 0;
  });
}

/** Replaces the values that differ from run to run. */
function withoutMeasurements(value: unknown): unknown {
  const TIMES = ["rtt", "last", "min", "avg", "max", "stdDev", "jitter", "p50", "p95", "ms"];
  const VOLATILE = [...TIMES, "queryTime", "flowLabel", "server", "startedAt"];
  return JSON.parse(
    JSON.stringify(value, (name, entry) => (VOLATILE.includes(name) ? "measured" : entry)),
  );
}

async function get(path: string, withKey: boolean): Promise<unknown> {
  const headers: Record<string, string> = withKey ? { "X-API-Key": service.key } : {};
  const response = await fetch(service.urls[1] + path.replace("/api/v1", ""), { headers });
  return await response.json();
}

/** Runs a command as a reader pastes it, but with this Bun and against the test's service. */
async function paste(command: string, key: string): Promise<string> {
  const base = (service.urls[1] ?? "").replace("/api/v1", "");
  const script = `npx() { shift 2; "$BUN" "$@"; }
cd '${ROOT}'
${command.replaceAll("http://[::1]:8080", base)}`;
  return await run([
    ...["env", `BUN=${process.execPath}`, `SIXSCOPE_KEYS_FILE=${service.keysFile}`, `key=${key}`],
    ...["sh", "-ec", script],
  ]);
}

describe("examples", () => {
  test("show all endpoints and an error", () => {
    const endpoints = apiExamples.map(({ path }) => path.split(/[/?]/)[3]);
    expect(new Set(endpoints)).toEqual(
      new Set(Object.keys(interfaceDocument.paths).map((path) => path.split("/")[1])),
    );
    expect(
      apiExamples.some(({ answer }) => typeof answer === "object" && "error" in (answer ?? {})),
    ).toBe(true);
    expect(readmeExamples.map(({ path }) => path.split(/[/?]/)[3])).toEqual(["myip", "ping"]);
  });

  labTest.each(readmeExamples)("curl $path", async ({ path, withKey, answer }) => {
    const actual = await get(path, withKey);

    expect(withoutMeasurements(actual)).toEqual(withoutMeasurements(answer));
  });

  labTest.each(apiExamples)("curl $path, shortened", async ({ path, withKey, answer }) => {
    const actual = NEEDS_MORE.test(path)
      ? documentedExample(path)
      : withoutMeasurements(await get(path, withKey));
    const shown = NEEDS_MORE.test(path) ? answer : withoutMeasurements(answer);

    if (!isShortOf(shown, actual)) expect(actual).toEqual(shown);
  });

  curlTest("of the README give these answers when pasted in order", async () => {
    const [, makeKey = ""] = /```sh\n(key=[^\n]*)\n```/.exec(readme) ?? [];
    const key = await paste(`${makeKey}\nprintf %s "$key"`, "");
    expect(key).toMatch(/^sx_\w+$/);
    const headers = { "X-API-Key": key };
    while ((await fetch(`${service.url}/ping/::1?count=1`, { headers })).status !== 200) {
      await Bun.sleep(50);
    }

    for (const { command, answer } of readmeExamples) {
      const actual = JSON.parse(await paste(command, key));
      expect(withoutMeasurements(actual)).toEqual(withoutMeasurements(answer));
    }
  });

  siteTest("the check of the README is what a terminal shows", async () => {
    const [, name, lines] =
      /```sh\nsixscope check (\S+)\n```\n\n```text\n([^`]+)\n```/.exec(readme) ?? [];
    await using site = await startBrokenSite();

    expect([name, lines]).toEqual([site.name, await site.check()]);
  });

  labTest("every type has an example address in the table", async () => {
    for (const [type, address] of typeRows) {
      const answer = await get(`/api/v1/validate?address=${address}`, false);
      expect({ address, ...(answer as object) }).toMatchObject({ address, type });
    }
    expect(new Set(typeRows.map(([type]) => type)).size).toBe(29);
  });

  labTest("the log line has the fields of a real one, in their order", async () => {
    const fieldsOf = (line: string) => [...line.matchAll(/(?:^| )(\w+)=/g)].map(([, name]) => name);
    const [shown = ""] = /^time=.* msg=request .*$/m.exec(configuration) ?? [];
    await get("/api/v1/ping/::1?count=1", true);
    await service.says(" key=test\n");

    const [written = ""] =
      /^time=.* route=\/api\/v1\/ping\/:target .*$/m.exec(service.stderr()) ?? [];
    expect(fieldsOf(shown)).toEqual(fieldsOf(written));
  });
});

describe("tables", () => {
  test("the endpoints are those of the interface document", () => {
    const rows = readme.matchAll(/^\| `(\/[\w{}./]+)` \|.*\|( needed)? \|$/gm);
    const documented = Object.entries(interfaceDocument.paths).map(([path, { get }]) => ({
      path,
      needsKey: get.security.every((scheme) => Object.keys(scheme).length > 0),
    }));

    const listed = [...rows].map(([, path, key]) => ({ path, needsKey: key === " needed" }));
    expect(listed).toEqual(documented);
  });

  test("the tools are commands, with these options", () => {
    const commands = describeCommands({}).commands;
    const rows = [...readme.matchAll(/^\| `sixscope ([\w-]+)[^`]*` \|(.*)\|$/gm)];
    expect(rows.length).toBeGreaterThan(0);
    for (const [, name, told = ""] of rows) {
      const command = commands.find((one) => one.name() === name);
      const flags = command?.options.flatMap(({ short, long }) => [short, long]);
      for (const [, flag] of told.matchAll(/`(--?[\w-]+)`/g)) expect(flags).toContain(flag);
    }
  });

  test("every endpoint has a section in docs/api.md", () => {
    const sections = [...api.matchAll(/^## (\/.*)$/gm)].map(([, path]) => path);
    expect(sections).toEqual(Object.keys(interfaceDocument.paths));
  });

  test("the errors are those of the interface", () => {
    const rows = api.matchAll(/^\| (\d{3}) \| `([A-Z0-9_]+)` \| (.+) \|$/gm);
    const told = [...rows].map(([, status, code = "", meaning]) => [
      code,
      { status: Number(status), meaning },
    ]);
    const kinds = Object.entries(ERROR_CATALOGUE).map(([code, { status, meaning }]) => [
      code,
      { status, meaning },
    ]);
    expect(told).toEqual(kinds);
  });

  test("the errors of each endpoint are those of the interface document", () => {
    const codesIn = (text: string) => [...text.matchAll(/`([A-Z0-9_]+)`/g)].map(([, code]) => code);
    const [said = ""] = /^Of these, every request can get .*$/m.exec(api) ?? [];
    const [every = [], key = [], from = []] = said.split(/An endpoint|and one with/).map(codesIn);
    for (const [path, { get }] of Object.entries(interfaceDocument.paths)) {
      const [line = ""] = /^Errors: .*$/m.exec(api.split(`\n## ${path}\n`)[1] ?? "") ?? [];
      const told = [
        ...codesIn(line),
        ...(line.includes("of every request") ? every : []),
        ...(line.includes("of a key") ? key : []),
        ...(line.includes("of `from`") ? from : []),
      ];
      const codes = Object.entries(get.responses).flatMap(([status, { content }]) =>
        status === "200" ? [] : Object.keys(content["application/json"].examples),
      );
      expect([path, told.toSorted()]).toEqual([path, codes.toSorted()]);
    }
  });

  test("the events are those of the endpoints, and which endpoints have any", () => {
    const [, section = ""] = api.split("\n## Events\n");
    const rows = section.split("\n## ")[0]?.matchAll(/^\| `(\w+)` \|/gm) ?? [];
    const told = [...rows].map(([, event = ""]) => event);
    const served = ENDPOINTS.filter(({ events }) => events);
    const events = new Set(served.flatMap(({ events }) => Object.keys(events?.() ?? {})));
    expect(told.toSorted()).toEqual([...events, "result", "error"].toSorted());
    const [named = ""] = section.trim().split(" answer while they work");
    const paths = [...named.matchAll(/`(\/\w+)`/g)].map(([, path = ""]) => path);
    expect(paths).toEqual(served.map(({ path }) => path.split("/{")[0] ?? ""));
  });

  test("the limits of announcements are those of the code", () => {
    const most = `${MAX_AGENTS.toLocaleString("en")}, and ${MAX_AGENTS_OF_ONE} of one location`;
    expect(operations).toContain(
      `| an announcement of an agent | ${MAX_ANNOUNCEMENT_BYTES / 1024} KiB |`,
    );
    expect(operations).toContain(`| agents that a service lists | ${most} |`);
  });

  test("the settings are those of the packaged settings file, with the same defaults", () => {
    const packaged = new Map(
      [...readFileSync(join(ROOT, "systemd/sixscope.env"), "utf8").matchAll(/^#(\w+)=(.*)$/gm)].map(
        ([, name, value]) => [name, value],
      ),
    );
    const rows = [...configuration.matchAll(/^\| (`SIXSCOPE_[^|]*) \| ([^|]*)\|/gm)].map(
      ([, names = "", value = ""]) => ({
        names: [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
        value: /^`([^`]*)` $/.exec(value)?.[1],
      }),
    );

    expect(rows.flatMap(({ names }) => names).sort()).toEqual([...packaged.keys()].sort());
    for (const { names, value } of rows) {
      if (value === undefined) continue;
      for (const name of names) expect([name, packaged.get(name)]).toEqual([name, value]);
    }
  });
});

describe("pages", () => {
  test.each([...pages])("a renderer leaves no markup of %s", (_, text) => {
    const html = Bun.markdown.html(text).replace(/<(pre|code)\b.*?<\/\1>/gs, "");
    expect(html.match(/.*(\|\s*-{3}|\*\*|\]\(|```|<p>[|#]).*/g)).toBeNull();
    const tables = text.replace(/```.*?```/gs, "").matchAll(/(?:^\|.*\n)+/gm);
    for (const [table] of tables) {
      const widths = table
        .trim()
        .split("\n")
        .map((line) => line.replaceAll("\\|", "").split("|").length);
      expect([table.slice(0, 80), ...new Set(widths)]).toEqual([
        table.slice(0, 80),
        widths[0] ?? 0,
      ]);
    }
  });

  test.each([...pages])("the links of %s lead somewhere", (path, text) => {
    const broken = linksOf(text).filter((link) => !isThere(path, link));
    expect(broken).toEqual([]);
  });

  test("every page of docs is linked from the README", () => {
    const linked = new Set(linksOf(readme));
    expect([...pages.keys()].filter((path) => path !== "README.md" && !linked.has(path))).toEqual(
      [],
    );
  });

  test.each([...pages].filter(([path]) => path !== "CHANGELOG.md"))(
    "the files that %s names exist",
    (_, text) => {
      const named = [...text.matchAll(/`((?:src|test|scripts|systemd)\/[^\s`]*)`/g)].map(
        ([, file = ""]) => file,
      );
      const absent = [...new Set(named)].filter((file) => !existsSync(join(ROOT, file)));
      expect(absent).toEqual([]);
    },
  );
});

/** The targets of a page's relative links. */
function linksOf(text: string): string[] {
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = ""]) => link)
    .filter((link) => !/^\w+:/.test(link));
}

/** True if a link of a page leads to a file, and to a heading in it if it names one. */
function isThere(from: string, link: string): boolean {
  const [file = "", anchor] = link.split("#");
  const target = file === "" ? from : join(dirname(from), file);
  if (!existsSync(join(ROOT, target))) return false;
  return anchor === undefined || anchorsOf(page(target)).includes(anchor);
}

/** The anchors that GitHub makes of a page's headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
