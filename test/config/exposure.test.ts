import { describe, expect, test } from "bun:test";
import { exposureOf } from "../../src/config/exposure.ts";
import { parseConfig, settingsOfAgent } from "../../src/config/settings.ts";

const ANY = "any address, private ones included (SIXSCOPE_TARGETS=any)";
const TLS = { SIXSCOPE_TLS_CERT: "/cert", SIXSCOPE_TLS_KEY: "/key" };
const PUBLIC = { SIXSCOPE_LISTEN: "[::]:443", ...TLS };

describe("one sentence says who may do what", () => {
  const rows: [string, Record<string, string>, number | null | undefined, string][] = [
    [
      "by default",
      {},
      3,
      `without a key, lookups from this machine; with a key (3 valid), probes of ${ANY}`,
    ],
    [
      "without keys",
      {},
      0,
      `without a key, lookups from this machine; with a key (there are none), probes of ${ANY}`,
    ],
    [
      "with keys that nobody has counted",
      {},
      undefined,
      `without a key, lookups from this machine; with a key, probes of ${ANY}`,
    ],
    [
      "to everyone",
      { ...PUBLIC, SIXSCOPE_TARGETS: "global" },
      1,
      "without a key, lookups from anyone who reaches [::]:443, also from the Internet; with a key (1 valid), probes of global addresses",
    ],
    [
      "behind a proxy",
      { SIXSCOPE_TRUSTED_PROXIES: "::1", SIXSCOPE_TARGETS_DENY: "fd00::/8" },
      1,
      "without a key, lookups from anyone behind the proxies at ::1/128; with a key (1 valid), probes of any address but fd00::/8, private ones included (SIXSCOPE_TARGETS=any)",
    ],
    [
      "in a closed network",
      {
        SIXSCOPE_LISTEN: "[::]:80",
        SIXSCOPE_PLAIN_HTTP_FROM: "10.0.0.0/8",
        SIXSCOPE_KEYLESS_FROM: "10.1.0.0/16",
        SIXSCOPE_METRICS_LISTEN: "[::]:9090",
      },
      1,
      `without a key, lookups from clients in 10.0.0.0/8; with a key (1 valid), probes of ${ANY}; without a key, the same from clients in 10.1.0.0/16; without a key, metrics and probes for whoever reaches [::]:9090`,
    ],
    [
      "of a listener that refuses all others",
      { SIXSCOPE_LISTEN: "[::]:80" },
      1,
      `without a key, lookups from this machine; with a key (1 valid), probes of ${ANY}`,
    ],
    [
      "of an agent",
      { SIXSCOPE_NATS_URL: "nats://[::1]", SIXSCOPE_LOCATION: "ams" },
      null,
      `through ams at NATS, probes of ${ANY}`,
    ],
    [
      "of an agent whose metrics others reach",
      {
        SIXSCOPE_NATS_URL: "nats://[::1]",
        SIXSCOPE_LOCATION: "ams",
        SIXSCOPE_METRICS_LISTEN: "[::]:9090",
      },
      null,
      `without a key, metrics and probes for whoever reaches [::]:9090; through ams at NATS, probes of ${ANY}`,
    ],
  ];
  test.each(rows)("%s", (_, environment, keys, sentence) => {
    expect(exposureOf(parseConfig(environment), keys).sentence).toBe(sentence);
  });
});

describe("settings that are risks", () => {
  const rows: [string, Record<string, string>, string[]][] = [
    ["none by default", {}, []],
    ["public and any", PUBLIC, ["SIXSCOPE_TARGETS"]],
    ["public and global", { ...PUBLIC, SIXSCOPE_TARGETS: "global" }, []],
    ["public, and private networks denied", { ...PUBLIC, SIXSCOPE_TARGETS_DENY: "fc00::/7" }, []],
    ["all of IPv6 without a key", { SIXSCOPE_KEYLESS_FROM: "::/0" }, ["SIXSCOPE_KEYLESS_FROM"]],
    [
      "both halves of IPv4, and a network",
      { SIXSCOPE_KEYLESS_FROM: "0.0.0.0/1,128.0.0.0/1,10.0.0.0/8" },
      ["SIXSCOPE_KEYLESS_FROM"],
    ],
    ["all global addresses", { SIXSCOPE_KEYLESS_FROM: "2000::/3" }, ["SIXSCOPE_KEYLESS_FROM"]],
    ["private networks, however wide", { SIXSCOPE_KEYLESS_FROM: "fc00::/7,fe80::/10" }, []],
    ["every proxy", { SIXSCOPE_TRUSTED_PROXIES: "::/0,unix" }, ["SIXSCOPE_TRUSTED_PROXIES"]],
    ["plain HTTP", { SIXSCOPE_PLAIN_HTTP_FROM: "0.0.0.0/0" }, ["SIXSCOPE_PLAIN_HTTP_FROM"]],
    [
      "a policy that forbids nothing",
      { SIXSCOPE_TARGETS: "global", SIXSCOPE_TARGETS_ALLOW: "::/0" },
      ["SIXSCOPE_TARGETS_ALLOW"],
    ],
    ["a list that changes nothing", { SIXSCOPE_TARGETS_ALLOW: "::/0" }, []],
    [
      "metrics for every machine",
      { SIXSCOPE_METRICS_LISTEN: "[::]:9090,unix:/run/m" },
      ["SIXSCOPE_METRICS_LISTEN"],
    ],
    ["metrics for this machine", { SIXSCOPE_METRICS_LISTEN: "localhost:9090,unix:/run/m" }, []],
    ["a listener that refuses all others", { SIXSCOPE_LISTEN: "[::]:80" }, ["SIXSCOPE_LISTEN"]],
  ];
  test.each(rows)("%s", (_, environment, variables) => {
    const config = parseConfig(environment);
    const risksOf = (...given: Parameters<typeof exposureOf>) =>
      exposureOf(...given).risks.map(({ variable }) => variable);
    expect(risksOf(config, 1)).toEqual(variables);
    // An agent has no use for the others.
    const ofAgent = ["SIXSCOPE_TARGETS_ALLOW", "SIXSCOPE_METRICS_LISTEN"];
    const expected = variables.filter((variable) => ofAgent.includes(variable));
    expect(risksOf(settingsOfAgent(config), null)).toEqual(expected);
  });
});
