/**
 * The advice of doctor: each row makes a mistake on a machine with an installed service, lets doctor find
 * it, runs the command that doctor prints word by word, and expects that nothing is found any more and
 * nothing is lost. scripts/systemd-test.ts --advice does what needs a whole machine.
 */
import { expect, test } from "bun:test";
import { programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { ADVICE_ROWS, adviceScript } from "./advice-rows.ts";
import { onInstalledMachine } from "./installation.ts";

const adviceTest = testWith(
  usersMissing,
  ...["openssl", "nft", "redis-server", "nats-server"].map(programMissing),
);

/** The network, and processes that end with the script. */
const OWN = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** The part of systemd that doctor and its advice use: it runs the service with the file of the package. */
const SYSTEMD = `
  cat > /var/lib/bin/systemctl <<'END'
#!/bin/sh
case "$1" in
show)
  state=failed
  test -e /run/pid && kill -0 "$(cat /run/pid)" 2> /dev/null && state=active
  printf '%s\\n' LoadState=loaded User=sixscope "ActiveState=$state" \\
    'EnvironmentFiles=/etc/sixscope/sixscope.env (ignore_errors=yes)' ;;
stop | restart)
  test -e /run/pid && kill "$(cat /run/pid)" 2> /dev/null
  while test -e /run/pid && kill -0 "$(cat /run/pid)" 2> /dev/null; do sleep 0.02; done
  test "$1" = stop && exit
  : > /run/log
  # As systemd reads the file: lines that are not assignments are ignored.
  { sed -n "s/^ *\\([A-Za-z_][A-Za-z0-9_]*\\)=\\(.*\\)/export \\1='\\2'/p" /etc/sixscope/sixscope.env
    echo 'exec "$@"'; } > /run/start
  # As systemd; Bun would read the bunfig.toml of the folder, with which a process ends with this script.
  cd /
  env -i "PATH=/var/lib/bin:$PATH" NOTIFY_SOCKET=/run/notify STATE_DIRECTORY=/var/lib/sixscope \\
    RUNTIME_DIRECTORY=/run/sixscope \\
    setpriv --reuid=sixscope --regid=sixscope --init-groups --ambient-caps=+net_raw --inh-caps=+net_raw \\
    sh /run/start /var/lib/program serve < /dev/null > /run/log 2>&1 &
  echo $! > /run/pid
  # It is ready or has ended.
  until grep -q '^next' /run/log || ! kill -0 "$(cat /run/pid)" 2> /dev/null; do sleep 0.02; done ;;
esac
END
  chmod 0755 /var/lib/bin/systemctl
  mkdir -p /run/systemd/system
  install -d -o sixscope -g sixscope -m 0750 /run/sixscope
  export PATH=/var/lib/bin:$PATH
  unset SIXSCOPE_KEYS_FILE
  cat > /var/lib/bin/sixscope <<'END'
#!/bin/sh
exec env -i "PATH=$PATH" /var/lib/program "$@"
END
  chmod 0755 /var/lib/bin/sixscope
  unset -f sixscope
  ip link set lo up
  ip link add uplink type veth peer name far
  ip link set uplink up; ip link set far up
  ip address add 2001:db8::5/64 dev uplink nodad
  ip -6 route add default dev uplink
  for name in A B C; do echo "SIXSCOPE_RESOLVER_$name=[::1]:5353"; done > /etc/sixscope/sixscope.env
  echo SIXSCOPE_LOG_LEVEL=info >> /etc/sixscope/sixscope.env
  BUN=/var/lib/bin/bun TESTS=/var/lib/source/test
`;

/** All of them take minutes: bun scripts/systemd-test.ts --advice. */
const rows = ADVICE_ROWS.filter(
  ({ isQuick, isWhole }) => isQuick || (process.env["ALL_ADVICE"] && !isWhole),
);

adviceTest.each(rows.map((row) => [row.name, row] as const))("%s", async (_, row) => {
  const { stdout, stderr } = await onInstalledMachine(SYSTEMD + adviceScript(row), ...OWN);
  expect({ stdout: stdout.trim(), stderr }).toEqual({ stdout: "done", stderr: "" });
});

test("every row says another thing", () => {
  expect(new Set(ADVICE_ROWS.map(({ name }) => name)).size).toBe(ADVICE_ROWS.length);
});
