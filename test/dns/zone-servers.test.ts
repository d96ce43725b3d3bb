import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { ApiError, ERRORS } from "../../src/api/errors.ts";
import { parseConfig } from "../../src/config/settings.ts";
import { createDnsClient } from "../../src/dns/client.ts";
import type { RecordType } from "../../src/dns/message/record.ts";
import { FairSlots } from "../../src/gate/fair-slots.ts";
import { Gate } from "../../src/gate/gate.ts";
import { dns } from "../../src/tools/dns/endpoint.ts";
import { askZone } from "../../src/tools/dns/zone.ts";
import { type Started, startServer } from "../lab/authorities.ts";
import { describeWith, labMissing, programMissing } from "../lab/lab.ts";
import { labEnvironment, run, succeeds } from "../lab/run.ts";

/* Zones whose faults are known, on NSD, Knot and BIND below a root of their own; dig +nssearch and named-checkzone say the same. */

const PROGRAMS = ["nsd", "knotd", "named", "unbound", "dig", "named-checkzone"];
const missing = [labMissing, ...PROGRAMS.map(programMissing)];

/** The addresses of the three servers, one where no port is open, one that is silent, and one without a route. */
const NSD = ["2001:db8:53::1", "192.0.2.1"] as const;
const KNOT = ["2001:db8:53::2", "192.0.2.2"] as const;
const BIND = ["2001:db8:53::3", "192.0.2.3"] as const;
const CLOSED = "2001:db8:53::4";
const SILENT = "2001:db8:53::5";
const AWAY = "2001:db8:dead::1";

/** The resolver for dig, which uses port 53 for all servers. */
const RESOLVER = "2001:db8:53::6";

/** What a server has of a zone: the serial 7, and a name, unless something else is said. */
interface Copy {
  readonly serial?: number;
  /** Records behind SOA, NS and addresses of servers. */
  readonly records?: string;
  /** As a file without an SOA record. */
  readonly isBroken?: true;
}

interface Zone {
  /** The addresses of each server. */
  readonly servers: Readonly<Record<string, readonly string[]>>;
  readonly nsd?: Copy;
  readonly knot?: Copy & { readonly isSigned?: true };
  readonly bind?: Copy;
  /** What is asked below the zone, by default the AAAA records of www. */
  readonly ask?: readonly [name: string, type: RecordType];
  /** The findings, each with its servers. */
  readonly findings: readonly string[];
  /** The outcome of each address that does not answer. */
  readonly others?: readonly string[];
}

const THREE = { n1: NSD, n2: KNOT, n3: BIND };
const SAME: Copy = {};
const OTHER: Copy = { records: "www AAAA 2001:db8::81" };
const big = Array.from({ length: 12 }, (_, at) => `www TXT "${"x".repeat(200)}${at}"`);

