/**
 * Preloaded by `bun test`: runs the whole suite again inside a network namespace of its own, so that
 * no test can touch the machine's network and every test may use raw sockets, routes and TUN devices.
 *
 * An ordinary user enters through a user namespace of its own. Where the kernel forbids that, the
 * suite runs where it is, and tests that need the laboratory skip with the reason (see `lab.ts`).
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Set inside the namespace to "inside", or to the reason why there is none. */
const MARK = "SIXSCOPE_TEST_LAB";

/** A private /run/netns for `ip netns`, and a loopback that answers. */
const SETUP = [
  "mount -t tmpfs -o mode=755 tmpfs /run",
  "mkdir /run/netns",
  "ip link set lo up",
  "ip tuntap add mode tun sixscope-probe",
  "ip tuntap del mode tun sixscope-probe",
].join(" && ");

function enter(): void {
  const namespaces = ["--net", "--mount", "--propagation", "private"];
  if (process.getuid?.() !== 0) namespaces.push("--user", "--map-root-user");

  const trial = spawnSync("unshare", [...namespaces, "sh", "-c", SETUP], { encoding: "utf8" });
  if (trial.status !== 0) {
    const said = trial.error?.message ?? trial.stderr.trim().split("\n")[0];
    process.env[MARK] = `no network namespace of its own: ${said}`;
    return;
  }
  // process.argv does not hold the runner's own arguments.
  const argv = readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(1, -1);
  const script = `${SETUP} && exec "$@"`;
  const run = spawnSync(
    "unshare",
    [...namespaces, "sh", "-c", script, "sh", process.execPath, ...argv],
    { stdio: "inherit", env: { ...process.env, [MARK]: "inside" } },
  );
  process.exit(run.status ?? 1);
}

if (process.env[MARK] === undefined) enter();
