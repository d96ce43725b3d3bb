/** Verdicts beside those of delv, drill, unbound and kresd, on zones that BIND and knot have signed. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDnsClient, type DnsClient, type QueryOptions } from "../../../src/dns/client.ts";
import { parseTrustAnchors } from "../../../src/dns/dnssec/anchors.ts";
import type { TrustAnchor } from "../../../src/dns/dnssec/chain.ts";
import { createWork } from "../../../src/dns/dnssec/limits.ts";
import type { Reply } from "../../../src/dns/dnssec/record-set.ts";
import { validate } from "../../../src/dns/dnssec/validate.ts";
import type { RecordType } from "../../../src/dns/message/record.ts";
import type { DnsOutcome } from "../../../src/dns/outcome.ts";
import { checkDnssec } from "../../../src/tools/dns/dnssec.ts";
import { type Started, startAuthority, startServer } from "../../lab/authorities.ts";
import { programMissing, testWith } from "../../lab/lab.ts";
import { run } from "../../lab/run.ts";

const missing =
  ["named", "nsd", "dnssec-signzone", "knotd", "unbound", "kresd", "delv", "drill"]
    .map(programMissing)
    .find(Boolean) ?? null;
const testWithPeers = testWith(missing);

/** The zones that BIND signs: algorithm, options of dnssec-signzone, and which zone's DS record is above. */
const BIND: Readonly<Record<string, readonly [algorithm: string, options?: string, ds?: string]>> =
  {
    "rsa256.lab": ["RSASHA256"],
    "rsa512.lab": ["RSASHA512", "-3 aabb"],
    "p256.lab": ["ECDSAP256SHA256", "-3 -"],
    "p384.lab": ["ECDSAP384SHA384"],
    "ed25519.lab": ["ED25519", "-3 - -H 10"],
    "optout.lab": ["ECDSAP256SHA256", "-3 - -A"],
    "iterations.lab": ["ECDSAP256SHA256", "-3 - -H 120"],
    "iterations60.lab": ["ECDSAP256SHA256", "-3 - -H 60"],
    "expired.lab": ["ECDSAP256SHA256", "-s now-2592000 -e now-864000"],
    "late.lab": ["ECDSAP256SHA256", "-s now-2592000 -e now-1800"],
    "early.lab": ["ECDSAP256SHA256", "-s now+864000 -e now+2592000"],
    "other.lab": ["ECDSAP256SHA256", "", "p256.lab"],
    "island.lab": ["ECDSAP256SHA256", "", "none"],
    "ed448.lab": ["ED448"],
    "sha1.lab": ["NSEC3RSASHA1", "-3 -"],
  };
const KNOT: Readonly<Record<string, readonly [algorithm: string, nsec3: "on" | "off"]>> = {
  "knot8.lab": ["rsasha256", "off"],
  "knot13.lab": ["ecdsap256sha256", "on"],
  "knot14.lab": ["ecdsap384sha384", "off"],
  "knot15.lab": ["ed25519", "on"],
};
const PLAIN = "plain.lab";
/** A zone that the resolvers know and the zone above does not. */
const HOME = "home.lab";
const ZONES = [...Object.keys(BIND), ...Object.keys(KNOT), PLAIN];

const HEAD = "$TTL 300\n@ SOA ns.lab. admin.lab. 1 3600 600 86400 300\n@ NS ns.lab.\n";
const CONTENT = `www AAAA 2001:db8::1
alias CNAME www
out CNAME www.${PLAIN}.
*.wild AAAA 2001:db8::2
a.between AAAA 2001:db8::3
moved DNAME rsa256.lab.
`;

let folder = "";
const started: Started[] = [];
let resolver: Started;
let client: DnsClient;
let kresdClient: DnsClient;
let bindClient: DnsClient;
/** Of an authority whose zones are not signed. */
let unsignedClient: DnsClient;
let anchors: readonly TrustAnchor[] = [];

