/** The targets, ports and resolvers of a command that works here. */
import { expect, test } from "bun:test";
import { unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { configHere } from "../../src/cli/call-here.ts";
import { judgePolicy } from "../../src/tools/check/policy.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { awaitAddress, run } from "../lab/run.ts";

const [PROGRAM] = await sixscopeProgram();

const mayCheck = (ip: string, environment: NodeJS.ProcessEnv) =>
  judgePolicy(ip, { config: configHere(environment) }).finding === undefined;

test.each(["::1", "fe80::1", "fd00::1", "127.0.0.1", "10.0.0.1"])(
  "a user may check %s from here",
  (ip) => expect(mayCheck(ip, {})).toBe(true),
);

test.each(["fd00::1", "10.0.0.1"])("a user who chooses global targets may not check %s", (ip) => {
  expect(mayCheck(ip, { SIXSCOPE_TARGETS: "global" })).toBe(false);
});

test("a user may probe all ports from here", () => {
  expect(configHere({}).probePorts).toEqual([[1, 65_535]]);
});

test.each<[why: string, environment: NodeJS.ProcessEnv, isChosen: boolean, ...number[]]>([
  ["no other resolver unasked", {}, false, 0, 0],
  ["no other resolver by an empty setting", { SIXSCOPE_RESOLVER_B: "" }, false, 0, 0],
  ["one that the environment names", { SIXSCOPE_RESOLVER_B: "::1" }, false, 1, 0],
  ["that of targets", { SIXSCOPE_TARGET_RESOLVER: "resolver_c" }, false, 0, 4],
  ["all that a user may choose", {}, true, 4, 4],
  ["one that has another name there", { SIXSCOPE_RESOLVER_C: "::1" }, true, 4, 1],
])("there is %s", (_, environment, isChosen, ...counts) => {
  const { resolver_b, resolver_c } = configHere(environment, isChosen).resolvers;
  expect([resolver_b.length, resolver_c.length]).toEqual(counts as [number, number]);
});

/** An address of the machine on which no resolver runs, so that questions to it fail at once. */
const OWN = "2001:db8::53";

/** Packets to port 53 of `OWN`, those of TCP and UDP to anybody else, and what a command printed, in a network of its own. */
async function asked(resolvConf: string, settings: string, ...args: readonly string[]) {
  const rules = `table inet asked { chain out { type filter hook output priority 0
    oif lo ip6 daddr ${OWN} th dport 53 counter accept
    oif lo accept
    meta l4proto { tcp, udp } counter; }; }`;
  const script = `set -e
    ip link set lo up && ip -6 addr add ${OWN}/128 dev lo nodad && ${awaitAddress(OWN)}
    ip link add out0 type veth peer name far0 && ip link set far0 up && ip link set out0 up
    ip -6 addr add 2001:db8::1/64 dev out0 nodad && ip -6 route add default dev out0
    ip addr add 192.0.2.1/24 dev out0 && ip route add default dev out0
    mount -t tmpfs none /mnt && echo "${resolvConf}" > /mnt/resolv.conf
    mount --bind /mnt/resolv.conf /etc/resolv.conf
    nft '${rules}'
    env ${settings} "$@" 2>&1 || true
    nft list ruleset`;
  const command = [PROGRAM, ...args];
  const output = await run(["unshare", "--net", "--mount", "sh", "-c", script, "sh", ...command]);
  const [own, others] = Array.from(output.matchAll(/counter packets (\d+)/g), ([, n]) => Number(n));
  return { output, own: own ?? Number.NaN, others: others ?? Number.NaN };
}

const missing = labMissing ?? programMissing("nft");

const TOOLS = [
  "dns a.test",
  "dns a.test --dnssec",
  "dns a.test @resolver_a",
  "dns a.test @dns.test",
  "ping a.test",
  "trace a.test",
  "mtr a.test --report",
  "mtu a.test",
  "check a.test",
] as const;

testWith(missing).each(TOOLS)(
  "%s asks nobody if there is no resolver, and says so",
  async (tool) => {
    const { output, own, others } = await asked("search test", "", ...tool.split(" "));
    expect(output).toContain("names no resolver");
    expect([own, others]).toEqual([0, 0]);
  },
);

testWith(missing)("the names of a file are checked here, and nobody else is asked", async () => {
  const file = `${tmpdir()}/names-${process.pid}`;
  await Bun.write(file, "a.test\nb.test\n");
  const { output, own, others } = await asked("search test", "", "check", "--file", file, "--json");
  await unlink(file);
  const documents = Bun.JSONL.parse(output.slice(0, output.indexOf("table inet"))) as object[];
  expect(documents).toHaveLength(2);
  expect(output).toContain("names no resolver");
  expect([own, others]).toEqual([0, 0]);
});

testWith(missing)("the trace of an address needs no resolver", async () => {
  const { output, own, others } = await asked("", "", "trace", OWN);
  expect(output).toContain("The target replied at hop 1.");
  expect([own, others]).toEqual([0, 0]);
});

const NAMED = ["dns a.test --dnssec", "dns a.test @dns.test", "trace a.test", "check a.test"];

testWith(missing).each(NAMED)("%s asks the resolver of this machine alone", async (tool) => {
  const { own, others } = await asked(`nameserver ${OWN}`, "", ...tool.split(" "));
  expect(own).toBeGreaterThan(0);
  expect(others).toBe(0);
});

testWith(missing)("an empty setting does not mean a resolver of somebody else's", async () => {
  const { output, others } = await asked("", "SIXSCOPE_RESOLVER_A=", "dns", "a.test");
  expect(output).toContain("names no resolver");
  expect(others).toBe(0);
});

testWith(missing)("a check also asks a resolver that the environment names", async () => {
  const { own, others } = await asked("", `SIXSCOPE_RESOLVER_B=${OWN}`, "check", "a.test");
  expect(own).toBeGreaterThan(0);
  expect(others).toBe(0);
});

testWith(missing)("here finds that no resolver is configured", async () => {
  const { output, own, others } = await asked("", "", "here", "--json");
  expect(output).toContain('"name":"resolvers","status":"fail","finding":"resolvers-none"');
  expect([own, others]).toEqual([0, 0]);
});

testWith(missing)("a check has the outcomes of the steps of here", async () => {
  const { output } = await asked("", "", "check", "a.test", "--json");
  const { here } = JSON.parse(output.slice(0, output.indexOf("table inet"))).details;
  expect(here).toContainEqual({ name: "kernel", status: "ok" });
  expect(here).toContainEqual({ name: "resolvers", status: "fail" });
});

testWith(missing).each(["@resolver_b", "@all"])("%s is asked all the same", async (server) => {
  const { others } = await asked("", "", "dns", "a.test", server);
  expect(others).toBeGreaterThan(0);
});
