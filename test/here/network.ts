/** Small networks around one client, each in namespaces of its own: links, routers, hosts, and what is beyond. */
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { insideNamespace } from "../lab/namespace.ts";
import { labEnvironment, run, runIp } from "../lab/run.ts";
import { startAdvertiser } from "./advertiser.ts";
import {
  clientScript,
  interfacesOf,
  linkCommands,
  type NetworkDescription,
  nodeCommands,
  nodesOf,
  RESOLVER,
  type Router,
  routersOf,
  SILENT,
} from "./description.ts";
import { readSent, readState, readStrayPackets } from "./kernel-state.ts";
import type { Place } from "./looker.ts";
import { startResolver } from "./resolver.ts";
import { startTunnel } from "./tunnel.ts";

/** A network that stands. */
export interface Network extends AsyncDisposable {
  /** The client. */
  readonly client: Place;
  /** The command that runs `command` in the client, with its /etc/resolv.conf. */
  inside(command: readonly string[]): string[];
  /** What the client has sent over its links, and what came to the Internet for others than its resolvers. */
  traffic(): Traffic;
}

/** See `traffic` of a network. */
interface Traffic {
  readonly packets: number;
  readonly bytes: number;
  readonly strayPackets: number;
}

const SETTLE_DEADLINE_MS = 60_000;
const POLL_MS = 50;

/** What the machine may have set for all namespaces, as a new kernel has it. */
const DEFAULTS = { accept_ra: 1, forwarding: 0, disable_ipv6: 0, addr_gen_mode: 0 };

const lines = (commands: readonly string[]) => commands.map((line) => `${line}\n`).join("");

let networksStarted = 0;

