import { run, runIp } from "./run.ts";

/** How a chain of kernel routers is to be built. */
export type KernelChainOptions = {
  /** Routers between this process and the target. */
  readonly routers: number;
};

/** The nodes of a chain are numbered like hop limits: 1 is the first router, `routers + 1` the target. */
export type KernelChain = AsyncDisposable & {
  /** The address that answers at each hop limit, the target's last. */
  readonly hops: readonly string[];
  readonly target: string;
  /** This process's address on the way to the target. */
  readonly source: string;
  /** The interface of this process that leads to the first router. */
  readonly device: string;
  /** The command that runs `command` inside a node; for programs that the test starts itself. */
  inside(node: number, command: readonly string[]): string[];
  /**
   * Runs a command inside a node to its end and returns what it printed. A node's interfaces are
   * `uplink`, toward this process, and `downlink`, toward the target.
   *
   * @throws Error when its status is not 0
   */
  exec(node: number, command: readonly string[], input?: string): Promise<string>;
  /** Ends what still runs inside and removes every namespace, device and route. */
  stop(): Promise<void>;
};

/** Addresses number the links with one byte's worth of hexadecimal; nobody needs a longer chain. */
const MAX_ROUTERS = 60;

/** No neighbour can hold the same address, so link-local addresses may be used at once. */
const SKIP_DUPLICATE_DETECTION =
  "for file in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $file; done";

const FORWARD = "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";

let chainsStarted = 0;

/**
 * Builds a chain of real Linux routers, each in a network namespace of its own, from this process to
 * a target host: link k, from node k − 1 to node k, has the prefix 2001:db8:c<chain>:<k>::/64 with ::1
 * at the near and ::2 at the far end. Every node reaches every link.
 */
export async function startKernelChain({ routers }: KernelChainOptions): Promise<KernelChain> {
  if (!Number.isInteger(routers) || routers < 0 || routers > MAX_ROUTERS) {
    throw new RangeError(`a chain has 0 to ${MAX_ROUTERS} routers, not ${routers}`);
  }
  const chain = ++chainsStarted;
  const site = `2001:db8:c${chain.toString(16).padStart(3, "0")}`;
  const device = `chain${chain}`;
  const nodes = Array.from({ length: routers + 1 }, (_, index) => index + 1);
  const targetNode = routers + 1;

  const name = (node: number) => `${device}-${node}`;
  const link = (number: number) => `${site}:${number.toString(16)}::`;
  const near = (number: number) => `${link(number)}1`;
  const far = (number: number) => `${link(number)}2`;
  const inside = (node: number, command: readonly string[]) => [
    "ip",
    "netns",
    "exec",
    name(node),
    ...command,
  ];

  /** Addresses and routes of one node; node 0 is this process. */
  const configuration = (node: number): string[] => {
    const commands: string[] = [];
    const raise = (interfaceName: string, address: string) =>
      commands.push(
        `addr add ${address}/64 dev ${interfaceName} nodad`,
        `link set dev ${interfaceName} up`,
      );
    if (node > 0) {
      commands.push("link set lo up");
      raise("uplink", far(node));
    }
    if (node < targetNode) raise(node === 0 ? device : "downlink", near(node + 1));
    for (const number of nodes) {
      if (number < node) commands.push(`route add ${link(number)}/64 via ${near(node)}`);
      if (number > node + 1) commands.push(`route add ${link(number)}/64 via ${far(node + 1)}`);
    }
    return commands;
  };

  const tearDown = async () => {
    const alive = await Promise.all(nodes.map((node) => run(["ip", "netns", "pids", name(node)])));
    for (const pid of alive.join("").split("\n").filter(Boolean)) {
      process.kill(Number(pid), "SIGKILL");
    }
    await runIp([`link del ${device}`, ...nodes.map((node) => `netns del ${name(node)}`)]);
  };
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= tearDown();
    return stopped;
  };

  await runIp([
    ...nodes.map((node) => `netns add ${name(node)}`),
    `link add ${device} type veth peer name uplink netns ${name(1)}`,
    ...nodes
      .slice(1)
      .flatMap((node) => [
        `link add ${name(node)} type veth peer name uplink netns ${name(node)}`,
        `link set ${name(node)} netns ${name(node - 1)} name downlink`,
      ]),
  ]);
  const exec = (node: number, command: readonly string[], input?: string) =>
    run(inside(node, command), input);
  const settings = `${SKIP_DUPLICATE_DETECTION} && ${FORWARD}`;
  await Promise.all([
    run(["sh", "-c", SKIP_DUPLICATE_DETECTION]).then(() => runIp(configuration(0))),
    ...nodes.map((node) =>
      exec(
        node,
        [
          "sh",
          "-c",
          `${node === targetNode ? SKIP_DUPLICATE_DETECTION : settings} && exec ip -batch -`,
        ],
        `${configuration(node).join("\n")}\n`,
      ),
    ),
  ]);
  return {
    hops: nodes.map(far),
    target: far(targetNode),
    source: near(1),
    device,
    inside,
    exec,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