/** Signs a zone with a new key; returns the text of the zone and its DS records. */
async function sign(zone: string, text: string, algorithm: string, options = "") {
  const keys = await mkdtemp(join(folder, "keys-"));
  const size = algorithm.includes("RSA") ? ["-b", "2048"] : [];
  await run(["dnssec-keygen", "-q", "-K", keys, "-a", algorithm, ...size, "-f", "KSK", zone]);
  const [file, output] = [join(keys, "zone"), join(keys, "signed")];
  await Bun.write(file, text);
  await run([
    "dnssec-signzone",
    "-q",
    "-P",
    "-S",
    "-z",
    "-K",
    keys,
    "-d",
    keys,
    "-o",
    zone,
    "-f",
    output,
    ...options.split(" ").filter(Boolean),
    file,
  ]);
  const ds = (await readdir(keys)).find((name) => name.startsWith("dsset-")) ?? "";
  return { text: await readFile(output, "utf8"), ds: await readFile(join(keys, ds), "utf8") };
}

const startKnot = () =>
  startServer(["knotd", "-c"], Object.keys(KNOT), async (folder, port) => {
    for (const zone of Object.keys(KNOT))
      await Bun.write(join(folder, `${zone}.zone`), HEAD + CONTENT);
    const rows = (row: (zone: string, algorithm: string, nsec3: string) => string) =>
      Object.entries(KNOT).map(([zone, [algorithm, nsec3]]) => row(zone, algorithm, nsec3));
    return [
      ...[
        "server:",
        `  rundir: ${folder}`,
        `  listen: "::1@${port}"`,
        "database:",
        `  storage: ${folder}`,
      ],
      ...[
        "policy:",
        ...rows(
          (zone, algorithm, nsec3) =>
            `  - id: ${zone}\n    algorithm: ${algorithm}\n    nsec3: ${nsec3}\n    single-type-signing: on`,
        ),
      ],
      ...[
        "zone:",
        ...rows(
          (zone) =>
            `  - domain: ${zone}\n    file: ${folder}/${zone}.zone\n    zonefile-sync: -1\n    zonefile-load: whole\n    journal-content: none\n    dnssec-signing: on\n    dnssec-policy: ${zone}`,
        ),
      ],
    ].join("\n");
  });

async function dsOf(zone: string, server: Started): Promise<string> {
  const outcome = await createDnsClient({ servers: [server.endpoint] }).query(zone, "DNSKEY");
  const records = "records" in outcome ? outcome.records : [];
  const keys = records.map(({ value }) => `${zone}. 300 IN DNSKEY ${value}\n`).join("");
  return run(["dnssec-dsfromkey", "-2", "-f", "-", zone], keys);
}

