/** The findings of doctor; scripts/systemd-test.ts runs it on a whole machine. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkTls } from "../../src/cli/doctor/files.ts";
import { checkKeysFile } from "../../src/cli/doctor/keys.ts";
import {
  checkAddress,
  checkClock,
  checkDefaultRoute,
  defaultRoutes,
} from "../../src/cli/doctor/machine.ts";
import { roleOf } from "../../src/cli/doctor.ts";
import { parseConfig } from "../../src/config/settings.ts";
import { offerStatus } from "../../src/server/status.ts";
import { createLog } from "../../src/util/log.ts";
import { makeCertificate } from "../lab/certificate.ts";
import { startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { sixscope } from "../lab/service.ts";

/** Runs `sixscope doctor` with a keys file of its own, so that it does not look at an installed service. */
const doctor = (environment: Readonly<Record<string, string>>, ...args: string[]) =>
  sixscope(["doctor", ...args], { SIXSCOPE_KEYS_FILE: "/nowhere/keys.json", ...environment });

const LOOPBACK = "00000000000000000000000000000001 01 80 10 80       lo\n";
const LINK_LOCAL = "fe80000000000000021122fffe334455 02 40 20 80     eth0\n";
const LATE_INTERFACE = "20010db8000000000000000000000005 12c 40 00 80 veth299\n";
const GLOBAL = "20010db8000000000000000000000005 02 40 00 80     eth0\n";

describe("the address", () => {
  const rows: [string, string | null, string][] = [
    ["a global one", LOOPBACK + LINK_LOCAL + GLOBAL, "ok"],
    ["only loopback and link-local", LOOPBACK + LINK_LOCAL, "problem"],
    ["a kernel without IPv6", null, "problem"],
    ["an empty table", "", "problem"],
    ["an interface whose index has three digits", LOOPBACK + LATE_INTERFACE, "ok"],
  ];
  test.each(rows)("%s", (_, table, state) => {
    expect(checkAddress(table, [], false)).toMatchObject({ state });
  });

  test("disabled by a sysctl: the finding names the sysctl, not the provider", () => {
    const { outcome, run } = checkAddress("", ["all", "eth0"], false);
    const names = ["net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/eth0/disable_ipv6"];
    expect(outcome).toBe(`${names.join(" and ")} is 1`);
    expect(run).toBe(`sysctl -w ${names.map((name) => `${name}=0`).join(" ")}`);
  });

  test.each([
    ["a kernel without IPv6", null, []],
    ["disabled by a sysctl", "", ["all"]],
    ["only loopback", LOOPBACK, []],
  ])("in a container, %s: the finding says which network to use", (_, table, isDisabled) => {
    expect(checkAddress(table, isDisabled, true).advice).toContain("--network=host");
  });

  testWith(labMissing)("is disabled in the kernel itself", async () => {
    const off = 'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; exec "$@"';
    const alone = ["unshare", "--net", "sh", "-c", off, "sh", process.execPath];
    const main = join(import.meta.dir, "../../src/main.ts");
    const { stdout } = await sixscope(["doctor"], {}, [...alone, main]);
    expect(stdout).toMatch(/net\/ipv6\/conf\/all\/disable_ipv6\b.* is 1;/);
  });
});

describe("the clock", () => {
  const [RIGHT_US, UNKNOWN_US] = [20_000, 16_000_000];

  test("that nothing sets is set by a time service", () => {
    const { state, outcome } = checkClock(UNKNOWN_US);
    expect({ state, outcome }).toEqual({ state: "warning", outcome: "no time service sets it" });
    expect(checkClock(RIGHT_US)).toMatchObject({ state: "ok" });
  });

  test("of this machine has an error that the kernel knows", () => {
    expect(checkClock()).toMatchObject({ state: expect.stringMatching(/^(ok|warning)$/) });
  });
});

