/** Connections of all kinds, each tried by a browser in a network of its own. */
import { afterAll, beforeAll, expect } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { SKIP_DUPLICATE_DETECTION } from "../lab/kernel-chain.ts";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { freePort } from "../lab/port.ts";
import { awaitAddress, awaitLink, findProgram, run, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { PREFIX, startTranslator } from "../lab/translator.ts";
import { startBrowser } from "./stage.ts";

const missing =
  tunMissing ?? programMissing("chromium") ?? programMissing("nft") ?? programMissing("tayga");

/** Browsers ask their users before a page from a public address may ask a local one; these are all local. */
const SERVICE = ["10.64.0.1", "2001:db8:6::1"] as const;
const VISITOR = ["10.64.0.2", "2001:db8:6::2"] as const;

/** The discard prefix, RFC 6666: DNS64 leaves a name alone that has an IPv6 address, also this one. */
const DISCARD = "100::1";

const stack = new AsyncDisposableStack();
const folder = mkdtempSync(`${tmpdir()}/sixscope-families-`);
let port = 0;
let service: Service;

beforeAll(async () => {
  if (missing !== null) return;
  stack.defer(() => rmSync(folder, { recursive: true }));
  await runIp(["netns add visitor"]);
  // An address that passes its check later would be a change of the network under way.
  await there("sh", "-c", SKIP_DUPLICATE_DETECTION);
  await runIp([
    "link add service type veth peer name visitor netns visitor",
    "link set service up",
  ]);
  await there("ip", "link", "set", "visitor", "up");
  await runIp([
    `addr add ${SERVICE[0]}/24 dev service`,
    `addr add ${SERVICE[1]}/64 dev service nodad`,
  ]);
  // The end of a namespace takes its devices away later.
  stack.defer(() => runIp(["link del service", "netns del visitor"]));
  stack.use(await startTranslator());
  port = await freePort();
  const url = (name: string) => `http://${name}.test:${port}`;
  service = stack.use(
    await startService({
      SIXSCOPE_LISTEN: `[::]:${port}`,
      SIXSCOPE_PLAIN_HTTP_FROM: "0.0.0.0/0,::/0",
      SIXSCOPE_IPV4_URL: `${url("ipv4")},${url("no-dns64")}`,
      SIXSCOPE_IPV6_URL: url("ipv6"),
    }),
  );
  // `ip netns exec` has mounts of its own, so the names are known to the browser alone.
  const program = `${folder}/browser`;
  writeFileSync(`${folder}/resolv.conf`, "");
  writeFileSync(
    program,
    `#!/bin/sh
exec ip netns exec visitor sh -c 'mount --bind ${folder}/hosts /etc/hosts &&
  mount --bind ${folder}/resolv.conf /etc/resolv.conf &&
  exec ${findProgram("chromium")} "$@"' sh "$@"`,
  );
  chmodSync(program, 0o755);
});

afterAll(() => stack.disposeAsync());

/** Runs a command at the visitor. */
const there = (...command: string[]) => run(["ip", "netns", "exec", "visitor", ...command]);

/** Gives the visitor a link with addresses and default routes of some families. */
async function connect(families: readonly (4 | 6)[]): Promise<void> {
  await there(
    "sh",
    "-c",
    "ip link set lo up; ip addr flush dev visitor; ip link set visitor down; ip link set visitor up",
  );
  await run(["sh", "-c", awaitLink("service")]);
  if (families.includes(4)) {
    await there("ip", "addr", "add", `${VISITOR[0]}/24`, "dev", "visitor");
    await there("ip", "route", "add", "default", "via", SERVICE[0]);
  }
  if (families.includes(6)) {
    await there("ip", "addr", "add", `${VISITOR[1]}/64`, "dev", "visitor", "nodad");
    await there("sh", "-c", awaitAddress(VISITOR[1]));
    await there("ip", "-6", "route", "add", "default", "via", SERVICE[1]);
  }
}

/** Sets the only rule for the packets that arrive at the visitor or at the service. */
async function filter({ here = "accept", there: other = "accept" }): Promise<void> {
  await run(["nft", "-f", "-"], nftRule("input", here));
  await run(["ip", "netns", "exec", "visitor", "nft", "-f", "-"], nftRule("input", other));
}

const TRANSLATED = `${PREFIX}${SERVICE[0]}`;

const NAMES = {
  dual: SERVICE,
  ipv4: [SERVICE[0]],
  ipv6: [SERVICE[1]],
  "no-dns64": [SERVICE[0], DISCARD],
};

/** Sets up the network of the visitor, who knows the service by names. */
async function network({
  families = [4, 6],
  rules = {},
  ...other
}: {
  families?: readonly (4 | 6)[] | undefined;
  rules?: Parameters<typeof filter>[0] | undefined;
  ipv4?: readonly string[];
}): Promise<void> {
  const lines = Object.entries({ ...NAMES, ...other }).flatMap(([name, addresses]) =>
    addresses.map((address) => `${address} ${name}.test\n`),
  );
  writeFileSync(`${folder}/hosts`, lines.join(""));
  await connect(families);
  await filter(rules);
}

const familiesTest = testWith(missing);

familiesTest.each<
  [
    what: string,
    {
      families?: readonly (4 | 6)[];
      rules?: { readonly here?: string; readonly there?: string };
      place?: string;
      ipv4?: string;
    },
    sentence: RegExp,
  ]
>([
  ["both families", {}, /^IPv6 works and is preferred\.$/],
  ["IPv4 only", { families: [4] }, /^IPv6 does not work: its connection failed\.$/],
  ["IPv6 only", { families: [6] }, /^IPv6 works; IPv4 does not\.$/],
  [
    "IPv6 that is silent",
    { rules: { there: "meta l4proto tcp drop" } },
    /^IPv6 is broken: there was no answer over it within 5 s\.$/,
  ],
  [
    "IPv6 that is refused",
    { rules: { here: `ip6 daddr ${SERVICE[1]} meta l4proto tcp reject with tcp reset` } },
    /^IPv6 does not work: its connection failed\.$/,
  ],
  [
    "a black hole at 1,300 bytes",
    { rules: { there: "ip6 length > 1260 drop" }, place: "ipv4" },
    /^IPv6 works for small answers only: a large one did not arrive\.$/,
  ],
  [
    "NAT64",
    { families: [6], ipv4: TRANSLATED },
    /^IPv6 works, and names with IPv4 only are probably reached over it too/,
  ],
])("the page says what a connection with %s is worth", async (_, set, sentence) => {
  const { families, rules, place = "dual", ipv4 } = set;
  await network({ families, rules, ...(ipv4 && { ipv4: [ipv4] }) });
  await using browser = await startBrowser(`${folder}/browser`);
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(`http://${place}.test:${port}/`);
  await page.locator(".connection .verdict").waitFor();
  expect(await page.locator(".connection .verdict").textContent()).toMatch(sentence);
  expect(complaints.filter((text) => /violat|refused to connect/i.test(text))).toEqual([]);
});

familiesTest("a service that stands still for a while is not an IPv6 that is broken", async () => {
  await network({});
  await using browser = await startBrowser(`${folder}/browser`);
  const page = await browser.newPage();
  page.on("request", async (request) => {
    if (!request.url().includes("openapi.json")) return;
    service.signal("SIGSTOP");
    // Longer than the page waits for an answer.
    await Bun.sleep(7000);
    service.signal("SIGCONT");
  });
  await page.goto(`http://dual.test:${port}/`);
  await page.locator(".connection .verdict").waitFor();
  expect(await page.locator(".connection .verdict").textContent()).toBe(
    "IPv6 works and is preferred.",
  );
});