beforeAll(async () => {
  if (missing !== null) return;
  folder = await mkdtemp(join(tmpdir(), `sixscope-peers-${process.pid}-`));
  const knot = await startKnot();
  started.push(knot);
  const signed = Object.fromEntries(
    await Promise.all(
      Object.entries(BIND).map(
        async ([zone, [algorithm, options]]) =>
          [zone, await sign(zone, HEAD + CONTENT, algorithm, options)] as const,
      ),
    ),
  );
  const fromKnot = await Promise.all(Object.keys(KNOT).map((zone) => dsOf(zone, knot)));
  const fromBind = Object.entries(BIND).map(
    ([zone, [, , from = zone]]) => signed[from]?.ds.replaceAll(`${from}.`, `${zone}.`) ?? "",
  );
  const delegations = ZONES.map((zone) => `${zone}. NS ns.lab.\n`);
  const top = await sign(
    "lab",
    [HEAD, "ns AAAA ::1\n", ...delegations, ...fromBind, ...fromKnot].join(""),
    "ECDSAP256SHA256",
  );
  const texts = Object.entries(signed).map(([zone, { text }]) => [zone, text] as const);
  const named = await startAuthority("named", {
    lab: top.text,
    ...{ [PLAIN]: HEAD + CONTENT, [HOME]: HEAD + CONTENT },
    ...Object.fromEntries(texts),
  });
  started.push(named);
  const anchor = top.ds.trim();
  anchors = parseTrustAnchors(anchor);
  resolver = await startServer(["unbound", "-d", "-c"], ["lab"], async (home, port) =>
    [
      ...[
        "server:",
        `directory: ${home}`,
        'chroot: ""',
        'username: ""',
        'pidfile: ""',
        "use-syslog: no",
      ],
      ...[
        "access-control: ::/0 allow",
        "do-not-query-localhost: no",
        'module-config: "validator iterator"',
      ],
      ...[`port: ${port}`, `interface: ::1@${port}`, "do-ip4: no", `trust-anchor: "${anchor}"`],
      ...['local-zone: "office.lab." static', 'local-data: "www.office.lab. AAAA 2001:db8::4"'],
      ...["remote-control:", "control-enable: no"],
      ...["lab", HOME, ...ZONES].flatMap((zone) => [
        "stub-zone:",
        `name: ${zone}`,
        `stub-addr: ::1@${(zone in KNOT ? knot : named).endpoint.port}`,
      ]),
    ].join("\n"),
  );
  started.push(resolver);
  client = createDnsClient({ servers: [resolver.endpoint] });
  // It asks unbound with CD, and validates by itself.
  const kresd = await startServer(
    ["sh", "-c", 'exec kresd -n -c "$0" "$(dirname "$0")"'],
    ["lab"],
    async (home, port) =>
      [
        `net.listen("::1", ${port})`,
        `cache.storage = "lmdb://${home}"`,
        'trust_anchors.remove(".")',
        `trust_anchors.add([[${anchor}]])`,
        `policy.add(policy.all(policy.FORWARD("::1@${resolver.endpoint.port}")))`,
      ].join("\n"),
  );
  started.push(kresd);
  kresdClient = createDnsClient({ servers: [kresd.endpoint] });
  await Bun.write(join(folder, "ds"), `${anchor}\n`);
  const [, , , tag, algorithm, digestType, ...digest] = anchor.split(/\s+/);
  const bindAnchor = `trust-anchors { lab. static-ds ${tag} ${algorithm} ${digestType} "${digest.join("")}"; };`;
  await Bun.write(join(folder, "anchors"), bindAnchor);
  const bind = await startServer(["named", "-g", "-c"], ["lab"], async (home, port) =>
    [
      `options { directory "${home}"; listen-on { none; }; listen-on-v6 port ${port} { ::1; };`,
      "pid-file none; session-keyfile none; recursion yes; dnssec-validation yes;",
      `forwarders { ::1 port ${resolver.endpoint.port}; }; forward only; };`,
      ...["controls {};", bindAnchor],
    ].join("\n"),
  );
  started.push(bind);
  bindClient = createDnsClient({ servers: [bind.endpoint] });
  const names = ["p256.lab", "ed25519.lab"];
  const unsignedZones = Object.fromEntries(names.map((zone) => [zone, HEAD + CONTENT]));
  const unsigned = await startAuthority("nsd", unsignedZones);
  started.push(unsigned);
  unsignedClient = createDnsClient({ servers: [unsigned.endpoint] });
});

afterAll(async () => {
  await Promise.all(started.map((each) => each.stop()));
  if (folder !== "") await rm(folder, { recursive: true, force: true });
});

const replyOf = (outcome: DnsOutcome): Reply | string =>
  "message" in outcome && outcome.message
    ? { rcode: outcome.rcode, message: outcome.message }
    : outcome.kind;

async function ours(client: DnsClient, name: string, type: RecordType) {
  const ask = async (asked: string, of: RecordType) =>
    replyOf(await client.query(asked, of, { dnssec: true, checkingDisabled: true }));
  const reply = await ask(name, type);
  return validate({ name: `${name}.`, type, reply, ask, anchors, work: createWork() });
}

