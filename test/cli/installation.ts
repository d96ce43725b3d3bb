import { join } from "node:path";
import { sixscopeProgram } from "../lab/program.ts";
import { labEnvironment } from "../lab/run.ts";
import type { CommandResult } from "../lab/service.ts";

const ROOT = join(import.meta.dir, "../..");

/** Gives the script its own `/etc`, `/run` and `/var/lib`, with the files of the package and of systemd. */
const SET_UP = `
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir /var/lib/upper /var/lib/work /var/lib/bin /var/lib/source
mount -t overlay overlay -o lowerdir=/etc,upperdir=/var/lib/upper,workdir=/var/lib/work /etc
mount --bind "$SOURCE" /var/lib/source
: > /var/lib/bin/bun
mount --bind "$BUN" /var/lib/bin/bun
: > /var/lib/program
mount --bind "$PROGRAM" /var/lib/program
sed -i /^sixscope:/d /etc/passwd /etc/group
echo sixscope:x:990:990::/var/lib/sixscope:/usr/sbin/nologin >> /etc/passwd
echo sixscope:x:990: >> /etc/group
rm -rf /etc/sixscope
mkdir -p /etc/sixscope/tls
chmod 0700 /etc/sixscope/tls
install -d -o sixscope -g sixscope -m 0750 /var/lib/sixscope
: > /etc/sixscope/sixscope.env
sixscope() { env -i "PATH=/var/lib/bin:$PATH" /var/lib/program "$@"; }
as_service() {
  setpriv --reuid=sixscope --regid=sixscope --init-groups env -i "PATH=/var/lib/bin:$PATH" /var/lib/program "$@"
}
# Sets what systemctl shows of the unit.
systemd_shows() {
  mkdir -p /run/systemd/system
  printf '%s\\n' LoadState=loaded User=sixscope "$@" > /var/lib/bin/shown
  printf '#!/bin/sh\\ncat /var/lib/bin/shown\\n' > /var/lib/bin/systemctl
  chmod 0755 /var/lib/bin/systemctl
}
`;

/**
 * Runs a shell script up to its first failing command, on a simulated machine where sixscope is installed
 * as a service. systemd does not answer until `systemd_shows` sets its answer. `sixscope` runs the command
 * as root, `as_service` as the service's user.
 *
 * @param options of unshare(1) for more that the machine has of its own
 */
export async function onInstalledMachine(
  script: string,
  ...options: readonly string[]
): Promise<CommandResult> {
  const own = ["--mount", "--propagation", "private", ...options];
  const [program] = await sixscopeProgram();
  const child = Bun.spawn(["unshare", ...own, "sh", "-ec", SET_UP + script], {
    env: { ...labEnvironment, SOURCE: ROOT, BUN: process.execPath, PROGRAM: program },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}