// biome-ignore format: a table
const ZONES: Readonly<Record<string, Zone>> = {
  good: { servers: THREE, nsd: SAME, knot: SAME, bind: SAME, findings: [] },
  refused: { servers: THREE, nsd: SAME, bind: SAME, findings: ["lame n2"], others: [`n2 ${KNOT[0]} lame`, `n2 ${KNOT[1]} lame`] },
  broken: { servers: THREE, nsd: SAME, knot: SAME, bind: { isBroken: true }, findings: ["lame n3"], others: [`n3 ${BIND[0]} lame`, `n3 ${BIND[1]} lame`] },
  old: { servers: THREE, nsd: SAME, knot: SAME, bind: { serial: 6 }, findings: ["serials-differ n3"] },
  tie: { servers: { n1: NSD, n3: BIND }, nsd: SAME, bind: { serial: 8 }, findings: ["serials-differ n1 n3"] },
  answers: { servers: THREE, nsd: SAME, knot: OTHER, bind: SAME, findings: ["answers-differ n2"] },
  lacking: { servers: THREE, nsd: SAME, knot: SAME, bind: { records: "" }, findings: ["answers-differ n3"] },
  both: { servers: THREE, nsd: SAME, knot: { ...OTHER, serial: 9 }, bind: SAME, findings: ["serials-differ n2", "answers-differ n2"] },
  signed: { servers: { n2: KNOT }, knot: { isSigned: true }, findings: [] },
  unsigned: { servers: { n1: NSD, n2: KNOT }, nsd: SAME, knot: { isSigned: true }, findings: ["unsigned-server n1"] },
  four: { servers: { n1: NSD, n2: KNOT.slice(1) }, nsd: SAME, knot: SAME, findings: ["no-ipv6 n2"] },
  six: { servers: { n1: NSD.slice(0, 1), n2: KNOT.slice(0, 1) }, nsd: SAME, knot: SAME, findings: [] },
  homeless: { servers: { n1: NSD, n2: [] }, nsd: SAME, findings: ["no-ipv6 n2"], others: ["n2 null no-address"] },
  closed: { servers: { n1: NSD, n4: [CLOSED] }, nsd: SAME, findings: ["silent n4"], others: [`n4 ${CLOSED} silent`] },
  silent: { servers: { n1: NSD, n5: [SILENT] }, nsd: SAME, findings: ["silent n5"], others: [`n5 ${SILENT} silent`] },
  away: { servers: { n1: NSD, n6: [AWAY] }, nsd: SAME, findings: [], others: [`n6 ${AWAY} no-route`] },
  own: { servers: { n1: NSD, n7: ["2001:db8:ffff::1"] }, nsd: SAME, findings: [], others: ["n7 2001:db8:ffff::1 not-allowed"] },
  // Whose servers the resolver does not reach, so those of the root are asked.
  gone: { servers: { n2: KNOT }, findings: ["lame n2"], others: [`n2 ${KNOT[0]} lame`, `n2 ${KNOT[1]} lame`] },
  shut: { servers: { n4: [CLOSED] }, findings: ["silent n4"], others: [`n4 ${CLOSED} silent`] },
  alias: { servers: THREE, nsd: { records: "www CNAME www.good." }, knot: { records: "www CNAME www.good." }, bind: { records: "www CNAME www.good." }, findings: [] },
  aliases: { servers: THREE, nsd: { records: "www CNAME www.good." }, knot: { records: "www CNAME www.good." }, bind: { records: "www CNAME www.four." }, findings: ["answers-differ n3"] },
  wildcard: { servers: THREE, nsd: { records: "* AAAA ::2" }, knot: { records: "* AAAA ::2" }, bind: { records: "* AAAA ::2" }, findings: [] },
  large: { servers: THREE, nsd: { records: big.join("\n") }, knot: { records: big.join("\n") }, bind: { records: big.join("\n") }, ask: ["www", "TXT"], findings: [] },
  absent: { servers: THREE, nsd: SAME, knot: SAME, bind: SAME, ask: ["no.such.name", "MX"], findings: [] },
};
const NAMES = Object.keys(ZONES);

function text(name: string, { serial = 7, records = "www AAAA 2001:db8::80", isBroken }: Copy) {
  const hosts = Object.entries(ZONES[name]?.servers ?? {});
  const soa = `@ SOA n1 host ${serial} 7200 3600 1209600 300`;
  return [
    ...[`$ORIGIN ${name}.`, "$TTL 300", ...(isBroken ? [] : [soa])],
    ...hosts.flatMap(([host, ips]) => [
      `@ NS ${host}`,
      ...ips.map((ip) => `${host} ${ip.includes(":") ? "AAAA" : "A"} ${ip}`),
    ]),
    records,
  ].join("\n");
}

/** The root, which refers to all zones. */
const root = () =>
  [
    ...["$ORIGIN .", "$TTL 300", "@ SOA n1.good. host.good. 1 2 3 4 5", "@ NS n1.good."],
    ...NAMES.flatMap((name) =>
      Object.entries(ZONES[name]?.servers ?? {}).flatMap(([host, ips]) => [
        `${name}. NS ${host}.${name}.`,
        ...ips.map((ip) => `${host}.${name}. ${ip.includes(":") ? "AAAA" : "A"} ${ip}`),
      ]),
    ),
  ].join("\n");

const zonesOf = (program: "nsd" | "knot" | "bind") =>
  NAMES.flatMap((name) => {
    const copy = ZONES[name]?.[program];
    return copy ? [{ name, copy }] : [];
  });

/** Starts a server for its zones, whose files are in its folder, when it answers for those that are whole. */
function start(
  command: readonly string[],
  program: "nsd" | "knot" | "bind",
  configure: (folder: string, port: number) => readonly string[],
) {
  const zones = zonesOf(program);
  const whole = zones.filter(({ copy }) => !copy.isBroken).map(({ name }) => name);
  return startServer(command, whole, async (folder, port) => {
    for (const { name, copy } of zones) await Bun.write(join(folder, name), text(name, copy));
    if (program === "nsd") await Bun.write(join(folder, "root"), root());
    return configure(folder, port).join("\n");
  });
}