describe("the role", () => {
  type Role = ReturnType<typeof roleOf>;
  const starts = (words: string) =>
    `{ path=/usr/bin/sixscope ; argv[]=/usr/bin/sixscope${words} ; ignore_errors=no ; pid=7 }`;
  const rows: [string, string, Role | null, Role][] = [
    ["a unit that starts an agent", starts(" agent"), null, "agent"],
    [
      "a unit that starts an agent, with a service until the restart",
      starts(" agent"),
      "service",
      "agent",
    ],
    [
      "a unit that starts the service, with an agent until the restart",
      starts(""),
      "agent",
      "service",
    ],
    ["no unit, and nothing runs", "", null, "service"],
    ["no unit, and an agent runs with the settings", "", "agent", "agent"],
  ];
  test.each(rows)("of %s", (_, start, running, role) => {
    expect(roleOf(start, running && { role: running })).toBe(role);
  });

  const others: [string, Record<string, string>, boolean][] = [
    ["its settings", {}, true],
    ["others", { SIXSCOPE_RATE_KEY: "7" }, false],
  ];
  test.each(others)("beside an agent that runs by hand with %s", async (_, more, isItsOwn) => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-"));
    const settings = {
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
      SIXSCOPE_LISTEN: "127.0.0.1:0",
      ...Object.fromEntries(
        ["A", "B", "C"].map((name) => [`SIXSCOPE_RESOLVER_${name}`, "[::1]:9"]),
      ),
    };
    const agent = { icmp: { unavailable: "none" }, keyring: null, shared: null };
    const config = parseConfig({ ...settings, ...more });
    const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });
    const close = offerStatus(config, { ...agent, locations: null }, log);
    const { stdout } = await doctor(settings);
    close();
    rmSync(folder, { recursive: true });
    expect(stdout).toMatch(isItsOwn ? /^ok .*: agent /m : /agent .*; it runs with other settings/m);
    expect(/ read the keys file /.test(stdout)).toBe(!isItsOwn);
    expect(/may look up names; holders of keys may probe/.test(stdout)).toBe(!isItsOwn);
  });
});

/** A line of /proc/net/ipv6_route with a destination, its prefix length, flags and a device. */
function route(destination: string, length: string, flags: string, device: string): string {
  const zeros = "0".repeat(32);
  return `${destination} ${length} ${zeros} 00 ${zeros} 00000400 00000001 00000000 ${flags} ${device}\n`;
}

describe("the default route", () => {
  const zeros = "0".repeat(32);
  const rows: [string, string | null, string][] = [
    ["through a gateway", route(zeros, "00", "00000003", "eth0"), "ok"],
    [
      "of type unreachable, which the kernel adds by itself",
      route(zeros, "00", "00200200", "lo"),
      "warning",
    ],
    ["that is down", route(zeros, "00", "00000002", "eth0"), "warning"],
    ["for half of all addresses", route(zeros, "01", "00000003", "eth0"), "warning"],
    [
      "for a single network",
      route(`20010db8${"0".repeat(24)}`, "20", "00000001", "eth0"),
      "warning",
    ],
    ["without IPv6", null, "warning"],
  ];
  test.each(rows)("%s", (_, table, state) => {
    expect(checkDefaultRoute(defaultRoutes(table))).toMatchObject({ state });
  });
});

describe("the raw socket", () => {
  const RANGE = "/proc/sys/net/ipv4/ping_group_range";
  const groupTest = testWith(usersMissing, programMissing("setpriv"));
  const withoutRights = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
  const program = [...withoutRights, process.execPath, join(import.meta.dir, "../../src/main.ts")];

  const rows: [string, string, RegExp][] = [
    ["is a problem if it is missing", "1 0", /^problem {2}open a raw .*EPERM; .*no target can be/m],
    [
      "only warns where pings work without it",
      "0 65535",
      /^warning {2}open a raw .*only be pinged/m,
    ],
  ];
  groupTest.each(rows)("%s", async (_, groups, line) => {
    const before = readFileSync(RANGE, "utf8");
    writeFileSync(RANGE, groups);
    const { stdout } = await sixscope(["doctor"], { SIXSCOPE_LISTEN: "nowhere" }, program);
    writeFileSync(RANGE, before);
    expect(stdout).toMatch(line);
  });
});