/** The verdict of a resolver that validates. */
async function resolvers(client: DnsClient, name: string, type: RecordType): Promise<string> {
  const outcome = await client.query(name, type, { dnssec: true });
  if (outcome.kind === "failure") return "bogus";
  return "authenticated" in outcome && outcome.authenticated ? "secure" : "insecure";
}

async function delvs(name: string, type: RecordType): Promise<string> {
  const command = [
    "delv",
    "@::1",
    "-p",
    `${resolver.endpoint.port}`,
    "-a",
    join(folder, "anchors"),
    "+root=lab",
    name,
    type,
  ];
  const output = await run(["sh", "-c", '"$@" 2>&1 || true', "sh", ...command]);
  // An answer with an alias has several.
  if (/^; (negative response, )?unsigned answer/m.test(output)) return "insecure";
  if (/^; (negative response, )?fully validated/m.test(output)) return "secure";
  return /resolution failed/.test(output) ? "bogus" : output;
}

/** True if drill finds a chain of signatures to the trust anchor; it does not tell unsigned from bogus. */
async function drillChases(name: string, type: RecordType): Promise<boolean> {
  const flags = ["-p", `${resolver.endpoint.port}`, "-k", join(folder, "ds"), "-o", "CD", "-S"];
  const command = ["drill", ...flags, name, "@::1", type];
  const output = await run(["sh", "-c", '"$@" 2>&1 || true', "sh", ...command]);
  expect(output).toMatch(/^;; Chase (successful|failed\.)$/m);
  return output.includes("Chase successful");
}

const QUESTIONS = [
  ...["www AAAA", "www TXT", "nothing AAAA", "x.wild AAAA", "x.wild TXT"],
  ...["between AAAA", "out AAAA", "www.moved AAAA", "@ DS"],
] as const;

type Verdicts = readonly [ours: string, delv: string, unbound: string, kresd: string];

/** Where they differ, and why we are right. */
const DIFFER: Readonly<Record<string, readonly [readonly Verdicts[], why: string]>> = {
  "ed448.lab": [
    [["insecure", "secure", "secure", "secure"]],
    "it cannot be verified here: RFC 4035 section 5.2",
  ],
  "sha1.lab": [
    [["insecure", "secure", "secure", "secure"]],
    "RFC 9905 section 2, which is newer than they are",
  ],
  "iterations.lab": [
    [
      ["insecure", "secure", "secure", "insecure"],
      // A DNAME record, which needs no proof.
      ["secure", "secure", "secure", "insecure"],
    ],
    "delv and unbound allow 150 iterations, kresd 50, RFC 9276 section 3.2 none",
  ],
  "iterations60.lab": [[["secure", "secure", "secure", "insecure"]], "kresd allows 50 iterations"],
  "late.lab": [
    [
      ["bogus", "bogus", "secure", "bogus"],
      ["bogus", "bogus", "insecure", "bogus"],
    ],
    "unbound allows a tenth of the lifetime, RFC 4035 section 5.3.1 nothing",
  ],
  "optout.lab": [
    [["insecure", "secure", "insecure", "insecure"]],
    "delv does not look at opt-out; RFC 5155 section 9.2",
  ],
};

describe("verdicts of sixscope, delv, drill, unbound and kresd", () => {
  testWithPeers.each(ZONES)("%s", async (zone) => {
    const rows = await Promise.all(
      QUESTIONS.map(async (question) => {
        const [label = "", type] = question.split(" ") as [string, RecordType];
        const name = label === "@" ? zone : `${label}.${zone}`;
        const { verdict, text } = await ours(client, name, type);
        expect((await ours(kresdClient, name, type)).verdict).toBe(verdict);
        const verdicts = [
          verdict,
          // A process of delv takes forty times as long as BIND, which validates alike but for opt-out.
          await (/www$|nothing/.test(label)
            ? delvs(name, type)
            : resolvers(bindClient, name, type)),
          await resolvers(client, name, type),
          await resolvers(kresdClient, name, type),
        ];
        return { question, verdicts, text };
      }),
    );
    const different = rows.filter(({ verdicts }) => new Set(verdicts).size > 1);
    const [known = []] = DIFFER[zone] ?? [];
    const isKnown = ({ verdicts }: { verdicts: string[] }) =>
      known.some((each) => Bun.deepEquals(each, verdicts));
    expect(different.filter((row) => !isKnown(row))).toEqual([]);
    expect(different.length > 0).toBe(known.length > 0);
    const [verdict] = rows[0]?.verdicts ?? [];
    const isChased = await drillChases(`www.${zone}`, "AAAA");
    if (verdict !== "insecure") expect(isChased).toBe(verdict === "secure");
  });
});