const startNsd = () =>
  start(["nsd", "-d", "-c"], "nsd", (folder, port) => [
    ...["server:", `ip-address: ::1@${port}`, ...NSD.map((ip) => `ip-address: ${ip}`)],
    ...[`zonesdir: "${folder}"`, 'pidfile: ""', 'database: ""', `xfrdfile: "${folder}/xfrd"`],
    ...[`zonelistfile: "${folder}/list"`, 'username: ""', "remote-control:", "control-enable: no"],
    ...["zone:\nname: .\nzonefile: root"],
    ...zonesOf("nsd").map(({ name }) => `zone:\nname: ${name}\nzonefile: ${name}`),
  ]);

const startKnotd = () =>
  start(["knotd", "-c"], "knot", (folder, port) => [
    `server:\n  rundir: ${folder}\n  listen: [ "::1@${port}", ${KNOT.map((ip) => `"${ip}@53"`)} ]`,
    `log:\n  - target: stderr\n    any: error\ndatabase:\n  storage: ${folder}`,
    "template:\n  - id: default\n    zonefile-load: whole\n    zonefile-sync: -1\n    journal-content: none\nzone:",
    ...zonesOf("knot").map(({ name, copy }) => {
      const isSigned = "isSigned" in copy;
      return `  - domain: ${name}\n    file: ${folder}/${name}\n    dnssec-signing: ${isSigned ? "on" : "off"}`;
    }),
  ]);

const startBind = () =>
  start(["named", "-g", "-c"], "bind", (folder, port) => [
    `options { directory "${folder}"; listen-on port 53 { ${BIND[1]}; };`,
    `listen-on-v6 port ${port} { ::1; }; listen-on-v6 port 53 { ${BIND[0]}; };`,
    "pid-file none; session-keyfile none; recursion no; }; controls {};",
    ...zonesOf("bind").map(({ name }) => `zone "${name}" { type primary; file "${name}"; };`),
  ]);

const startResolver = () =>
  startServer(["unbound", "-d", "-c"], ["good"], async (folder, port) => {
    await Bun.write(join(folder, "hints"), `. NS n1.good.\nn1.good. AAAA ${NSD[0]}`);
    return [
      ...["server:", `directory: ${folder}`, 'chroot: ""', 'username: ""', 'pidfile: ""'],
      ...["use-syslog: no", 'module-config: "iterator"', "do-not-query-localhost: no"],
      ...["access-control: ::/0 allow", `port: ${port}`, `interface: ::1@${port}`],
      ...[`interface: ${RESOLVER}@53`, "do-ip6: yes"],
      ...[`root-hints: ${folder}/hints`, "remote-control:", "control-enable: no"],
    ].join("\n");
  });

const servers: Started[] = [];
let resolver: Started;
let quiet: Bun.udp.Socket<"uint8array">;

