/** The findings of doctor; scripts/systemd-test.ts runs it on a whole machine. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkTls } from "../../src/cli/doctor/files.ts";
import { checkKeys, checkKeysFile } from "../../src/cli/doctor/keys.ts";
import { checkClock } from "../../src/cli/doctor/machine.ts";
import { checkNats } from "../../src/cli/doctor/peers.ts";
import { roleOf } from "../../src/cli/doctor.ts";
import { parseConfig } from "../../src/config/settings.ts";
import { offerStatus } from "../../src/server/status.ts";
import { createLog } from "../../src/util/log.ts";
import { makeCertificate } from "../lab/certificate.ts";
import { startKnot } from "../lab/dns-server.ts";
import { labMissing, programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { sixscope } from "../lab/service.ts";

/** Runs `sixscope doctor` with a keys file of its own, so that it does not look at an installed service. */
const doctor = (environment: Readonly<Record<string, string>>, ...args: string[]) =>
  sixscope(["doctor", ...args], { SIXSCOPE_KEYS_FILE: "/nowhere/keys.json", ...environment });

const labTest = testWith(labMissing);

/** Settings whose resolvers refuse at once. */
const REFUSED = Object.fromEntries(
  ["A", "B", "C"].map((name) => [`SIXSCOPE_RESOLVER_${name}`, "[::1]:9"]),
);

const WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];

describe("this machine", () => {
  const withoutRights = testWith(labMissing, programMissing("setpriv"));

  /** Runs doctor in a network of its own, which a shell script sets up. */
  async function doctorIn(
    network: string,
    environment: Readonly<Record<string, string>> = {},
    wrapper: readonly string[] = [],
  ): Promise<string> {
    const script = `ip link set lo up; ${network}; exec "$@"`;
    const alone = ["unshare", "--net", "sh", "-ec", script, "sh", ...wrapper];
    const settings = { SIXSCOPE_KEYS_FILE: "/nowhere/keys.json", ...REFUSED, ...environment };
    return (await sixscope(["doctor"], settings, [...alone, ...(await sixscopeProgram())])).stdout;
  }

  const link = (name: string, about = "") =>
    `ip link add ${name} ${about} type veth peer name ${name}far; ip link set ${name} up; ip link set ${name}far up`;
  const UPLINK = `${link("uplink")}; ip -6 route add default dev uplink`;
  const ADDRESS = `${UPLINK}; ip address add 2001:db8::5/64 dev uplink nodad`;

  const rows: [string, string, RegExp][] = [
    [
      "an address that another machine has",
      `${UPLINK}; ip address add 2001:db8::5/64 dev uplinkfar nodad
      ip address add 2001:db8::5/64 dev uplink
      until ip address show dev uplink | grep -q dadfailed; do sleep 0.05; done`,
      /^problem {2}find an IPv6 address .*: Duplicate address detection has failed on uplink for 2001:db8::5:/,
    ],
    [
      "IPv6 that is switched off",
      `${UPLINK}; echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6`,
      /^problem .*: IPv6 is switched off on \S+: net\.ipv6\.conf\.all\.disable_ipv6 is 1\. Set it to 0\b/,
    ],
    [
      "a default route that stops all packets",
      `${ADDRESS}; ip -6 route del default; ip -6 route add unreachable default`,
      /^problem {2}find an IPv6 default route: .* is of type unreachable/,
    ],
    [
      "a firewall that drops solicitations",
      `${ADDRESS}
      nft 'add table inet lab; add chain inet lab output { type filter hook output priority 0; }; add rule inet lab output icmpv6 type nd-router-solicit drop'`,
      /^problem {2}see what the firewall drops: .*\(type 133\) on its way out on uplink/,
    ],
    [
      "no network at all",
      "true",
      /^problem {2}see whether the link is up: This machine has no interface but loopback/,
    ],
  ];
  testWith(labMissing, programMissing("nft")).each(rows)(
    "has one line for its fault, and none for what that explains: %s",
    async (_, network, line) => {
      const [machine = ""] = (await doctorIn(network)).split(/^\S+ +see whether the clock/m);
      const faults = machine.split("\n").filter((each) => /^(problem|warning|unknown)/.test(each));
      expect(faults).toEqual([expect.stringMatching(line)]);
    },
  );

  const others: [string, string, RegExp][] = [
    [
      "an address on an interface whose index is above 255",
      `${link("late", "index 300")}; ip address add 2001:db8::5/64 dev late nodad`,
      /^ok {7}find an IPv6 address of this machine: late has 2001:db8::5 \(static\)$/m,
    ],
    [
      "local addresses alone, which only warn",
      `${UPLINK}; ip address add fd00::5/64 dev uplink nodad`,
      /^warning {2}find an IPv6 address .*: uplink has only unique local addresses/m,
    ],
  ];
  labTest.each(others)("has %s", async (_, network, line) => {
    expect(await doctorIn(network)).toMatch(line);
  });

  withoutRights("is unknown, as far as it is not seen without rights", async () => {
    const said = await doctorIn(ADDRESS, {}, WITHOUT_RIGHTS);
    expect(said).toMatch(
      /^unknown {2}see what the firewall drops: .* needs a raw socket .*EPERM\)$/m,
    );
    expect(said).toMatch(/^ok {7}find an IPv6 default route: /m);
  });

  labTest("is judged by the way to the resolver of the settings", async () => {
    const network = ["one", "two"]
      .map((name, at) => `${link(name)}; ip address add 2001:db8:${at}::5/64 dev ${name} nodad`)
      .join("; ");
    const settings = {
      SIXSCOPE_RESOLVER_A: "2001:db8:0::53",
      SIXSCOPE_RESOLVER_B: "2001:db8:1::53",
      SIXSCOPE_TARGET_RESOLVER: "resolver_b",
    };
    expect(await doctorIn(network, settings)).toMatch(/ see whether the link is up: two is up/);
  });

  labTest(
    "is looked at where the settings are not valid, without a word of resolvers",
    async () => {
      const said = await doctorIn(ADDRESS, { SIXSCOPE_LISTEN: "nowhere" });
      expect(said).toMatch(/^ok {7}find an IPv6 address of this machine: uplink has 2001:db8::5/m);
      expect(said).not.toMatch(/^unknown|resolv(er|\.conf)/m);
    },
  );
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
  labTest.each(others)("beside an agent that runs by hand with %s", async (_, more, isItsOwn) => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-"));
    const settings = {
      SIXSCOPE_KEYS_FILE: join(folder, "keys.json"),
      SIXSCOPE_LISTEN: "127.0.0.1:0",
      ...REFUSED,
    };
    const agent = { icmp: { unavailable: "none" }, keyring: null, shared: null };
    const config = parseConfig({ ...settings, ...more });
    const log = createLog({ level: "error", format: "text", priorities: false, write: () => {} });
    const close = offerStatus(config, { ...agent, locations: null, watching: null }, log);
    const { stdout } = await doctor(settings);
    close();
    rmSync(folder, { recursive: true });
    expect(stdout).toMatch(isItsOwn ? /^ok .*: agent /m : /agent .*; it runs with other settings/m);
    expect(/ read the keys file /.test(stdout)).toBe(!isItsOwn);
    expect(/without a key, lookups from .*; with a key, probes of/.test(stdout)).toBe(!isItsOwn);
  });
});

