/**
 * Preloaded by `bun test`: replaces the process by itself inside a network namespace of its own, so
 * that no test can touch the machine's network and every test may use raw sockets, routes and TUN
 * devices. For all tests, or some folders, it is replaced by `scripts/test.ts`, which gives each file
 * a namespace.
 *
 * An ordinary user enters through a user namespace of its own. Where the kernel forbids that, the
 * suite runs where it is, and tests that need the laboratory skip with the reason (see `lab.ts`).
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { findProgram, LAB_VARIABLE, labEnvironment, TIMEOUT } from "./run.ts";

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

/** The command that runs another inside new namespaces, after the set-up. */
function inside(namespaces: readonly string[], command: readonly string[]): string[] {
  const script = [...SET_UP, 'exec "$@"'].join("\n");
  const kinds = ["--net", "--mount", "--propagation", "private", ...namespaces];
  return [...kinds, "sh", "-c", script, "sh", ...command];
}

/** Why namespaces of these kinds cannot be entered; null where they can. */
function whyNot(unshare: string, namespaces: readonly string[]): string | null {
  const trial = spawnSync(unshare, inside(namespaces, ["true"]), {
    encoding: "utf8",
    env: labEnvironment,
  });
  if (trial.status === 0) return null;
  const kind = namespaces.includes("--user") ? "user" : "network";
  const meaning = trial.stdout.trim() || `the kernel forbids ${kind} namespaces`;
  return `${meaning}: ${trial.stderr.trim().split("\n")[0]}`;
}

/** The command that runs another one inside, or why there is none. */
function entrance(command: readonly string[]): readonly string[] | string {
  const unshare = findProgram("unshare");
  if (unshare === null) return "unshare (util-linux) is not installed";
  if (findProgram("ip") === null) return "ip (iproute2) is not installed";
  const asRoot: readonly string[] = [];
  const asUser = ["--user", "--map-root-user"];
  const obstacles: string[] = [];
  for (const namespaces of process.getuid?.() === 0 ? [asRoot, asUser] : [asUser]) {
    const obstacle = whyNot(unshare, namespaces);
    if (obstacle === null) return [unshare, ...inside(namespaces, command)];
    obstacles.push(obstacle);
  }
  return obstacles.join("; ");
}

const ROOT = join(import.meta.dir, "../..");

/** Replaces this process; returns only to say why that is impossible. */
function enter(): string {
  if (process.platform !== "linux") return "network namespaces need Linux";
  // process.argv does not hold the runner's own arguments.
  const [verb = "test", ...rest] = readFileSync("/proc/self/cmdline", "utf8")
    .split("\0")
    .slice(1, -1);
  const isFile = rest.length === 1 && rest[0]?.endsWith(".test.ts");
  if (verb === "test" && !isFile && rest.every((each) => existsSync(each))) {
    const places = rest.map((each) => relative(ROOT, resolve(each)));
    replaceBy([process.execPath, join(ROOT, "scripts/test.ts"), ...places], {});
  }
  // A worker's connection to its runner does not survive.
  if (rest.includes("--test-worker")) return "bun test --parallel cannot enter a namespace";
  // What a file replaces must not reach the next one. An argument given by hand comes later and wins.
  const options = verb === "test" ? [TIMEOUT, "--isolate", ...rest] : rest;
  const runner = [process.execPath, verb, ...options];
  const found = entrance(runner);
  const [command, mark] = typeof found === "string" ? [runner, found] : [found, "inside"];
  replaceBy(command, { [LAB_VARIABLE]: mark });
  return mark;
}

function replaceBy(command: readonly string[], more: Readonly<Record<string, string>>): void {
  process.execve?.(command[0] ?? "", [...command], { ...labEnvironment, ...more });
}

process.env[LAB_VARIABLE] ??= enter();
