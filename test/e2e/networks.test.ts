/** Whose network an address belongs to, through the whole service. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { encodeMmdb } from "../lab/mmdb.ts";
import { type Service, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

let folder: string;
let asnFile: string;
let networksFile: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-networks-"));
  asnFile = join(folder, "asn.mmdb");
  networksFile = join(folder, "networks.csv");
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Writes a file as geoipupdate does: beside the old one, and then in its place. */
function replace(path: string, content: string | Buffer): void {
  writeFileSync(`${path}.new`, content);
  renameSync(`${path}.new`, path);
}

const example = (asn: number) =>
  encodeMmdb([
    ["2001:db8::/32", { autonomous_system_number: asn, autonomous_system_organization: "Example" }],
    ["127.0.0.0/8", { autonomous_system_number: asn, autonomous_system_organization: "Loop" }],
  ]);

async function get({ urls, key }: Service, path: string, at = 0) {
  const response = await fetch(`${urls[at]}${path}`, { headers: { "X-API-Key": key } });
  return (await response.json()) as { [name: string]: unknown; details?: { network?: unknown } };
}

const settings = () => ({
  SIXSCOPE_ASN_FILE: asnFile,
  SIXSCOPE_NETWORKS_FILE: networksFile,
  SIXSCOPE_RESOLVER_A: "[::1]:9",
});

labTest("clients, addresses and hops have the network that the files say", async () => {
  await using chain = await startKernelChain({ routers: 2, limitsErrors: false });
  const [first = "", second = ""] = chain.hops;
  replace(asnFile, example(64496));
  replace(networksFile, `prefix,name\n::1,This machine\n${first},Our router\n`);
  await using service = await startService(settings());
  const asn = (name: string, prefix: string) => ({ asn: 64496, name, prefix, source: "asn-file" });
  const own = (name: string, prefix: string) => ({
    ...{ asn: null, name, prefix },
    source: "networks-file",
  });
  expect(await get(service, "/myip")).toEqual({
    ...{ ip: "127.0.0.1", version: 4, isIPv6: false },
    details: { network: asn("Loop", "127.0.0.0/8") },
  });
  expect((await get(service, "/myip", 1)).details).toEqual({
    network: own("This machine", "::1/128"),
  });
  const validated = await get(service, "/validate?address=2001:db8::1");
  expect(validated.details?.network).toEqual(asn("Example", "2001:db8::/32"));
  const hop = (number: number, ip: string, network: object) => ({
    ...{ hop: number, ip, hostname: null, rtt: expect.any(Number) },
    details: { network },
  });
  expect(await get(service, `/traceroute/${chain.target}`)).toMatchObject({
    hops: [
      hop(1, first, own("Our router", `${first}/128`)),
      hop(2, second, asn("Example", "2001:db8::/32")),
      hop(3, chain.target, asn("Example", "2001:db8::/32")),
    ],
  });
  for (const path of [`/mtr/${chain.target}?rounds=1`, `/mtu/${chain.target}`]) {
    expect(await get(service, path)).toMatchObject({
      hops: [
        { ip: first, details: { network: own("Our router", `${first}/128`) } },
        { ip: second, details: { network: asn("Example", "2001:db8::/32") } },
        { ip: chain.target, details: { network: asn("Example", "2001:db8::/32") } },
      ],
    });
  }
});

labTest("answers without a network are the same as without files", async () => {
  replace(asnFile, encodeMmdb([["2001:db8::/32", { asn: 1 }]]));
  replace(networksFile, "");
  const { SIXSCOPE_RESOLVER_A } = settings();
  await using service = await startService(settings());
  await using plain = await startService({ SIXSCOPE_RESOLVER_A });
  for (const path of ["/myip", "/validate?address=2001:db9::1", "/traceroute/::1?names=no"]) {
    const withFiles = JSON.stringify(await get(service, path));
    expect(withFiles).not.toContain("network");
    if (path.startsWith("/trace")) continue;
    expect(withFiles).toBe(JSON.stringify(await get(plain, path)));
  }
});

test("files are taken up when they change, and a broken one neither counts nor prevents the start", async () => {
  replace(asnFile, "not a database");
  rmSync(networksFile, { force: true });
  await using service = await startService(settings());
  await service.says(`cannot read the ASN file ${asnFile}`);
  await service.says(`cannot use the networks file ${networksFile}: ENOENT`);
  const network = async () =>
    (await get(service, "/validate?address=2001:db8::1")).details?.network as
      | { asn: number | null }
      | undefined;
  expect(await network()).toBeUndefined();
  replace(asnFile, example(64496));
  await service.says("networks read again");
  expect(await network()).toMatchObject({ asn: 64496 });
  replace(asnFile, example(64497).subarray(0, 500));
  await service.says("the old networks stay in use");
  expect(await network()).toMatchObject({ asn: 64496 });
  replace(networksFile, "2001:db8::/32,ours");
  await service.says('content="networks: 1"');
  expect(await network()).toMatchObject({ asn: null, name: "ours" });
  const reads = () => service.stderr().split('content="networks: 1"').length;
  const before = reads();
  service.signal("SIGHUP");
  while (reads() === before) await Bun.sleep(10);
});
