/** The way into a network namespace of its own, for the runner of all tests and for who runs a file by hand. */
import { spawnSync } from "node:child_process";
import { findProgram, labEnvironment } from "./run.ts";

/** The steps inside before the tests, and the meaning of a failure of each. */
const STEPS = [
  // `ip netns` keeps its names here; hiding all of /run is the way where the directory is missing.
  [
    "[ -d /run/netns ] && mount -t tmpfs tmpfs /run/netns || " +
      "{ mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/netns; }",
    "the kernel forbids mounting in a namespace",
  ],
  // A service that is installed on this machine must not change what the tests find.
  [
    "for folder in /etc/sixscope /run/systemd; do " +
      "[ ! -d $folder ] || mount -t tmpfs tmpfs $folder || exit 1; done",
    "the kernel forbids mounting in a namespace",
  ],
  ["ip link set lo up", "the loopback of a network namespace cannot be set up"],
  ["ip netns add probe && ip netns del probe", "network namespaces cannot be named"],
  // Older kernels count the errors of all namespaces together, so files that run at once would share one limit.
  ["echo > /proc/sys/net/ipv6/icmp/ratemask", "/proc/sys/net cannot be written"],
] as const;

const SET_UP = STEPS.map(([command, reason]) => `{ ${command}; } || { echo "${reason}"; exit 1; }`);

/** The arguments of unshare(1) that run what follows them inside new namespaces, after the set-up. */
function inside(namespaces: readonly string[]): string[] {
  const script = [...SET_UP, 'exec "$@"'].join("\n");
  const kinds = ["--net", "--mount", "--propagation", "private", ...namespaces];
  return [...kinds, "sh", "-c", script, "sh"];
}

/** Why namespaces of these kinds cannot be entered; null where they can. */
function whyNot(unshare: string, namespaces: readonly string[]): string | null {
  const trial = spawnSync(unshare, [...inside(namespaces), "true"], {
    encoding: "utf8",
    env: labEnvironment,
  });
  if (trial.status === 0) return null;
  const kind = namespaces.includes("--user") ? "user" : "network";
  const meaning = trial.stdout.trim() || `the kernel forbids ${kind} namespaces`;
  return `${meaning}: ${trial.stderr.trim().split("\n")[0]}`;
}

/** The command that runs the one behind it inside, or why there is none. */
function entrance(): readonly string[] | string {
  if (process.platform !== "linux") return "network namespaces need Linux";
  const unshare = findProgram("unshare");
  if (unshare === null) return "unshare (util-linux) is not installed";
  if (findProgram("ip") === null) return "ip (iproute2) is not installed";
  const asRoot: readonly string[] = [];
  const asUser = ["--user", "--map-root-user"];
  const obstacles: string[] = [];
  for (const namespaces of process.getuid?.() === 0 ? [asRoot, asUser] : [asUser]) {
    const obstacle = whyNot(unshare, namespaces);
    if (obstacle === null) return [unshare, ...inside(namespaces)];
    obstacles.push(obstacle);
  }
  return obstacles.join("; ");
}

/** What goes before a command that is to run inside, and the mark for its environment. */
export function entry(): readonly [before: readonly string[], mark: string] {
  const found = entrance();
  return typeof found === "string" ? [[], found] : [found, "inside"];
}
