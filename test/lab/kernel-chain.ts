import { awaitAddress, awaitLink, run, runIp } from "./run.ts";

/** How a chain of kernel routers is to be built. */
export type KernelChainOptions = {
  /** Routers between this process and the target. */
  readonly routers: number;
  /** False if they answer with as many errors as they have to: a busy machine asks for many at once. Default true. */
  readonly limitsErrors?: boolean;
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
  /** Sets the MTU of the link that ends at a node, at both its ends or at the far one only. */
  setMtu(node: number, bytes: number, ends?: "both" | "far"): Promise<void>;
  /** Ends what still runs inside and removes every namespace, device and route. */
  stop(): Promise<void>;
};

/** Replies set out with a hop limit of 64. */
const MAX_ROUTERS = 60;

/** No neighbour can hold the same address, so link-local addresses may be used at once. */
export const SKIP_DUPLICATE_DETECTION =
  "for file in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $file; done";

/** Makes a node a router. */
export const FORWARD = "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";

const UNLIMITED = "echo 0 > /proc/sys/net/ipv6/icmp/ratelimit";

/** Ends every process of the namespaces that are its arguments. */
export const KILL_INSIDE =
  'for name; do ip netns pids "$name"; done | xargs -r kill -KILL 2>/dev/null || true';

let chainsStarted = 0;

/**
 * Builds a chain of real Linux routers, each in a network namespace of its own, from this process to
 * a target host: link k, from node k − 1 to node k, has the prefix 2001:db8:c<chain>:<k>::/64 with ::1
 * at the near and ::2 at the far end. Every node reaches every link.
 */
export async function startKernelChain({
  routers,
  limitsErrors = true,
}: KernelChainOptions): Promise<KernelChain> {
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

  /** The interfaces of a node, node 0 being this process, with their addresses. */
  const interfacesOf = (node: number) => [
    ...(node > 0 ? [{ interfaceName: "uplink", address: far(node) }] : []),
    ...(node < targetNode
      ? [{ interfaceName: node === 0 ? device : "downlink", address: near(node + 1) }]
      : []),
  ];

  const routesOf = (node: number) =>
    nodes
      .filter((number) => number !== node && number !== node + 1)
      .map((number) => `${link(number)}/64 via ${number < node ? near(node) : far(node + 1)}`);

  const configure = async (node: number) => {
    const interfaces = interfacesOf(node);
    const isRouter = node > 0 && node < targetNode;
    const script = [
      SKIP_DUPLICATE_DETECTION,
      ...(isRouter ? [FORWARD] : []),
      ...(limitsErrors || node === 0 ? [] : [UNLIMITED]),
      "ip -batch -",
      ...interfaces.flatMap(({ interfaceName, address }) => [
        awaitLink(interfaceName),
        awaitAddress(address),
      ]),
    ].join(" && ");
    const commands = [
      "link set dev lo up",
      ...interfaces.flatMap(({ interfaceName, address }) => [
        `addr add ${address}/64 dev ${interfaceName} nodad`,
        `link set dev ${interfaceName} up`,
      ]),
      ...routesOf(node).map((route) => `route add ${route}`),
    ];
    const command = ["sh", "-c", script];
    await run(node === 0 ? command : inside(node, command), `${commands.join("\n")}\n`);
  };

  const setMtu = async (node: number, bytes: number, ends = "both") => {
    const command = (interfaceName: string) => [
      "ip",
      "link",
      "set",
      interfaceName,
      "mtu",
      `${bytes}`,
    ];
    await run(inside(node, command("uplink")));
    if (ends === "far") return;
    await run(node === 1 ? command(device) : inside(node - 1, command("downlink")));
  };

  const tearDown = async () => {
    await run(["sh", "-c", KILL_INSIDE, "sh", ...nodes.map(name)]);
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
  await Promise.all([0, ...nodes].map(configure));
  return {
    hops: nodes.map(far),
    target: far(targetNode),
    source: near(1),
    device,
    inside,
    exec: (node, command, input) => run(inside(node, command), input),
    setMtu,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