/** The verdict of the service through a resolver. */
async function judged(dnsClient: DnsClient, name: string, type: RecordType) {
  const query = (flags: QueryOptions) => dnsClient.query(name, type, flags);
  const call = { signal: new AbortController().signal, client: "", name: "resolver_a" } as const;
  const asked = await query({ dnssec: true });
  const { dnssec } = await checkDnssec(asked, { ...call, dnsClient, anchors, query });
  return dnssec;
}

/** A resolver whose servers take turns. */
function turns(...clients: DnsClient[]): DnsClient {
  let turn = 0;
  return {
    query: (...question) => (clients[turn++ % clients.length] as DnsClient).query(...question),
  };
}

describe("what a resolver misses or adds is not called bogus:", () => {
  // biome-ignore format: a table
  testWithPeers.each<[string, () => DnsClient, string, RecordType, verdicts: readonly string[]]>([
    ["a zone of its own network behind unbound", () => client, `www.${HOME}`, "AAAA", ["indeterminate local"]],
    ["the same without such a record", () => client, `www.${HOME}`, "TXT", ["indeterminate local"]],
    ["the same behind BIND", () => bindClient, `www.${HOME}`, "AAAA", ["indeterminate local"]],
    // From the proof for the zone above, it can conclude that there is no such name.
    ["the same behind kresd", () => kresdClient, `www.${HOME}`, "AAAA", ["indeterminate local", "bogus missing", "secure"]],
    ["local data of unbound", () => client, "www.office.lab", "AAAA", ["indeterminate local", "indeterminate missing"]],
    ["a wildcard that kresd holds, with 60 iterations", () => kresdClient, "x.wild.iterations60.lab", "AAAA", ["secure"]],
    ["a wildcard that kresd holds", () => kresdClient, "x.wild.p256.lab", "AAAA", ["secure"]],
    ["a wildcard that BIND holds", () => bindClient, "x.wild.p256.lab", "AAAA", ["secure"]],
    ["servers of which one drops signatures", () => turns(client, unsignedClient), "www.p256.lab", "AAAA", ["secure", "indeterminate missing"]],
    ["the same for a denial", () => turns(unsignedClient, client), "www.ed25519.lab", "TXT", ["secure", "indeterminate missing"]],
  ])("%s", async (_, resolver, name, type, verdicts) => {
    const found = new Set<string>();
    const dnsClient = resolver();
    for (let run = 0; run < 10; run++) {
      const { verdict, evidence } = await judged(dnsClient, name, type);
      found.add([verdict, evidence].filter(Boolean).join(" "));
    }
    for (const each of found) expect(verdicts).toContain(each);
  });

  // biome-ignore format: a table
  testWithPeers.each<[string, string, () => DnsClient]>([
    ["unbound", "other.lab", () => client], ["BIND", "other.lab", () => bindClient], ["kresd", "other.lab", () => kresdClient],
    ["unbound", "expired.lab", () => client], ["BIND", "expired.lab", () => bindClient], ["kresd", "expired.lab", () => kresdClient],
  ])("while behind %s, %s is", async (_, zone, resolver) => {
    const { verdict, evidence, text, resolver: said } = await judged(resolver(), `www.${zone}`, "AAAA");
    expect([verdict, evidence, said.claim]).toEqual(["bogus", "signature", "bogus"]);
    expect(text).toContain("sign it again");
  });
});