describe("the keys file", () => {
  const key = { name: "a", sha256: "0".repeat(64), created: "2026-01-01T00:00:00Z" };
  const file = (...keys: object[]) => JSON.stringify({ version: 1, keys });
  const rows: [string, string | null, string, string][] = [
    ["with a key", file(key), "ok", "active keys: 1"],
    [
      "whose key has expired",
      file({ ...key, expires: key.created }),
      "warning",
      "no key is active",
    ],
    ["that is missing", null, "warning", "it does not exist"],
    ["that is broken", "{", "problem", "does not parse"],
  ];
  test.each(rows)("%s", (_, text, state, said) => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-"));
    const path = join(folder, "keys.json");
    if (text !== null) writeFileSync(path, text);
    const outcome = expect.stringContaining(said);
    expect(checkKeysFile(path)).toMatchObject({ state, outcome });
    rmSync(folder, { recursive: true });
  });
});

describe("sixscope doctor", () => {
  const knotTest = testWith(labMissing, programMissing("knotd"));
  const tlsTest = testWith(labMissing, programMissing("openssl"));

  knotTest("reports for each resolver and family whether it answers, and what to do", async () => {
    await using knot = await startKnot({
      zones: { ".": "@ 60 SOA ns host 1 60 60 60 60\n@ NS ns\n" },
    });
    const { stdout, stderr, status } = await doctor({
      SIXSCOPE_RESOLVER_A: `[::1]:${knot.endpoint.port},127.0.0.1:9`,
      SIXSCOPE_RESOLVER_B: "[::1]:9",
      SIXSCOPE_RESOLVER_C: "2001:db8::1",
    });
    expect(stdout).toMatch(/^ok .* resolver_a over IPv6 .* answers in \d+ ms$/m);
    expect(stdout).toMatch(/^warning .* resolver_a over IPv4 .*; the other family is used/m);
    expect(stdout).toMatch(
      /^problem .* resolver_b over IPv6 .*ECONNREFUSED.*SIXSCOPE_RESOLVER_B$/m,
    );
    expect(stdout).toMatch(/^problem .* resolver_c over IPv6 .*ENETUNREACH.*SIXSCOPE_RESOLVER_C/m);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "sixscope: there are problems; the lines above say what to do\n",
    });
  });

  test("--json prints the same findings as one document", async () => {
    const wrong = { SIXSCOPE_LISTEN: "nowhere" };
    const { stdout, status } = await doctor(wrong, "--json");
    const { problems, findings } = JSON.parse(stdout);
    expect(findings[0]).toEqual({
      state: "problem",
      tried: "read the settings from the environment",
      outcome: expect.stringContaining('SIXSCOPE_LISTEN="nowhere"'),
      advice: expect.stringContaining("correct it"),
      run: null,
    });
    const isProblem = ({ state }: { state: string }) => state === "problem";
    expect(findings.filter(isProblem)).toHaveLength(problems);
    expect(status).toBe(1);
    expect((await doctor({}, "--yaml")).status).toBe(2);
  });

  test("names every wrong setting, and ends with status 1", async () => {
    const { stdout, status } = await doctor({
      SIXSCOPE_LISTEN: "nowhere",
      SIXSCOPE_RESOLVER: "::1",
    });
    expect(stdout).toMatch(/^problem .* SIXSCOPE_LISTEN="nowhere": /m);
    expect(stdout).toMatch(
      /^problem .* SIXSCOPE_RESOLVER="::1": .* did you mean SIXSCOPE_RESOLVER_A\?/m,
    );
    expect(status).toBe(1);
  });

  const certificates: [string, number, RegExp][] = [
    ["that is valid for a while", 60, /^ok .*they match and are valid for (59|60) days$/m],
    ["that expires soon", 3, /^warning .*they expire in [23] days; /m],
  ];
  tlsTest.each(certificates)("checks a certificate %s", async (_, days, line) => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-"));
    const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
    await makeCertificate({ commonName: "x", days, certFile: cert, keyFile: key });
    const resolvers = Object.fromEntries(
      ["A", "B", "C"].map((name) => [`SIXSCOPE_RESOLVER_${name}`, "[::1]:9"]),
    );
    const { stdout } = await doctor({
      ...resolvers,
      SIXSCOPE_TLS_CERT: cert,
      SIXSCOPE_TLS_KEY: key,
    });
    expect(stdout).toMatch(line);
    const yesterdayMs = Date.now() - 86_400_000;
    expect(checkTls({ certFile: cert, keyFile: key }, yesterdayMs)).toMatchObject({
      state: "problem",
      outcome: expect.stringMatching(/^the certificate .* 20\d\d-/),
    });
    rmSync(folder, { recursive: true });
  });
});
