/** Pings and traces on machines with an unusual configuration. */
import { expect } from "bun:test";
import { fileURLToPath } from "node:url";
import { labMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";

const labTest = testWith(labMissing);
const PROGRAM = fileURLToPath(import.meta.resolve("./odd-machine.ts"));

/** For a busy machine; answers come at once. */
const BUSY_MS = 10_000;

/** The outcomes of a ping and a trace in a network namespace that the commands have set up. */
async function probe(commands: string, what: string, target: string, timeoutMs = BUSY_MS) {
  const command = `${commands} && exec "$0" "$@"`;
  const program = [process.execPath, PROGRAM, what, target, `${timeoutMs}`];
  return JSON.parse(await run(["unshare", "--net", "sh", "-c", command, ...program]));
}

labTest("an exclusive flow label of another program costs ours, not the answers", async () => {
  const { pinged, traced, searched } = await probe("ip link set lo up", "exclusive-label", "::1");
  expect(pinged).toMatchObject({ kind: "done", results: { length: 2 }, lost: [] });
  expect(traced).toMatchObject({ kind: "done", reached: true, flowLabel: 0 });
  // One label shows one path only.
  expect(searched).toMatchObject({ reached: true, flowLabel: 0, labels: 1, complete: false });
});

labTest(
  "without a free descriptor, pings and traces go on, and a zone is not called unknown",
  async () => {
    const commands = "ip link set lo up && ulimit -n 64";
    const { pinged, traced, zone } = await probe(commands, "no-descriptor", "::1");
    expect(pinged).toMatchObject({ kind: "done", results: { length: 2 } });
    expect(traced).toMatchObject({ kind: "done", reached: true });
    expect(zone).toStartWith("if_nametoindex, perhaps at the limit of open files (LimitNOFILE): E");
  },
);

labTest("on an ordinary machine a trace has a flow label", async () => {
  const { traced, searched } = await probe("ip link set lo up", "", "::1");
  expect(traced.flowLabel).toBeGreaterThan(0);
  expect(searched).toMatchObject({ reached: true, flowLabel: 7, labels: 6, complete: true });
});

labTest("a link-local source also serves a target beyond the link", async () => {
  const commands = [
    "ip link add one type veth peer name other",
    "echo 0 > /proc/sys/net/ipv6/conf/one/accept_dad",
    "ip link set one up",
    "ip link set other up",
    "ip -6 route add 2001:db8:77::/64 dev one",
    "until ip -6 -o addr show dev one scope link -tentative | grep -q fe80; do sleep 0.05; done",
  ];
  // Nothing answers there.
  const { pinged } = await probe(commands.join(" && "), "no-trace", "2001:db8:77::2", 100);
  expect(pinged.kind).toBe("done");
  expect(pinged.lost.map(({ reason }: { reason: string }) => reason)).not.toContain("not-sent");
});
