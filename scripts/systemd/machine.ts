import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { run, succeeds } from "../../test/lab/run.ts";
import type { Missing } from "../skip.ts";

/** Debian 12 and 13. */
export const SUITES = ["bookworm", "trixie"] as const;

type Suite = (typeof SUITES)[number];

/** The packages that the service and its tests need; in Debian 13 also those for the image. */
const packagesOf = (suite: Suite): readonly string[] => [
  ...[
    "caddy",
    "curl",
    "iproute2",
    "knot",
    "libcap2-bin",
    "nftables",
    "nginx",
    "openssl",
    "redis-server",
    "systemd",
    "systemd-sysv",
    "xz-utils",
  ],
  ...(suite === "trixie" ? ["crun", "podman"] : []),
];

const NSPAWN = [
  "systemd-nspawn",
  ...["--quiet", "--register=no", "--keep-unit", "--private-network", "--volatile=overlay"],
];

/** Kept between runs; each list of packages has its own, because another checkout may use another list. */
const CACHE = join(process.env["XDG_CACHE_HOME"] ?? "/var/cache", "sixscope-systemd-test");

const BOOT_DEADLINE_MS = 60_000;
const POLL_MS = 50;

/** A running Debian with its own systemd and network. */
export interface Machine extends AsyncDisposable {
  /** Runs a command inside and returns its output; throws if its status is not 0. */
  run(command: readonly string[], input?: string): Promise<string>;
  /** True if a command inside ends with status 0. */
  succeeds(command: readonly string[]): Promise<boolean>;
}

/** Why this machine cannot create another one, or null. */
export async function whyNoTools(): Promise<Missing | null> {
  for (const program of [
    "debootstrap",
    "systemd-nspawn",
    "dpkg-deb",
    "gpg",
    "lintian",
    "nsenter",
    "openssl",
    "xz",
  ]) {
    if (Bun.which(program) === null) {
      return { reason: `${program} is not installed`, canBeInstalled: true };
    }
  }
  return process.getuid?.() === 0 ? null : { reason: "root is needed", canBeInstalled: false };
}

/** Why a machine that was created does not run here, or null. */
export async function whyNoMachine(root: string): Promise<Missing | null> {
  return await run([...NSPAWN, `--directory=${root}`, "true"]).then(
    () => null,
    (error) => ({ reason: `no container runs here: ${error.message}`, canBeInstalled: false }),
  );
}

/** Creates a small Debian, or uses that of an earlier run, and returns its folder. */
export async function makeRoot(suite: Suite): Promise<string> {
  const packages = `--include=${packagesOf(suite).join(",")}`;
  const folder = join(CACHE, `${suite}-${Bun.hash(packages).toString(16)}`);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  await run([
    "debootstrap",
    "--variant=minbase",
    packages,
    suite,
    unfinished,
    ...(await mirror(suite)),
  ]);
  await rename(unfinished, folder);
  return folder;
}

/** The mirror of this machine if it is a Debian of the same suite; otherwise debootstrap uses its default. */
async function mirror(suite: Suite): Promise<string[]> {
  if (Bun.which("apt-get") === null) return [];
  const targets = await run(["apt-get", "indextargets", "--format", "$(RELEASE) $(SITE)"]);
  const sites = targets.split("\n").map((line) => line.split(" "));
  return sites.find(([release]) => release === suite)?.slice(1, 2) ?? [];
}

/**
 * Boots a machine; its files are lost when it stops.
 *
 * @param files visible inside, read-only: path inside → path here
 */
export async function boot(
  root: string,
  files: Readonly<Record<string, string>>,
): Promise<Machine> {
  const shown = Object.entries(files).map(([inside, here]) => `--bind-ro=${here}:${inside}`);
  const nspawn = Bun.spawn(
    [
      ...NSPAWN,
      ...["--boot", "--console=read-only", "--machine=sixscope-test"],
      ...shown,
      `--directory=${root}`,
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  );
  const output = Promise.all([
    new Response(nspawn.stdout).text(),
    new Response(nspawn.stderr).text(),
  ]);
  const stop = async () => {
    // When the first process ends, the kernel ends all others; nspawn itself would leave them running.
    const init = initOf(nspawn.pid);
    if (init === null) nspawn.kill("SIGKILL");
    else process.kill(init, "SIGKILL");
    await nspawn.exited;
  };
  const deadlineMs = performance.now() + BOOT_DEADLINE_MS;
  for (;;) {
    const init = initOf(nspawn.pid);
    if (init !== null) {
      const enter = ["nsenter", `--target=${init}`, "--all", "--wdns=/", "env", "-i"];
      const inside = (command: readonly string[]) => [
        ...enter,
        "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ...command,
      ];
      // A degraded machine is good enough: a container forbids some units.
      const state = ["sh", "-c", "systemctl is-system-running | grep -E 'running|degraded'"];
      if (await succeeds(inside(state))) {
        return {
          run: (command, input) => run(inside(command), input),
          succeeds: (command) => succeeds(inside(command)),
          [Symbol.asyncDispose]: stop,
        };
      }
    }
    if (nspawn.exitCode !== null || performance.now() > deadlineMs) {
      await stop();
      throw new Error(`the machine does not boot:\n${(await output).join("")}`);
    }
    await Bun.sleep(POLL_MS);
  }
}

/** The pid, on this machine, of the container's first process, or null. */
function initOf(nspawn: number): number | null {
  const queue = [nspawn];
  for (const parent of queue) {
    for (const task of tasksOf(parent)) {
      const children = read(`/proc/${parent}/task/${task}/children`).split(" ").filter(Boolean);
      for (const child of children.map(Number)) {
        const isFirst = /^NSpid:.*\t1$/m.test(read(`/proc/${child}/status`));
        if (isFirst && read(`/proc/${child}/comm`).trim() === "systemd") return child;
        queue.push(child);
      }
    }
  }
  return null;
}

function tasksOf(pid: number): string[] {
  const folder = `/proc/${pid}/task`;
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Null if the process has ended. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
