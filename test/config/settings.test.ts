import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parsePrefix } from "../../src/addr/prefix.ts";
import { formatSocketAddress } from "../../src/addr/socket-address.ts";
import { parseEnvironmentFile } from "../../src/config/environment-file.ts";
import { ConfigError, parseConfig } from "../../src/config/settings.ts";
import { ROOT_ANCHORS } from "../../src/dns/dnssec/anchors.ts";
import { formatDnsServer } from "../../src/dns/server.ts";
import { quote } from "../../src/util/text.ts";

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    parseConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe("defaults", () => {
  test("listen on the loopback addresses of both families only", () => {
    expect(parseConfig({}).listen).toEqual([
      { kind: "tcp", hostname: "127.0.0.1", port: 8080 },
      { kind: "tcp", hostname: "::1", port: 8080 },
    ]);
  });

  test("are the documented ones", () => {
    const { resolvers, listen: _, ...rest } = parseConfig({});
    expect(rest).toEqual({
      metricsListen: [],
      tls: null,
      trustedProxies: { unix: true, prefixes: [] },
      plainHttpFrom: [],
      keylessFrom: [],
      keysFile: resolve("keys.json"),
      statusSocket: resolve("keys.json.status"),
      valkey: null,
      networkFiles: { networksFile: null, asnFile: null },
      nats: null,
      location: null,
      locationTags: [],
      locationsExpected: [],
      trustAnchors: ROOT_ANCHORS,
      unsignedZones: [],
      targetResolver: "resolver_a",
      rate: { anonymous: 100, prefix: 1000, key: 1000 },
      targets: { mode: "any", allow: [], deny: [] },
      probePorts: [
        [53, 53],
        [80, 80],
        [443, 443],
        [33434, 33534],
      ],
      pingIntervalMs: 200,
      probeTimeoutMs: 2000,
      maxProbes: 64,
      stopGraceMs: 20_000,
      logLevel: "info",
      logFormat: "text",
      logTargets: false,
      logClients: true,
      familyUrls: null,
      watchFile: resolve("watches"),
      historyFile: resolve("history.db"),
      historyMaxMb: 256,
      notify: null,
    });
    expect(resolvers.resolver_a.map(formatSocketAddress)).toEqual([
      "[2606:4700:4700::1111]:53",
      "1.1.1.1:53",
      "[2606:4700:4700::1001]:53",
      "1.0.0.1:53",
    ]);
  });

  test("put the keys file into the state directory of systemd", () => {
    expect(parseConfig({ STATE_DIRECTORY: "/var/lib/sixscope" }).keysFile).toBe(
      "/var/lib/sixscope/keys.json",
    );
  });

  test.each([
    ["keys.json", "/folder/keys.json"],
    ["../keys.json", "/keys.json"],
    ["/etc/keys.json", "/etc/keys.json"],
  ])("a keys file %s starts from the given folder: %s", (path, expected) => {
    expect(parseConfig({ SIXSCOPE_KEYS_FILE: path }, "/folder").keysFile).toBe(expected);
  });

  test("apply if a variable is empty", () => {
    expect(parseConfig({ SIXSCOPE_TLS_CERT: "", SIXSCOPE_MAX_PROBES: "" }).maxProbes).toBe(64);
  });
});