/** Builds a network, and waits until it is settled. */
export async function startNetwork(description: NetworkDescription): Promise<Network> {
  const site = `here${++networksStarted}`;
  const nameOf = (node: string) => `${site}-${node}`;
  const stack = new AsyncDisposableStack();
  try {
    const folder = await mkdtemp(join(tmpdir(), "sixscope-here-"));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const resolvers = (description.resolvers ?? [RESOLVER]).map((each) => `nameserver ${each}`);
    const client = { namespace: nameOf("client"), resolvConf: lines(resolvers) };
    await Bun.write(join(folder, "resolv.conf"), client.resolvConf);
    await buildNodes(description, nameOf, stack);
    const silence = await startRouters(description, nameOf, folder, stack);
    await shellIn(nameOf("client"), clientScript(description), lines(description.ip ?? []));
    const state = () => insideNamespace(nameOf("client"), readState);
    await settle(state, description.settled);
    for (const [node, address] of description.answering ?? [["beyond", RESOLVER]]) {
      const { answersAfterMs } = description;
      const start = () => startResolver(address, answersAfterMs);
      stack.use(await insideNamespace(nameOf(node), start));
    }
    for (const [node, script] of description.later ?? []) {
      await (script === SILENT ? silence(node) : shellIn(nameOf(node), script));
    }
    await settle(state, description.settledLater);
    const mount = `mount --bind ${folder}/resolv.conf /etc/resolv.conf && exec "$@"`;
    return {
      client,
      inside: (command) => [
        ...inNamespace(client.namespace, ["sh", "-c", mount, "sh"]),
        ...command,
      ],
      traffic: () => ({
        ...insideNamespace(nameOf("client"), readSent),
        strayPackets: insideNamespace(nameOf("beyond"), readStrayPackets),
      }),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  } catch (error) {
    await stack.disposeAsync();
    throw error;
  }
}

const inNamespace = (name: string, command: readonly string[]) => [
  ...["ip", "netns", "exec", name],
  ...command,
];

const shellIn = (name: string, script: string, input = "") =>
  run(inNamespace(name, ["sh", "-ec", script]), input);

function set(name: string, device: string, settings: Readonly<Record<string, number>>): void {
  insideNamespace(name, () => {
    for (const [setting, value] of Object.entries(settings)) {
      writeFileSync(`/proc/sys/net/ipv6/conf/${device}/${setting}`, `${value}`);
    }
  });
}

/** Makes all nodes, of which the client's links are down. */
async function buildNodes(
  description: NetworkDescription,
  nameOf: (node: string) => string,
  stack: AsyncDisposableStack,
): Promise<void> {
  const { tunnel, hasIpv4, detectsDuplicates } = description;
  const names = nodesOf(description).map(nameOf);
  stack.defer(() => runIp(names.map((name) => `netns del ${name}`)));
  await runIp(linkCommands(description, nameOf));
  for (const device of ["all", "default"]) set(nameOf("switch"), device, { disable_ipv6: 1 });
  // On a busy machine, links let packets pass later than they say.
  const dad_transmits = detectsDuplicates ? 3 : 0;
  for (const device of ["default", ...interfacesOf(description)]) {
    set(nameOf("client"), device, { ...DEFAULTS, dad_transmits, router_solicitation_delay: 0 });
  }
  for (const node of ["beyond", ...routersOf(description).map(({ node }) => node)]) {
    set(nameOf(node), "all", { forwarding: 1 });
    if (!hasIpv4) continue;
    insideNamespace(nameOf(node), () => writeFileSync("/proc/sys/net/ipv4/ip_forward", "1"));
  }
  if (tunnel) stack.use(startTunnel(tunnel, [nameOf("client"), nameOf("router1")]));
  const build = ([node, commands]: ReturnType<typeof nodeCommands>[number]) =>
    run(["ip", "-n", nameOf(node), "-batch", "-"], lines(commands));
  await Promise.all(nodeCommands(description).map(build));
}

/** Starts what each router says, and returns what ends it. */
async function startRouters(
  description: NetworkDescription,
  nameOf: (node: string) => string,
  folder: string,
  stack: AsyncDisposableStack,
): Promise<(node: string) => Promise<void>> {
  const silencers = new Map<string, () => Promise<unknown>>();
  for (const router of routersOf(description)) {
    const { node, first, says } = router;
    if (first) await shellIn(nameOf(node), first);
    if (says) {
      const stop = insideNamespace(nameOf(node), () => startAdvertiser("eth0", says));
      silencers.set(node, async () => stop());
    }
    const command = await daemonOf(router, join(folder, `${node}.conf`));
    if (command === null) continue;
    const daemon = Bun.spawn(inNamespace(nameOf(node), command), {
      env: labEnvironment,
      stdio: ["ignore", "ignore", "ignore"],
    });
    silencers.set(node, () => {
      daemon.kill("SIGKILL");
      return daemon.exited;
    });
  }
  stack.defer(async () => {
    await Promise.all(Array.from(silencers.values(), (silence) => silence()));
  });
  return async (node) => void (await silencers.get(node)?.());
}

/** The command of the program that advertises a router; null if there is none. */
async function daemonOf({ radvd, dnsmasq }: Router, file: string): Promise<string[] | null> {
  if (radvd !== undefined) {
    await Bun.write(file, `interface eth0 {\nAdvSendAdvert on;\n${radvd}\n};\n`);
    return ["radvd", "-n", "-m", "stderr", "-C", file, "-p", `${file}.pid`];
  }
  if (dnsmasq === undefined) return null;
  return [
    ...["dnsmasq", "-d", "-C", "/dev/null", "-p", "0"],
    ...["--log-facility=/dev/null", "--leasefile-ro", "-i", "eth0", "--bind-dynamic"],
    ...dnsmasq,
  ];
}

/** Waits until the client's state has lines that begin so. */
async function settle(state: () => string[], wanted: readonly string[] = []): Promise<void> {
  const deadlineMs = performance.now() + SETTLE_DEADLINE_MS;
  for (;;) {
    const now = state();
    const missing = wanted.filter((line) => !now.some((each) => each.startsWith(line)));
    if (missing.length === 0) return;
    if (performance.now() > deadlineMs) {
      throw new Error(`${missing.join("; ")} is missing in ${now.join("; ")}`);
    }
    await Bun.sleep(POLL_MS);
  }
}
