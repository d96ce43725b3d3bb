import { existsSync } from "node:fs";
import { FORWARD, KILL_INSIDE, SKIP_DUPLICATE_DETECTION } from "./kernel-chain.ts";
import { awaitAddress, awaitLink, run, runIp } from "./run.ts";

/** Real Linux routers between this process and a target, which choose among equal paths by flow label. */
export type KernelGraph = AsyncDisposable & {
  readonly target: string;
  /** The address with which a node answers. */
  addressOf(node: string): string;
  /** Runs a command inside a node to its end and returns what it printed. */
  exec(node: string, command: readonly string[], input?: string): Promise<string>;
};

const SEED = "net/ipv4/fib_multipath_hash_seed";

/** Why routers cannot hash with seeds of their own, so that all of them choose alike; null where they can. */
export const hashSeedMissing: string | null = existsSync(`/proc/sys/${SEED}`)
  ? null
  : "the kernel is older than 6.11";

let graphsStarted = 0;

/**
 * Builds a network of kernel routers, each in a network namespace of its own: link k has the prefix
 * 2001:db8:e<graph>:<k + 1>::/64 with ::1 at the near and ::2 at the far end. Every router hashes with its own
 * seed where the kernel can, so that one's choice says nothing about the next one's.
 *
 * @param next the next nodes of each node toward the target; the first node is next to this process, the last is the target
 * @param sysctls files below /proc/sys and what is written to them in every node
 */
export async function startKernelGraph(
  next: Readonly<Record<string, readonly string[]>>,
  sysctls: Readonly<Record<string, string | number>> = {},
): Promise<KernelGraph> {
  const graph = ++graphsStarted;
  const site = `2001:db8:e${graph.toString(16).padStart(3, "0")}`;
  const names = Object.keys(next);
  const device = `graph${graph}`;
  const namespace = (node: string) => `${device}-${node}`;
  const links: readonly (readonly [from: string, to: string])[] = [
    ["", names[0] as string],
    ...names.flatMap((from) => (next[from] ?? []).map((to) => [from, to] as const)),
  ];
  const near = (link: number) => `${site}:${(link + 1).toString(16)}::1`;
  const far = (link: number) => `${site}:${(link + 1).toString(16)}::2`;
  const target = `${site}:ffff::1`;
  const indexes = links.map((_, link) => link);
  const uplinksOf = (node: string) => indexes.filter((link) => links[link]?.[1] === node);
  const downlinksOf = (node: string) => indexes.filter((link) => links[link]?.[0] === node);

  const inside = (node: string, command: readonly string[]) => [
    ...["ip", "netns", "exec", namespace(node)],
    ...command,
  ];

  const configure = async (node: string) => {
    const isTarget = node === names.at(-1);
    const uplinks = uplinksOf(node);
    const downlinks = downlinksOf(node);
    const interfaces = [
      ...uplinks.map((link) => [`up${link}`, far(link)] as const),
      ...downlinks.map((link) => [node === "" ? device : `down${link}`, near(link)] as const),
    ];
    const hops = downlinks.map((link) => `nexthop via ${far(link)}`).join(" ");
    const commands = [
      "link set dev lo up",
      ...interfaces.flatMap(([name, address]) => [
        `addr add ${address}/64 dev ${name} nodad`,
        `link set dev ${name} up`,
      ]),
      isTarget ? `addr add ${target}/128 dev lo nodad` : `route add ${target}/128 ${hops}`,
      ...(uplinks[0]
        ? [`route add ${near(0)}/128 via ${near(uplinks[0])} src ${far(uplinks[0])}`]
        : []),
    ];
    const seed = hashSeedMissing === null && { [SEED]: names.indexOf(node) + 1 };
    const settings = { ...sysctls, ...seed };
    const prepare = Object.entries(settings).map(
      ([file, value]) => `echo ${value} > /proc/sys/${file}`,
    );
    const script = [
      SKIP_DUPLICATE_DETECTION,
      ...(node === "" ? [] : prepare),
      ...(node === "" || isTarget ? [] : [FORWARD]),
      "ip -batch -",
      ...interfaces.flatMap(([name, address]) => [awaitLink(name), awaitAddress(address)]),
    ].join(" && ");
    const command = ["sh", "-c", script];
    await run(node === "" ? command : inside(node, command), `${commands.join("\n")}\n`);
  };

  await runIp([
    ...names.map((node) => `netns add ${namespace(node)}`),
    ...links.flatMap(([from, to], link) => [
      `link add ${device}${from === "" ? "" : `-${link}`} type veth peer name up${link} netns ${namespace(to)}`,
      ...(from === ""
        ? []
        : [`link set ${device}-${link} netns ${namespace(from)} name down${link}`]),
    ]),
  ]);
  await Promise.all(["", ...names].map(configure));
  return {
    target,
    addressOf: (node) => (node === names.at(-1) ? target : far(uplinksOf(node)[0] as number)),
    exec: (node, command, input) => run(inside(node, command), input),
    [Symbol.asyncDispose]: async () => {
      await run(["sh", "-c", KILL_INSIDE, "sh", ...names.map(namespace)]);
      await runIp([`link del ${device}`, ...names.map((node) => `netns del ${namespace(node)}`)]);
    },
  };
}