describe("values", () => {
  const accepted: [string, string, string, unknown][] = [
    [
      "both families",
      "SIXSCOPE_LISTEN",
      "[::]:443",
      { listen: [{ kind: "tcp", hostname: "::", port: 443 }] },
    ],
    [
      "both loopback addresses by their name",
      "SIXSCOPE_LISTEN",
      "localhost:1",
      {
        listen: [
          { kind: "tcp", hostname: "127.0.0.1", port: 1 },
          { kind: "tcp", hostname: "::1", port: 1 },
        ],
      },
    ],
    [
      "a host name",
      "SIXSCOPE_LISTEN",
      "my-host.example.net:80",
      { listen: [{ kind: "tcp", hostname: "my-host.example.net", port: 80 }] },
    ],
    [
      "a unix socket",
      "SIXSCOPE_LISTEN",
      "unix:/run/s",
      { listen: [{ kind: "unix", path: "/run/s" }] },
    ],
    [
      "spaces in a list",
      "SIXSCOPE_LISTEN",
      "unix:/a, unix:/b",
      {
        listen: [
          { kind: "unix", path: "/a" },
          { kind: "unix", path: "/b" },
        ],
      },
    ],
    [
      "no limit for a /64",
      "SIXSCOPE_RATE_PREFIX",
      "0",
      { rate: { anonymous: 100, prefix: 0, key: 1000 } },
    ],
    ["a location", "SIXSCOPE_LOCATION", "ams-1", { location: "ams-1" }],
    ["tags", "SIXSCOPE_LOCATION_TAGS", "nl, eu,nl", { locationTags: ["nl", "eu"] }],
    ["expected places", "SIXSCOPE_LOCATIONS_EXPECTED", "a,b", { locationsExpected: ["a", "b"] }],
    [
      "two NATS servers, one with TLS required",
      "SIXSCOPE_NATS_URL",
      "nats://[2001:db8::1]:4222,tls://nats.example.com",
      {
        nats: {
          servers: ["nats://[2001:db8::1]:4222", "tls://nats.example.com"],
          tls: true,
          credsFile: null,
        },
      },
    ],
    ["the shortest interval", "SIXSCOPE_PING_INTERVAL_MS", "10", { pingIntervalMs: 10 }],
    ["the longest timeout", "SIXSCOPE_PROBE_TIMEOUT_MS", "10000", { probeTimeoutMs: 10_000 }],
    [
      "another resolver",
      "SIXSCOPE_TARGET_RESOLVER",
      "resolver_c",
      { targetResolver: "resolver_c" },
    ],
    ["a level", "SIXSCOPE_LOG_LEVEL", "debug", { logLevel: "debug" }],
    [
      "a receiver with an @ in its path",
      "SIXSCOPE_NOTIFY_URL",
      "https://hooks.example.com/@team",
      { notify: { url: "https://hooks.example.com/@team", secret: null } },
    ],
  ];
  test.each(accepted)("%s: %s=%s", (_, name, value, expected) => {
    expect(parseConfig({ [name]: value })).toMatchObject(expected as object);
  });

  test("resolvers with and without ports, of both families", () => {
    const { resolvers } = parseConfig({
      SIXSCOPE_RESOLVER_B: "2001:db8::1, [2001:db8::2]:5353, 192.0.2.1, 192.0.2.2:5353",
    });
    expect(resolvers.resolver_b.map(formatSocketAddress)).toEqual([
      "[2001:db8::1]:53",
      "[2001:db8::2]:5353",
      "192.0.2.1:53",
      "192.0.2.2:5353",
    ]);
  });

  test("resolvers over TLS and HTTPS, and with a zone", () => {
    const servers = "tls://192.0.2.1#dns.example, https://[2001:db8::1]/dns-query, fe80::1%eth0";
    expect(
      parseConfig({ SIXSCOPE_RESOLVER_A: servers }).resolvers.resolver_a.map(formatDnsServer),
    ).toEqual([
      "tls://192.0.2.1:853#dns.example",
      "https://[2001:db8::1]:443/dns-query",
      "[fe80::1%eth0]:53",
    ]);
  });

  test("trusted proxies: an IPv4-mapped prefix is an IPv4 prefix, as peers are IPv4", () => {
    expect(parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "::ffff:10.0.0.0/104" }).trustedProxies).toEqual(
      parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "10.0.0.0/8" }).trustedProxies,
    );
  });

  test("trusted proxies: include the unix listener only if it is listed", () => {
    expect(parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "10.0.0.0/8" }).trustedProxies.unix).toBe(false);
    expect(
      parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "unix,10.0.0.0/8,2001:db8::/32" }).trustedProxies,
    ).toEqual({
      unix: true,
      prefixes: ["10.0.0.0/8", "2001:db8::/32"].map(parsePrefix),
    });
  });

  const rejected: [string, string, string][] = [
    ["no port", "SIXSCOPE_LISTEN", "127.0.0.1"],
    ["IPv6 without brackets", "SIXSCOPE_LISTEN", "::1:8080"],
    ["IPv4 in brackets", "SIXSCOPE_LISTEN", "[127.0.0.1]:80"],
    ["port above 65535", "SIXSCOPE_LISTEN", "127.0.0.1:65536"],
    ["relative socket path", "SIXSCOPE_LISTEN", "unix:run/s"],
    ["an empty entry", "SIXSCOPE_LISTEN", "127.0.0.1:80,"],
    ["a host name with a hyphen in front", "SIXSCOPE_LISTEN", "-a.example:80"],
    ["an IPv4 address out of range", "SIXSCOPE_LISTEN", "127.0.0.256:80"],
    ["a certificate without its key", "SIXSCOPE_TLS_CERT", "/c.pem"],
    ["a proxy's name", "SIXSCOPE_TRUSTED_PROXIES", "nginx"],
    ["a prefix with host bits", "SIXSCOPE_TRUSTED_PROXIES", "10.0.0.1/8"],
    ["a resolver's name", "SIXSCOPE_RESOLVER_A", "dns.example"],
    ["a resolver on port 0", "SIXSCOPE_RESOLVER_B", "192.0.2.1:0"],
    ["a name of a resolver over TLS", "SIXSCOPE_RESOLVER_A", "tls://dns.example"],
    ["a multicast resolver", "SIXSCOPE_RESOLVER_A", "ff02::fb"],
    ["too many resolver addresses", "SIXSCOPE_RESOLVER_C", Array(17).fill("192.0.2.1").join(",")],
    ["an unknown resolver", "SIXSCOPE_TARGET_RESOLVER", "resolver_d"],
    ["zero requests", "SIXSCOPE_RATE_ANONYMOUS", "0"],
    ["a sign", "SIXSCOPE_RATE_KEY", "+5"],
    ["a fraction", "SIXSCOPE_RATE_PREFIX", "1.5"],
    ["an unknown mode", "SIXSCOPE_TARGETS", "all"],
    ["a prefix too long", "SIXSCOPE_TARGETS_DENY", "2001:db8::/129"],
    ["interval below 10", "SIXSCOPE_PING_INTERVAL_MS", "9"],
    ["interval above 10000", "SIXSCOPE_PING_INTERVAL_MS", "10001"],
    ["timeout below 100", "SIXSCOPE_PROBE_TIMEOUT_MS", "99"],
    ["a stop that takes longer than five minutes", "SIXSCOPE_STOP_GRACE_MS", "300001"],
    ["no probes", "SIXSCOPE_MAX_PROBES", "0"],
    ["more streams than the memory carries", "SIXSCOPE_MAX_PROBES", "3001"],
    ["an unknown log format", "SIXSCOPE_LOG_FORMAT", "xml"],
    ["an unknown level", "SIXSCOPE_LOG_LEVEL", "trace"],
    ["a location in capitals", "SIXSCOPE_LOCATION", "AMS"],
    ["a location with a dot", "SIXSCOPE_LOCATION", "ams.1"],
    ["a location of 33 characters", "SIXSCOPE_LOCATION", "a".repeat(33)],
    ["the name of all locations", "SIXSCOPE_LOCATION", "all"],
    ["the name of all locations as a tag", "SIXSCOPE_LOCATION_TAGS", "eu,all"],
    ["a tag in capitals", "SIXSCOPE_LOCATION_TAGS", "EU"],
    ["17 tags", "SIXSCOPE_LOCATION_TAGS", Array.from({ length: 17 }, (_, at) => `t${at}`).join()],
    ["an expected place that is none", "SIXSCOPE_LOCATIONS_EXPECTED", "ams,,fra"],
    ["another protocol for NATS", "SIXSCOPE_NATS_URL", "https://nats.example.com"],
    ["NATS without a protocol", "SIXSCOPE_NATS_URL", "nats.example.com:4222"],
    ["credentials without NATS", "SIXSCOPE_NATS_CREDS", "/etc/sixscope/nats.nk"],
  ];
  test.each(rejected)("%s: %s=%s is rejected by name", (_, name, value) => {
    const problems = problemsOf({ [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(`${name}=${quote(value)}: `);
  });
});

describe("Valkey", () => {
  const FORM =
    "must be valkey://[user:password@]host[:port][/database], valkeys:// for TLS, or valkey+unix:///path; in a password, write / ? # @ as %2F %3F %23 %40";

  // biome-ignore format: a table
  test.each([
    "valkey://localhost", "valkeys://user:p%40ss@[::1]:6379/3", "redis://:pass@10.0.0.1", "rediss://host:1",
    "valkey+unix:///run/valkey.sock", "redis+unix:///run/redis.sock",
  ])("is used at %s", (url) => {
    expect(parseConfig({ SIXSCOPE_VALKEY_URL: url }).valkey).toEqual({ url, prefix: "sixscope:" });
  });

  // biome-ignore format: a table
  test.each([
    "localhost:6379", "http://localhost", "valkey://", "valkey://:s3cret@", "valkey://h/name", "valkey://h?db=1",
    "valkey+unix://", "s3cret",
  ])("is not used at %s, and the value is not repeated", (url) => {
    expect(problemsOf({ SIXSCOPE_VALKEY_URL: url })).toEqual([`SIXSCOPE_VALKEY_URL: ${FORM}`]);
  });

  test("a password is not repeated, whatever the variable", () => {
    const problems = problemsOf({ SIXSCOPE_WINDOW_COLOUR: "valkey://:s3/cret@host" });
    expect(problems).toEqual([
      "SIXSCOPE_WINDOW_COLOUR: is not a setting; see docs/configuration.md",
    ]);
  });

  test("trust anchors are in a file", () => {
    const file = join(tmpdir(), `sixscope-anchors-${process.pid}`);
    writeFileSync(file, `; ours\nlab. IN DS 1 13 2 ${"ab".repeat(32)}\n`);
    expect(parseConfig({ SIXSCOPE_TRUST_ANCHORS: file }).trustAnchors).toMatchObject([
      { zone: "lab.", tag: 1, algorithm: 13, digestType: 2 },
    ]);
    writeFileSync(file, "lab. IN DS 1 13 2 abab\n");
    expect(problemsOf({ SIXSCOPE_TRUST_ANCHORS: file })).toEqual([
      `SIXSCOPE_TRUST_ANCHORS="${file}": is not a file of DS or DNSKEY records: line 1: the digest of the DS record is cut short or not in hex`,
    ]);
    rmSync(file);
    expect(problemsOf({ SIXSCOPE_TRUST_ANCHORS: file }).join()).toContain("cannot be read: ENOENT");
  });

  test("a file without a trusted key is refused", () => {
    const file = join(tmpdir(), `sixscope-revoked-${process.pid}`);
    writeFileSync(file, `lab. IN DNSKEY 385 3 13 ${Buffer.alloc(64, 1).toString("base64")}\n`);
    const problem = `SIXSCOPE_TRUST_ANCHORS="${file}": is not a file of DS or DNSKEY records: it has no record of a trusted key`;
    expect(problemsOf({ SIXSCOPE_TRUST_ANCHORS: file })).toEqual([problem]);
    rmSync(file);
  });

  test("zones that are not validated", () => {
    const zones = "lan, Corp.Example.,bücher.example";
    expect(parseConfig({ SIXSCOPE_UNSIGNED_ZONES: zones }).unsignedZones).toEqual([
      ...["lan.", "corp.example.", "xn--bcher-kva.example."],
    ]);
    expect(problemsOf({ SIXSCOPE_UNSIGNED_ZONES: "lan,a..b,10.0.0.1" })).toEqual([
      'SIXSCOPE_UNSIGNED_ZONES="lan,a..b,10.0.0.1": "a..b" must be a name such as corp.example',
      'SIXSCOPE_UNSIGNED_ZONES="lan,a..b,10.0.0.1": "10.0.0.1" must be a name such as corp.example',
    ]);
  });

  test("the URL can be in a file, and not in both places", () => {
    const file = join(tmpdir(), `sixscope-url-${process.pid}`);
    writeFileSync(file, "valkey://:s3cret@host\n");
    const fromFile = { SIXSCOPE_VALKEY_URL_FILE: file, SIXSCOPE_VALKEY_PREFIX: "other:" };
    expect(parseConfig(fromFile).valkey).toEqual({
      url: "valkey://:s3cret@host",
      prefix: "other:",
    });
    expect(problemsOf({ ...fromFile, SIXSCOPE_VALKEY_URL: "valkey://host" })).toEqual([
      `SIXSCOPE_VALKEY_URL_FILE="${file}": SIXSCOPE_VALKEY_URL is set too; set one of them`,
    ]);
    writeFileSync(file, "s3cret");
    expect(problemsOf(fromFile)).toEqual([`SIXSCOPE_VALKEY_URL_FILE="${file}": ${FORM}`]);
    rmSync(file);
    expect(problemsOf(fromFile).join()).toContain("cannot be read: ENOENT");
    expect(problemsOf({ SIXSCOPE_VALKEY_PREFIX: "a b" }).join()).toContain("without spaces");
  });
});

describe("problems", () => {
  test("are reported all at once, each with the variable, its value and what is valid", () => {
    expect(
      problemsOf({
        SIXSCOPE_MAX_PROBES: "many",
        SIXSCOPE_LOG_LEVEL: "loud",
        SIXSCOPE_LISTENS: "127.0.0.1:80",
        SIXSCOPE_TLS_KEY: "/k.pem",
      }).toSorted(),
    ).toEqual([
      'SIXSCOPE_LISTENS="127.0.0.1:80": is not a setting; did you mean SIXSCOPE_LISTEN?',
      'SIXSCOPE_LOG_LEVEL="loud": must be debug, info, warn or error',
      'SIXSCOPE_MAX_PROBES="many": must be a whole number from 1 to 3000',
      'SIXSCOPE_TLS_KEY="/k.pem": needs SIXSCOPE_TLS_CERT; set both or neither',
    ]);
  });

  test("the URLs of one family each need each other, and are names", () => {
    const urls = (ipv4: string, ipv6: string) => ({
      SIXSCOPE_IPV4_URL: ipv4,
      SIXSCOPE_IPV6_URL: ipv6,
    });
    const { familyUrls } = parseConfig(
      urls(
        "https://ipv4.example.com,https://no-dns64.example.com/",
        "http://IPv6.example.com:8080",
      ),
    );
    expect(familyUrls).toEqual({
      ipv4: ["https://ipv4.example.com/", "https://no-dns64.example.com/"],
      ipv6: ["http://ipv6.example.com:8080/"],
    });
    const [good, form] = ["https://a.example", "must be a URL with a name"];
    expect(problemsOf({ SIXSCOPE_IPV4_URL: good })).toEqual([
      `SIXSCOPE_IPV4_URL="${good}": needs SIXSCOPE_IPV6_URL; set both or neither`,
    ]);
    for (const wrong of [
      ...["a.example", "ftp://a.example", "https://", "https://a b", "https://a.example/path"],
      ...["https://[2001:db8::1]", "https://192.0.2.1:80", "https://0x7f.1", "https://a.example?b"],
      ...["https://a.example#b", "https://u:p@a.example", "https://a.example;script-src"],
    ]) {
      expect(problemsOf(urls(good, wrong)).join()).toContain(form);
    }
    expect(problemsOf(urls(`${good},${good},${good}`, good)).join()).toContain("at most 2 entries");
  });

  test("the settings of the command-line tools are known and ignored", () => {
    const ours = { SIXSCOPE_SERVER: "https://six.example.com", SIXSCOPE_KEY: "sx_secret" };
    expect(problemsOf(ours)).toEqual([]);
    expect(parseConfig(ours)).toEqual(parseConfig({}));
  });

  test("an unknown name that is like no setting points to the documentation", () => {
    expect(problemsOf({ SIXSCOPE_WINDOW_COLOUR: "red" })).toEqual([
      `SIXSCOPE_WINDOW_COLOUR="red": is not a setting; see docs/configuration.md`,
    ]);
    expect(problemsOf({ SIXSCOPE_WINDOW_COLOUR: "" })).toHaveLength(1);
  });

  test("name every entry of a list that is not valid", () => {
    const value = "unix:relative,[::1]:1,127.0.0.1";
    const problems = problemsOf({ SIXSCOPE_LISTEN: value });
    expect(problems.map((problem) => problem.split(" must be ")[0])).toEqual([
      `SIXSCOPE_LISTEN="${value}": "unix:relative"`,
      `SIXSCOPE_LISTEN="${value}": "127.0.0.1"`,
    ]);
  });

  test("a mapped block that would match nothing is to be written as IPv4", () => {
    for (const name of ["SIXSCOPE_TARGETS_DENY", "SIXSCOPE_TARGETS_ALLOW", "SIXSCOPE_KEYLESS_FROM"])
      expect(problemsOf({ [name]: "::ffff:10.0.0.0/104" }).join()).toEndWith(": write 10.0.0.0/8");
    const lists = { SIXSCOPE_TARGETS_DENY: "::ffff:0:0/96,2001:db8::/32" };
    expect(problemsOf(lists)).toEqual([]);
    expect(parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "::ffff:10.0.0.0/104" }).trustedProxies).toEqual(
      parseConfig({ SIXSCOPE_TRUSTED_PROXIES: "10.0.0.0/8" }).trustedProxies,
    );
  });

  const long = "x".repeat(100_000);
  const longValues: [string, string, string][] = [
    ["a choice", "SIXSCOPE_LOG_LEVEL", long],
    ["an entry", "SIXSCOPE_LISTEN", long],
    ["an address", "SIXSCOPE_TRUSTED_PROXIES", long],
    ["many entries", "SIXSCOPE_LISTEN", "x,".repeat(50_000)],
    ["an unknown variable", "SIXSCOPE_OTHER", long],
  ];
  test.each(longValues)("are short if the value is long: %s", (_, name, value) => {
    const text = problemsOf({ [name]: value }).join("\n");
    expect(text).toContain(name);
    expect(text.length).toBeLessThan(4000);
  });

  test("do not show a password in a URL", () => {
    const value = "nats://user:SECRET@nats.example.com:4222";
    const text = problemsOf({ SIXSCOPE_NATS_URL: value, SIXSCOPE_NATS_URLS: value }).join("\n");
    expect(text).toContain("put them into SIXSCOPE_NATS_CREDS");
    expect(text).not.toContain("SECRET");
  });

  const PEM = "-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n";
  const pasted: [string, string][] = [
    ["SIXSCOPE_TLS_KEY", "put it into a file"],
    ["SIXSCOPE_TLS_KEYS", "did you mean SIXSCOPE_TLS_KEY?"],
    ["SIXSCOPE_LISTEN", "put it into a file"],
  ];
  test.each(pasted)("do not repeat a key that was pasted as %s", (name, said) => {
    const text = problemsOf({ [name]: PEM, SIXSCOPE_TLS_CERT: "/cert" }).join("\n");
    expect(text).toContain(said);
    expect(text).not.toMatch(/BEGIN|SECRET/);
  });

  test("do not include variables of other programs", () => {
    expect(problemsOf({ PATH: "/bin", SIX: "1" })).toEqual([]);
  });
});

