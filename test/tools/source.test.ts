/** What verdicts say of the source address of a run. */
import { expect, test } from "bun:test";
import { isDeprecated, sourceText } from "../../src/tools/source.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { SKIP_DUPLICATE_DETECTION } from "../lab/kernel-chain.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { awaitAddress, awaitLink, run } from "../lab/run.ts";

const [PROGRAM] = await sixscopeProgram();

const TARGET = "2600::1";

const textOf = (source: string, target: string, isOld = false) =>
  sourceText(parseIpv6(source), parseIpv6(target), isOld);

test.each<[why: string, source: string, target: string, isOld: boolean, text: RegExp]>([
  ["link-local", "fe80::5", TARGET, false, /^ .* fe80::5, a link-local address, .*\.$/],
  ["unique local", "fd00::5", TARGET, false, /^ .* fd00::5, a unique local address, .*\.$/],
  ["deprecated", "2600:1::5", TARGET, true, /^ .* 2600:1::5, an address that is deprecated .*\.$/],
  ["unique local and deprecated", "fd00::5", TARGET, true, /unique local/],
])("a source that is %s is named to a global target", (_, source, target, isOld, text) => {
  expect(textOf(source, target, isOld)).toMatch(text);
});

test.each<[why: string, source: string, target: string, isOld: boolean]>([
  ["of a global source", "2600:1::5", TARGET, false],
  ["between unique local addresses", "fd00::5", "fd00::1", false],
  ["between link-local addresses", "fe80::5", "fe80::1", false],
  ["of a deprecated source to this machine", "::1", "::1", true],
  // Its translator is in the same network.
  ["of a unique local source to a translator", "fd00::5", "64:ff9b::c000:201", false],
])("nothing is said %s", (_, source, target, isOld) => {
  expect(textOf(source, target, isOld)).toBe("");
});

const TABLE = `
00000000000000000000000000000001 01 80 10 80       lo
26000001000000000000000000000005 02 40 00 a0     eth0
26000001000000000000000000000006 02 40 00 80     eth0
26000001000000000000000000000007 1a2 40 00 21   wlan0
`;

test.each<[why: string, ip: string, table: string, expected: boolean]>([
  ["permanent and deprecated", "2600:1::5", TABLE, true],
  ["permanent", "2600:1::6", TABLE, false],
  ["temporary and deprecated, of an interface above 255", "2600:1::7", TABLE, true],
  ["of no interface", "2600:1::8", TABLE, false],
  ["of a kernel without the table", "2600:1::5", "", false],
])("an address that is %s", (_, ip, table, expected) => {
  expect(isDeprecated(parseIpv6(ip), table)).toBe(expected);
});

/** The tools that send probes, with options that end them soon. */
const TOOLS = ["ping --count 1", "trace --max-hops 2", "mtr --rounds 1", "mtu"];

const [NEAR, FAR] = ["source-near", "source-far"];

/** Runs shell commands in a network namespace, up to the first that fails. */
const inside = (name: string, ...commands: readonly string[]) =>
  run(["ip", "netns", "exec", name, "sh", "-ec", commands.join("\n")]);

const addAddress = (ip: string, length: number, lifetime = "forever") =>
  `ip -6 addr add ${ip}/${length} dev wire nodad preferred_lft ${lifetime}
  ${awaitAddress(ip)}`;

/** The verdicts of all tools on a target at the far end of their only link, by their address and its preferred lifetime. */
async function verdictsFrom(address: string, lifetime: string): Promise<readonly string[]> {
  await run(["sh", "-ec", `ip netns add ${NEAR}; ip netns add ${FAR}`]);
  try {
    const up = "ip link set wire up";
    const out = "ip -6 route add default dev wire";
    const pair = `ip link add wire type veth peer name wire netns ${FAR}`;
    await inside(NEAR, pair, SKIP_DUPLICATE_DETECTION, up);
    await inside(FAR, SKIP_DUPLICATE_DETECTION, up, addAddress(TARGET, 128), out);
    await inside(NEAR, awaitLink("wire"), out);
    if (address !== "") await inside(NEAR, addAddress(address, 64, lifetime));
    const texts = TOOLS.map(async (tool) => {
      const command = `exec ${PROGRAM} ${tool} ${TARGET} --json`;
      return JSON.parse(await inside(NEAR, command)).details.verdict.text;
    });
    return await Promise.all(texts);
  } finally {
    await run(["sh", "-c", `ip netns delete ${NEAR}; ip netns delete ${FAR}`]);
  }
}

testWith(labMissing).each<[kind: string, address: string, lifetime: string, text: RegExp | null]>([
  ["unique local", "fd00::5", "forever", / The packets left from fd00::5, a unique local address,/],
  [
    "deprecated",
    "2600:1::5",
    "0",
    / The packets left from 2600:1::5, an address that is deprecated/,
  ],
  ["link-local", "", "", / The packets left from fe80:\S+, a link-local address,/],
  ["healthy global", "2600:1::5", "forever", null],
])("the verdicts of all tools from a %s source", async (_, address, lifetime, text) => {
  for (const verdict of await verdictsFrom(address, lifetime)) {
    expect(verdict).toMatch(/^The target (replied|answers packets of 1500 bytes)/);
    if (text === null) expect(verdict).not.toContain("left from");
    else expect(verdict).toMatch(text);
  }
});