describe("the raw socket", () => {
  const RANGE = "/proc/sys/net/ipv4/ping_group_range";
  const groupTest = testWith(usersMissing, programMissing("setpriv"));

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
    const program = [...WITHOUT_RIGHTS, ...(await sixscopeProgram())];
    const { stdout } = await sixscope(["doctor"], { SIXSCOPE_LISTEN: "nowhere" }, program);
    writeFileSync(RANGE, before);
    expect(stdout).toMatch(line);
  });
});

describe("a NATS server that cannot be reached", () => {
  test.each([
    ["service", "only this place can measure"],
    ["agent", "nobody can ask this place"],
  ] as const)("says what that means for the %s", async (role, consequence) => {
    const config = parseConfig({ SIXSCOPE_NATS_URL: "nats://[::1]:9" });
    const about = { config, role, environment: {}, files: [], setting: String } as const;
    const [found] = await checkNats({ ...about, service: null, status: null, isCurrent: false });
    expect(found).toMatchObject({ state: "problem", advice: expect.stringContaining(consequence) });
  });
});

describe("keys in a Valkey that does not answer", () => {
  const URL = "valkey+unix:///nowhere/valkey";
  test.each([
    ["SIXSCOPE_VALKEY_URL", null],
    ["SIXSCOPE_VALKEY_URL_FILE", "url"],
  ])("the advice names the setting that is there: %s", async (name, file) => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-doctor-"));
    const path = join(folder, file ?? "unused");
    writeFileSync(path, URL);
    const environment = { [name]: file === null ? URL : path };
    const config = parseConfig(environment);
    const about = { config, environment, files: [], role: "service", setting: String } as const;
    const [found] = await checkKeys({ ...about, service: null, status: null, isCurrent: false });
    expect(found?.advice).toContain(`check Valkey itself and ${name};`);
    rmSync(folder, { recursive: true });
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

  labTest("--json prints the same findings as one document", async () => {
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

  labTest("names every wrong setting, and ends with status 1", async () => {
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
    const { stdout } = await doctor({
      ...REFUSED,
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