describe("a variable that begins almost as ours", () => {
  const beginnings: [string, boolean][] = [
    ["SIXSCOP_LISTEN", true],
    ["SIXSCPE_LISTEN", true],
    ["SIXSCOPEE_LISTEN", true],
    ["SIXSSCOPE_LISTEN", true],
    ["SIX_SCOPE_LISTEN", true],
    ["SIXSCOPELISTEN", true],
    ["sixscope_listen", true],
    ["SIXCOPE_LISTEN", true],
    ["SXSCOPE_LISTEN", true],
    ["IXSCOPE_LISTEN", true],
    ["MIXSCOPE_LISTEN", true],
    ["SIXTH_LISTEN", false],
    ["SCOPE_LISTEN", false],
    ["TELESCOPE_LISTEN", false],
    ["PATH", false],
    ["SIX", false],
  ];
  test.each(beginnings)("%s: %p", (name, isOurs) => {
    expect(problemsOf({ [name]: "[::1]:80" })).toHaveLength(Number(isOurs));
  });

  test.each([
    ["SIXSCOPE_URL", null],
    ["SIXSCOPELISTEN", null],
    ["sixscope_listen", "SIXSCOPE_LISTEN"],
    ["SIXSCOP_LISTEN", "SIXSCOPE_LISTEN"],
    ["SIX_SCOPE_LISTENS", "SIXSCOPE_LISTEN"],
    ["SIXSCOPE_LOG", "SIXSCOPE_LOG_LEVEL"],
    ["SIXSCOPE_TARGET", "SIXSCOPE_TARGET_RESOLVER"],
    ["SIXSCOPE_RESOLVER", "SIXSCOPE_RESOLVER_A"],
    ["SIXSCOPE_LISTENS", "SIXSCOPE_LISTEN"],
  ])("%s is taken for %p", (name, near) => {
    const hint = near === null ? "see docs/configuration.md" : `did you mean ${near}?`;
    expect(problemsOf({ [name]: "1" })).toEqual([`${name}="1": is not a setting; ${hint}`]);
  });

  test("and holds an API key does not show it", () => {
    expect(problemsOf({ SIXSCOP_LISTEN: "sx_secret" })).toEqual([
      "SIXSCOP_LISTEN: is not a setting; did you mean SIXSCOPE_LISTEN?",
    ]);
  });
});

test("problems of a file name their lines", () => {
  const text =
    "# A\nSIXSCOPE_MAX_PROBES=many\nexport X=1\nSIXSCOPE_LISTEN=[::1]:80\nSIXSCOP_RATE_KEY=1";
  const file = parseEnvironmentFile("/file", text);
  try {
    parseConfig({ ...file.variables, SIXSCOPE_LOG_LEVEL: "loud" }, "", [file]);
    throw new Error("it is valid");
  } catch (error) {
    expect(error instanceof ConfigError && error.problems).toEqual([
      expect.stringMatching(/^line 3 of \/file: systemd ignores it/),
      expect.stringMatching(/^line 2 of \/file: SIXSCOPE_MAX_PROBES="many": must be/),
      expect.stringMatching(/^SIXSCOPE_LOG_LEVEL="loud": must be/),
      expect.stringMatching(
        /^line 5 of \/file: SIXSCOP_RATE_KEY="1": .* did you mean SIXSCOPE_RATE_KEY/,
      ),
    ]);
  }
});
