/** The compiled executable: one file is enough, and no file or variable around it changes what it does. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, hostTarget } from "../../scripts/build/compile.ts";
import { readSource } from "../../scripts/build/source.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import { bundlePage } from "../../src/page/bundle.ts";
import { TOOLS } from "../../src/tools/table.ts";
import { startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { startMcp } from "../lab/mcp.ts";
import { metricsUrl, value } from "../lab/metrics.ts";
import { encodeMmdb } from "../lab/mmdb.ts";
import { run } from "../lab/run.ts";
import { sixscope, startService } from "../lab/service.ts";

const VERSION_LINE =
  /^sixscope \d+\.\d+\.\d+(\+git\d{8}\.\d{6}\.[0-9a-f]{7})?( \([0-9a-f]{12}(-dirty)?\))?\n$/;

const labTest = testWith(labMissing);
const dnsTest = testWith(labMissing, programMissing("knotd"));
const userTest = testWith(labMissing, programMissing("setpriv"));
const groupTest = testWith(usersMissing, programMissing("setpriv"));
const curlTest = testWith(labMissing, programMissing("curl"));

/** The root of a user namespace has capabilities, which an ordinary user lacks. */
const WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

let folder: string;
let executable: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-executable-"));
  // An ordinary user runs it below.
  chmodSync(folder, 0o755);
  executable = join(folder, "sixscope");
  await compile(hostTarget(), await readSource(), executable);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a folder in which every file that Bun might read does harm. */