describeWith(...missing)("zones with known faults", () => {
  beforeAll(async () => {
    const own = [...NSD, ...KNOT, ...BIND, CLOSED, SILENT, RESOLVER, "2001:db8:ffff::1"];
    for (const ip of own) {
      const isIpv6 = ip.includes(":");
      await run(["ip", "address", "add", ip, "dev", "lo", ...(isIpv6 ? ["nodad"] : [])]);
    }
    quiet = await Bun.udpSocket({ hostname: SILENT, port: 53, binaryType: "uint8array" });
    servers.push(...(await Promise.all([startNsd(), startKnotd(), startBind()])));
    resolver = await startResolver();
    // dig looks the servers up as this machine does.
    await Bun.write("/run/netns/resolv.conf", `nameserver ${RESOLVER}\n`);
    await run(["mount", "--bind", "/run/netns/resolv.conf", "/etc/resolv.conf"]);
  });

  afterAll(async () => {
    quiet?.close();
    await Promise.all([resolver, ...servers].map((server) => server?.stop()));
  });

  const options = { signal: new AbortController().signal, client: "" };
  const servicesNow = () => {
    const client = createDnsClient({ servers: [resolver.endpoint] });
    return {
      config: parseConfig({ SIXSCOPE_TARGETS_ALLOW: "2001:db8:53::/48,192.0.2.0/24" }),
      resolvers: { resolver_a: client, resolver_b: client, resolver_c: client },
      gate: new Gate(),
      querySlots: new FairSlots(4),
    };
  };
  const look = (name: string, ask: readonly [string, RecordType] = ["www", "AAAA"]) =>
    askZone({ name: `${ask[0]}.${name}`, type: ask[1], options }, name, servicesNow());

  test.each(Object.entries(ZONES))("%s", async (name, { ask, findings, others = [] }) => {
    const [{ found }, search] = await Promise.all([look(name, ask), searched(name)]);
    const short = (server: string) => server.replace(`.${name}.`, "");
    expect(
      found.findings.map(({ code, servers: of = [] }) => [code, ...of.map(short)].join(" ")),
    ).toEqual([...findings]);
    const failing = found.servers.filter(({ outcome }) => outcome !== "answer");
    expect(failing.map((row) => `${short(row.name)} ${row.ip} ${row.outcome}`)).toEqual([
      ...others,
    ]);
    expect(
      found.servers
        .flatMap(({ ip, serial }) => (serial === null ? [] : [`${ip} ${serial}`]))
        .toSorted(),
    ).toEqual(search);
  });

  test("says that the resolver, or that no server, has the answer", async () => {
    expect((await look("gone")).text).toStartWith(
      "resolver_a does not reach the zone (SERVFAIL), so the servers above were asked for its own. 2 of 2 addresses of 1 name server were asked, and 0 of 2 answer for gone.",
    );
    expect((await look("good")).text).toStartWith("6 of 6 addresses of 3 name servers were asked");
  });

  const request = (hostname: string) =>
    dns.handle(
      { hostname, type: "AAAA", resolver: "zone" },
      { ...options, address: null, allowSeconds() {} },
      servicesNow() as never,
    ) as Promise<object>;

  test("the document is the answer of the zone, in the form that the API describes", async () => {
    const document = await request("www.answers");
    expect(dns.response().parse(document)).toMatchObject({
      ...{ hostname: "www.answers", resolver: "zone" },
      records: [{ type: "AAAA", value: "2001:db8::80", ttl: 300 }],
      details: { findings: [{ code: "answers-differ" }], verdict: { code: "answer" } },
    });
  });

  // biome-ignore format: a table
  test.each([
    ["no.such.name.good", "HOSTNAME_NOT_FOUND", '"no.such.name.good" does not exist (NXDOMAIN from the zone); check the spelling. 6 of 6 addresses'],
    ["www.gone", "RESOLVER_FAILURE", "resolver_a does not reach the zone (SERVFAIL), so the servers above were asked for its own. 2 of 2 addresses"],
  ] as const)("an error has the rows too: %s", async (hostname, code, text) => {
    const error = await request(hostname).then(() => null, (thrown: unknown) => thrown);
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).toBe(code);
    expect(error.message).toStartWith(text);
    const { servers } = z.strictObject(ERRORS[code].details()).parse(error.details);
    expect(servers?.length).toBe(hostname === "www.gone" ? 2 : 6);
  });

  test("named-checkzone knows the zones that cannot be served, and the server without an address", async () => {
    const folder = await mkdtemp(join(tmpdir(), "sixscope-checkzone-"));
    const refused: string[] = [];
    for (const name of NAMES) {
      for (const copy of [ZONES[name]?.nsd, ZONES[name]?.knot, ZONES[name]?.bind]) {
        if (copy === undefined) continue;
        await Bun.write(join(folder, name), text(name, copy));
        const isSound = await succeeds(["named-checkzone", name, join(folder, name)]);
        if (!isSound) refused.push(name);
      }
    }
    await rm(folder, { recursive: true });
    expect(refused.toSorted()).toEqual(["broken", "homeless"]);
  });
});

/** Address and serial of each server that `dig +nssearch` has an SOA record from. */
async function searched(name: string): Promise<string[]> {
  const { stdout } = Bun.spawn(["dig", "+nssearch", "+tries=2", "+time=2", name], {
    env: labEnvironment,
  });
  const lines = (await new Response(stdout).text()).matchAll(
    /^SOA \S+ \S+ (?<serial>\d+) .* from server (?<ip>\S+) in /gm,
  );
  return Array.from(lines, ({ groups = {} }) => `${groups["ip"]} ${groups["serial"]}`).toSorted();
}