function hostileFolder(): { path: string; harmDone: () => boolean } {
  const path = mkdtempSync(join(folder, "hostile-"));
  const harm = join(path, "harm");
  const script = `require("node:fs").writeFileSync(${JSON.stringify(harm)}, "");\n`;
  const files = {
    "evil.js": script,
    "bunfig.toml": 'preload = ["./evil.js"]\n',
    ".env": "SIXSCOPE_LISTEN=nowhere\nBUN_OPTIONS=--version\n",
    "package.json": '{"type":"commonjs","main":"evil.js","imports":{"#hono":"./evil.js"}}',
    "tsconfig.json": '{"compilerOptions":{"paths":{"*":["./evil.js"]}}}',
    "node_modules/hono/index.js": script,
    "node_modules/hono/package.json": '{"name":"hono","main":"index.js"}',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(path, name, ".."), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return { path, harmDone: () => existsSync(harm) };
}

test("prints its version and its commit", async () => {
  const { stdout } = await sixscope(["--version"], {}, [executable]);
  const { commit } = await readSource();
  expect(stdout).toMatch(VERSION_LINE);
  expect(stdout).toContain(commit ?? "sixscope");
});

test("reads a file of autonomous systems", async () => {
  const path = join(folder, "asn.mmdb");
  writeFileSync(path, encodeMmdb([["2001:db8::/32", { asn: 64496 }]]));
  const environment = { SIXSCOPE_ASN_FILE: path };
  const args = ["validate", "2001:db8::1", "--json"];
  const { stdout } = await sixscope(args, environment, [executable]);
  expect(JSON.parse(stdout).details.network).toMatchObject({ asn: 64496 });
});

test("serves the same page as the source", async () => {
  await using service = await startService({}, [], [executable]);
  const get = (path: string) =>
    fetch(new URL(path, service.url), { headers: { Accept: "text/html" } });
  const html = await (await get("/")).text();
  expect(html).toMatch(/src="\.\/assets\/index-/);
  expect(await (await get("/docs")).text()).toMatch(/src="\.\/assets\/docs-/);
  expect(html).toMatch(/<h1[^>]*>127\.0\.0\.1<\/h1>/);
  for (const [path, { type, text }] of Object.entries(await bundlePage())) {
    if (path.endsWith(".html")) continue;
    const response = await get(path);
    expect(response.headers.get("content-type")).toBe(type);
    expect(await response.text()).toBe(text);
  }
});

dnsTest("serves all five endpoints", async () => {
  await using knot = await startKnot({
    zones: { "example.test.": "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
  });
  const resolver = `[::1]:${knot.endpoint.port}`;
  await using service = await startService({ SIXSCOPE_RESOLVER_A: resolver }, [], [executable]);
  const get = async (path: string) =>
    (await fetch(service.url + path, { headers: { "X-API-Key": service.key } })).json();
  expect(await get("/myip")).toEqual({ ip: "127.0.0.1", version: 4, isIPv6: false });
  expect(await get("/validate?address=2001:0db8::0001")).toMatchObject({
    valid: true,
    compressed: "2001:db8::1",
  });
  expect(await get("/dns/ns.example.test")).toMatchObject({ records: [{ value: "::1" }] });
  expect(await get("/ping/ns.example.test?count=2")).toMatchObject({ stats: { received: 2 } });
  expect(await get("/traceroute/::1")).toMatchObject({ hops: [{ hop: 1, ip: "::1" }] });
  service.signal("SIGTERM");
  expect(await service.exited).toBe(0);
  expect(service.stderr()).not.toContain("error");
});

dnsTest("validates DNSSEC from a file of trust anchors", async () => {
  const zone = "example.test.";
  await using knot = await startKnot({
    zones: { [zone]: "@ SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n" },
    signed: [zone],
  });
  const keys = await createDnsClient({ servers: [knot.endpoint] }).query(zone, "DNSKEY");
  const anchors = join(folder, "anchors");
  const lines = "records" in keys ? keys.records.map(({ value }) => `${zone} DNSKEY ${value}`) : [];
  writeFileSync(anchors, lines.join("\n"));
  const environment = {
    SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port}`,
    SIXSCOPE_TRUST_ANCHORS: anchors,
  };
  const args = ["dns", "ns.example.test", "--dnssec"];
  const { stdout } = await sixscope(args, environment, [executable]);
  expect(stdout).toContain("secure. example.test signs ns.example.test AAAA");
  const missing = ["dns", "nothing.example.test", "--dnssec", "--json"];
  const failed = await sixscope(missing, environment, [executable]);
  expect(JSON.parse(failed.stdout).error.message).toContain(
    "DNSSEC: secure. example.test proves that nothing.example.test does not exist",
  );
});

labTest("lets a program use its tools, over the Model Context Protocol", async () => {
  await using mcp = await startMcp([], {}, [executable]);
  const { tools } = await mcp.client.listTools();
  const here = TOOLS.filter(({ needsServer }) => !needsServer);
  expect(tools.map(({ name }) => name)).toEqual(here.map(({ name }) => name));
  const { text } = await mcp.call("ping", { target: "::1", count: 2 });
  expect(text).toBe("The target replied to all 2 requests.");
  const { document } = await mcp.call("validate", { address: "x" });
  expect(document).toMatchObject({ error: { code: "INVALID_ADDRESS" } });
});

labTest("shows its metrics, and probes for Prometheus", async () => {
  const environment = { SIXSCOPE_METRICS_LISTEN: "[::1]:0" };
  await using service = await startService(environment, [], [executable]);
  const { version, commit } = await readSource();
  const build = { version, commit: commit ?? "" };
  expect(await value(service, "sixscope_build_info", build)).toBe(1);
  const probed = await fetch(`${metricsUrl(service)}/probe?target=::1&count=1`);
  expect(await probed.text()).toContain("\nprobe_success 1\n");
});

describe("in a hostile folder", () => {
  const variables: Record<string, string>[] = [
    {},
    { BUN_OPTIONS: "--preload=./evil.js" },
    { BUN_OPTIONS: "--version" },
    { BUN_OPTIONS: "--config=bunfig.toml --env-file=.env" },
    { BUN_BE_BUN: "1" },
    { BUN_INSPECT: "127.0.0.1:6499" },
    { BUN_INSPECT_PRELOAD: "./evil.js" },
    { NODE_OPTIONS: "--require ./evil.js" },
    { NODE_ENV: "production", NODE_PATH: "." },
  ];
  test.each(variables)("it prints its version with %p", async (environment) => {
    const { path, harmDone } = hostileFolder();
    const result = await sixscope(["--version"], environment, ["env", "-C", path, executable]);
    expect(result).toEqual({ status: 0, stdout: expect.stringMatching(VERSION_LINE), stderr: "" });
    expect(harmDone()).toBe(false);
  });

  labTest("it serves with its own settings", async () => {
    const { path, harmDone } = hostileFolder();
    const environment = { BUN_OPTIONS: "--preload=./evil.js", BUN_BE_BUN: "1" };
    await using service = await startService(environment, ["env", "-C", path], [executable]);
    expect((await fetch(`${service.url}/validate?address=::1`)).status).toBe(200);
    expect(harmDone()).toBe(false);
  });
});

labTest("runs on a file system that is read-only", async () => {
  const script = 'mount -o remount,bind,ro / && exec "$@"';
  const readOnly = ["unshare", "--mount", "sh", "-c", script, "sh"];
  const service = await startService({ SIXSCOPE_KEYS_FILE: join(folder, "keys.json") }, readOnly, [
    executable,
  ]);
  await using _ = service;
  expect((await fetch(`${service.url}/validate?address=::1`)).status).toBe(200);
  const ping = `${service.url}/ping/::1?count=1`;
  expect((await fetch(ping, { headers: { "X-API-Key": service.key } })).status).toBe(200);
});

userTest(
  "an ordinary user without a state directory keeps keys in the working directory",
  async () => {
    const home = mkdtempSync(join(folder, "home-"));
    const inHome = ["env", "-C", home, ...(await asOrdinaryUser(home)), executable];
    const added = await sixscope(["keys", "add", "me"], {}, inHome);
    expect(added).toMatchObject({ status: 0, stderr: "" });
    expect(readdirSync(home)).toEqual(["keys.json"]);
    await using service = await startService({ SIXSCOPE_KEYS_FILE: "" }, [], inHome);
    expect(service.startLines).toContain(`API keys: 2 in ${home}/keys.json`);
    expect((await fetch(`${service.url}/myip`)).status).toBe(200);
  },
);

groupTest("an ordinary user pings where ping_group_range includes the group", async () => {
  const range = "/proc/sys/net/ipv4/ping_group_range";
  const before = readFileSync(range, "utf8");
  const asUser = [...(await asOrdinaryUser(folder)), ...WITHOUT_CAPABILITIES, executable];
  writeFileSync(range, "0 65535");
  const ping = await sixscope(["ping", "-c", "1", "::1"], {}, asUser);
  const trace = await sixscope(["trace", "::1"], {}, asUser);
  writeFileSync(range, before);
  expect(ping).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(
      "\nThe target replied to the request.\nReplies  1 of 1, 0 % lost\n",
    ),
    stderr: "",
  });
  for (const { status, stderr } of [trace, await sixscope(["ping", "::1"], {}, asUser)]) {
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^sixscope: no raw socket \(.*: EPERM\); (start it with sudo|grant CAP_NET_RAW), or let a service do it with --server URL\n$/,
    );
  }
});

/** The command that runs another one as an unprivileged user, who also gets the folder. */
async function asOrdinaryUser(folder: string): Promise<string[]> {
  const USER_ID = "65534";
  // The root of a user namespace is an ordinary user already.
  if (usersMissing !== null) return [];
  await run(["chown", USER_ID, folder]);
  return ["setpriv", `--reuid=${USER_ID}`, `--regid=${USER_ID}`, "--clear-groups", "--"];
}

curlTest("on a machine without IPv6, it reports that and serves over IPv4", async () => {
  const script = `
    ip link set lo up
    echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
    "$1" 2>&1 &
    curl -s --retry 20 --retry-connrefused --retry-delay 0 'http://127.0.0.1:8080/api/v1/validate?address=::1'
    kill $!
    wait $!`;
  const said = await run(["unshare", "--net", "sh", "-ec", script, "sh", executable]);
  expect(said).toMatch(/cannot listen on \[::1\]:8080/);
  expect(said).toMatch(/listens on http:\/\/127\.0\.0\.1:8080$/m);
  expect(said).toContain('"valid":true');
});
