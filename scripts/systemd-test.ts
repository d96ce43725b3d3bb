/**
 * Tests the package under a real systemd: boots a small Debian in a container with its own network,
 * installs sixscope there, and does what an administrator does.
 *
 * It needs root, and debootstrap, gnupg, systemd-container and openssl from Debian. On a machine that cannot run
 * it, it says why and ends with status 0; with CI set, a missing package is a failure.
 *
 * With --advice it makes every mistake of test/cli/advice-rows.ts instead, and follows doctor's advice; with
 * --friends it follows docs/friends.md alone.
 */
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ADVICE_ROWS, adviceScript } from "../test/cli/advice-rows.ts";
import { makeCertificate } from "../test/lab/certificate.ts";
import { run } from "../test/lab/run.ts";
import { hostTarget } from "./build/compile.ts";
import { DEBIAN_ARCHITECTURES, makeArchive, makeDebianPackage } from "./build/package.ts";
import { makeRepository } from "./build/repository.ts";
import { readSource } from "./build/source.ts";
import { makeContents } from "./build/stage.ts";
import { skip } from "./skip.ts";
import { administrator, assertHas, BASE, CAP, UNIT } from "./systemd/administrator.ts";
import { followFriends } from "./systemd/friends.ts";
import {
  boot,
  type Machine,
  makeRoot,
  SUITES,
  whyNoMachine,
  whyNoTools,
} from "./systemd/machine.ts";
import { part, row, step, until } from "./systemd/steps.ts";

const [option = "all"] = process.argv.slice(2);
const chosen = { all: [test, friends], "--advice": [followAdvice], "--friends": [friends] }[option];
if (!chosen) throw new Error("usage: bun scripts/systemd-test.ts [--advice|--friends]");
const missing = await whyNoTools();
const nats = Bun.which("nats-server");
const TESTS = join(import.meta.dir, "../test");
/** Where nginx and Caddy are in front of the service. */
const PROXIES = ["https://six.example.com:8443", "https://six.example.com"];
if (missing !== null || nats === null) {
  skip(missing ?? { reason: "nats-server is not installed", canBeInstalled: true });
}

const folder = await mkdtemp(join(tmpdir(), "sixscope-systemd-"));
/** Whoever signs the repositories; the key is made for this test. */
const SIGNER = "sixscope-test@localhost";
// For the user that apt reads it with.
await chmod(folder, 0o755);
const GPG = ["gpg", "--homedir", join(folder, "gnupg")];
try {
  const packages = await makePackages();
  await step("lintian finds nothing that the package does not explain", async () => {
    assert.equal(await run(["lintian", "--allow-root", join(folder, "first.deb")]), "");
  });
  for (const name of ["first", "second", "other"]) await makeLineage(name);
  for (const suite of SUITES) {
    const root = await makeRoot(suite);
    const obstacle = await whyNoMachine(root);
    if (obstacle !== null) skip(obstacle);
    console.log(`# ${suite}`);
    const files = {
      "/opt/test": folder,
      "/opt/bun": process.execPath,
      "/opt/nats-server": nats,
      "/opt/tests": TESTS,
    };
    for (const prove of chosen) {
      await using machine = await boot(root, files);
      await prove(machine, packages).catch(async (error) => {
        const journal = "journalctl | grep -v msg=request | tail -n 60";
        console.log(await machine.run(["sh", "-c", journal]));
        throw error;
      });
    }
  }
} finally {
  await rm(folder, { recursive: true });
}

/** Follows docs/friends.md on a machine of its own. */
async function friends(machine: Machine, { first }: Packages): Promise<void> {
  await startResolver(machine);
  await followFriends(machine, first);
}

/** The release files, by their paths inside the machine. */
interface Packages {
  readonly first: string;
  readonly second: string;
  readonly archive: string;
}

/** Builds the package, one with a higher version, a repository of each, and the archive. */
async function makePackages(): Promise<Packages> {
  const source = await readSource();
  const target = hostTarget();
  const contents = await makeContents(target, source, folder);
  const architecture = DEBIAN_ARCHITECTURES[target] ?? "amd64";
  const make = async (name: string, version: string) => {
    await makeDebianPackage(contents, architecture, { ...source, version }, join(folder, name));
    return `/opt/test/${name}`;
  };
  const archive = `sixscope-${source.version}-${target}.tar.xz`;
  await makeArchive(contents, target, source, join(folder, archive));
  const release = async (name: string, version: string) => {
    const path = await make(`${name}.deb`, version);
    const packages = [[join(folder, `${name}.deb`), architecture]] as const;
    await makeRepository(join(folder, `apt-${name}`), packages, SIGNER, GPG);
    return path;
  };
  await mkdir(join(folder, "gnupg"), { mode: 0o700 });
  await run([
    ...GPG,
    "--batch",
    "--passphrase",
    "",
    "--quick-generate-key",
    SIGNER,
    "default",
    "sign",
  ]);
  return {
    first: await release("first", source.version),
    second: await release("second", `${source.version}+1`),
    archive: `/opt/test/${archive}`,
  };
}

/** Creates a certificate in a folder like certbot's. */
async function makeLineage(name: string): Promise<void> {
  const lineage = join(folder, name);
  await mkdir(lineage);
  const [certFile, keyFile] = [join(lineage, "fullchain.pem"), join(lineage, "privkey.pem")];
  await makeCertificate({ commonName: name, days: 60, certFile, keyFile });
}

/** Starts a resolver that knows `ns.example.test` alone. */
async function startResolver(machine: Machine): Promise<void> {
  const folder = "/var/lib/knot";
  const start = "@ 60 SOA ns host 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n";
  await machine.run(["tee", `${folder}/root.zone`], start);
  await machine.run(["tee", `${folder}/example.zone`], start);
  const configuration = `
server:
  listen: [ "::1@53", "127.0.0.1@53" ]
zone:
  - domain: .
    file: ${folder}/root.zone
  - domain: example.test
    file: ${folder}/example.zone
`;
  await machine.run(["tee", "/etc/knot/knot.conf"], configuration);
  await machine.run(["systemctl", "restart", "knot"]);
}

/** Makes each mistake, follows the advice of doctor word by word, and expects that nothing is lost. */
async function followAdvice(machine: Machine, packages: Packages): Promise<void> {
  const { sh } = administrator(machine);
  const environment = "/etc/sixscope/sixscope.env";
  await machine.run(["dpkg", "--install", packages.first]);
  await sh(`ln -s /opt/nats-server /usr/local/bin/nats-server
    ip link add uplink type veth peer name far; ip link set uplink up; ip link set far up
    ip address add 2001:db8::5/64 dev uplink nodad; ip -6 route add default dev uplink
    for name in A B C; do echo "SIXSCOPE_RESOLVER_$name=[::1]:5353"; done > /root/saved.env
    echo SIXSCOPE_LOG_LEVEL=info >> /root/saved.env`);
  for (const row of ADVICE_ROWS) {
    await step(row.name, async () => {
      await sh(`install -m 0644 /root/saved.env ${environment}
        rm -rf /etc/pair /root/new /etc/sixscope/nats.nk /var/lib/sixscope/* /etc/systemd/system/${UNIT}.d
        nft flush ruleset; systemctl daemon-reload; systemctl reset-failed ${UNIT} || true`);
      const script = adviceScript(row);
      const said = await sh(`BUN=/opt/bun TESTS=/opt/tests\n(${script}\n) 2>&1 || true`);
      assert.equal(said.trim().split("\n").at(-1), "done", said);
    });
  }
}

async function test(machine: Machine, packages: Packages): Promise<void> {
  const { sh, bun, show, configure, dropIn, get, capabilities, linkGateway } =
    administrator(machine);
  let key = "";

  await step("a resolver runs inside", () => startResolver(machine));

  await step("the package installs, is enabled, active and ready", async () => {
    assert.equal(await machine.succeeds(["which", "kill"]), false);
    // Nothing else can be reached.
    await sh(
      "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; ln -s /opt/test/apt-first /opt/repository",
    );
    await sh(
      `cd /opt/test/apt-first
      ${part("#### From a repository", "install -D").replace("https://apt.example.com", "file:///opt/repository")}`,
    );
    assert.equal(
      await sh(`systemctl is-enabled ${UNIT}; systemctl is-active ${UNIT}`),
      "enabled\nactive\n",
    );
    assert.match(
      await show("StatusText"),
      /^http:\/\/127\.0\.0\.1:8080 .*; API keys: 0; ready; probes running: 0$/,
    );
  });

  await step("every link in its documentation leads to a file", documentationIsWhole);

  await step(
    "a restart applies settings; invalid ones are named, and end the restarts",
    async () => {
      await configure(["SIXSCOPE_MAX_PROBES=many"]);
      await machine.succeeds(["systemctl", "restart", UNIT]);
      assert.equal(await show("Result"), "exit-code");
      assert.equal(await show("ExecMainStatus"), "2");
      assert.match(
        await sh(`journalctl --unit=${UNIT} --output=cat`),
        /SIXSCOPE_MAX_PROBES="many": must be a whole number/,
      );
      await sh("sed -i '/^SIXSCOPE_MAX_PROBES/d' /etc/sixscope/sixscope.env");
      const resolvers = ["A", "B", "C"].map((name) => `SIXSCOPE_RESOLVER_${name}=::1,127.0.0.1`);
      await configure([...resolvers, "SIXSCOPE_RATE_ANONYMOUS=1000000", "SIXSCOPE_RATE_PREFIX=0"]);
      await machine.run(["systemctl", "reset-failed", UNIT]);
      await machine.run(["systemctl", "restart", UNIT]);
    },
  );

  await step("the service waits for an address that the machine gets late", async () => {
    await configure(["SIXSCOPE_LISTEN=[2001:db8::77]:8080"]);
    await machine.succeeds(["systemctl", "restart", UNIT]);
    // By default systemd gives up after five starts in ten seconds.
    await until(async () => Number(await show("NRestarts")) > 5);
    await sh("ip address add 2001:db8::77/128 dev lo nodad");
    await until(async () => (await show("ActiveState")) === "active");
    assert.match(await show("StatusText"), /^http:\/\/\[2001:db8::77\]:8080;/);
    await sh("sed -i '/^SIXSCOPE_LISTEN/d' /etc/sixscope/sixscope.env");
    await machine.run(["systemctl", "restart", UNIT]);
  });

  await step("only a proxy in the service's group reaches the unix socket", async () => {
    await configure(["SIXSCOPE_LISTEN=unix:/run/sixscope/socket,[::1]:8080"]);
    await machine.run(["systemctl", "restart", UNIT]);
    const ask = `fetch("http://localhost/api/v1/validate?address=::1", {
        unix: "/run/sixscope/socket",
        headers: { "X-Forwarded-Proto": "https" },
      }).then(({ status }) => process.exit(status === 200 ? 0 : 1))`;
    const asProxy = ["runuser", "--user", "www-data", "--", "/opt/bun", "-e", ask];
    assert.equal(await machine.succeeds(asProxy), false);
    await sh("usermod -aG sixscope www-data");
    await machine.run(asProxy);
    await sh("sed -i '/^SIXSCOPE_LISTEN/d' /etc/sixscope/sixscope.env");
    await machine.run(["systemctl", "restart", UNIT]);
  });

  await step("it runs as its own user, without capabilities that it does not need", async () => {
    assert.equal((await sh(`stat --format=%U /proc/${await show("MainPID")}`)).trim(), "sixscope");
    assert.deepEqual(await capabilities(), {
      held: [0],
      bounding: [CAP.netBindService | CAP.netRaw],
    });
  });

  await step(
    "a key that root creates is valid at once, and the service owns the file",
    async () => {
      assert.equal((await get("/ping/::1?count=1")).status, 401);
      key = (await machine.run(["sixscope", "keys", "add", "admin"])).split("\n")[0] ?? "";
      await until(async () => (await get("/ping/::1?count=1", key)).status === 200);
      const stat = await sh("stat --format='%U %G %a' /var/lib/sixscope/keys.json");
      assert.equal(stat, "sixscope sixscope 600\n");
      assert.match(await machine.run(["sixscope", "keys", "list"]), /^admin +active/m);
    },
  );

  await step("the endpoints answer", async () => {
    assert.deepEqual(await get("/myip"), {
      status: 200,
      body: { ip: "::1", version: 6, isIPv6: true },
    });
    assert.equal((await get("/validate?address=2001:db8::1")).status, 200);
    assertHas(await get("/dns/ns.example.test"), '"value":"::1"');
    assertHas(await get("/ping/ns.example.test?count=2", key), '"received":2');
    assertHas(await get("/traceroute/::1", key), '"reached":true');
    // The capability is gone; the socket was opened before.
    assertHas(await get("/ping/::1?count=1&protocol=tcp&port=53", key), '"state":"open"');
    assertHas(await get("/traceroute/::1?protocol=tcp&port=443", key), '"state":"closed"');
    assertHas(await get("/ping/::1?count=1&protocol=udp", key), '"state":"closed"');
  });

  await step("doctor finds no problem, then every problem that the test causes", async () => {
    await linkGateway();
    const doctor = (script = "") => sh(`${script}\nsixscope doctor 2>&1 || true`);
    const healthy = await doctor();
    assert.doesNotMatch(healthy, /^(problem|sixscope)/m);
    for (const line of [
      /^ok .* from \/etc\/sixscope\/sixscope\.env: they are valid/m,
      /^ok .* runs: it is active/m,
      /^ok .* \/var\/lib\/sixscope\/keys\.json: active keys: 1/m,
      /^ok .* resolver_c over IPv4 .* answers in/m,
    ]) {
      assert.match(healthy, line);
    }
    assert.match(
      await doctor("chown root /var/lib/sixscope/keys.json"),
      /^problem .*cannot read the keys file .*EACCES/m,
    );
    await sh("chown sixscope /var/lib/sixscope/keys.json");
    assert.equal(await machine.succeeds(["sixscope", "doctor"]), true);
  });

  await step("it looks at the machine through its sandbox, or says what that hides", async () => {
    const look = async (code: string, ...texts: readonly string[]) => {
      const found = await get("/here", key);
      for (const text of [`"code":"${code}"`, ...texts]) assertHas(found, text);
    };
    const seen = "drops none of the ICMPv6";
    await look("works", "uplink is up, with an MTU of 1500 bytes", "answered by fe80::1", seen);
    const off = "/proc/sys/net/ipv6/conf/uplink/disable_ipv6";
    await sh(`echo 1 > ${off}`);
    await look("disabled", "net.ipv6.conf.uplink.disable_ipv6 is 1");
    await sh(`echo 0 > ${off}
      ip address add 2001:db8::5/64 dev uplink nodad; ip -6 route add default via fe80::1 dev uplink`);
    await dropIn(
      "no-packets",
      "RestrictAddressFamilies=\nRestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX",
    );
    await look("works", "What the firewall drops was not seen, because this needs a raw socket");
    await sh(`rm /run/systemd/system/${UNIT}.d/no-packets.conf
      systemctl daemon-reload; systemctl restart ${UNIT}`);
  });

  await step("without root, keys and doctor say what to type", async () => {
    const asUser = (args: string) => sh(`runuser --user www-data -- sixscope ${args} 2>&1 || true`);
    assert.match(await asUser("keys add me"), /; run: sudo sixscope keys add me,/);
    const said = await asUser("doctor");
    assert.match(said, /^unknown .*; run: sudo sixscope doctor$/m);
    assert.doesNotMatch(said, /^problem/m);
  });

  await step(
    "doctor finds the line that systemd ignores, and the start says that a port is taken",
    async () => {
      const lines = Number(await sh("wc -l < /etc/sixscope/sixscope.env"));
      await configure(["export SIXSCOPE_LOG_LEVEL=debug"]);
      assert.match(
        await sh("sixscope doctor 2>&1 || true"),
        new RegExp(`^problem .*line ${lines + 1} of .*systemd ignores it`, "m"),
      );
      await sh("sed -i '/^export/d' /etc/sixscope/sixscope.env");
      assert.match(
        await sh("cd /; SIXSCOPE_KEYS_FILE=/root/keys.json sixscope 2>&1 || true"),
        /: another process uses the port /,
      );
    },
  );

  await step("a listener that refuses every other machine is a warning", async () => {
    await configure(["SIXSCOPE_LISTEN=[::]:8080"]);
    await machine.run(["systemctl", "restart", UNIT]);
    const warnings = `journalctl --unit=${UNIT} --priority=warning --output=cat`;
    await until(async () => (await sh(warnings)).includes("refuses every other machine"));
    assert.match(
      await sh("sixscope doctor 2>&1"),
      /^warning .*\[::\]:8080 refuses every other machine/m,
    );
    await sh("sed -i '/^SIXSCOPE_LISTEN/d' /etc/sixscope/sixscope.env");
    await machine.run(["systemctl", "restart", UNIT]);
  });

  await step(
    "with a damaged keys file it starts, and answers without keys until it is restored",
    async () => {
      const file = "/var/lib/sixscope/keys.json";
      await sh(`cp -p ${file} /root/keys.json; echo broken > ${file}; systemctl restart ${UNIT}`);
      assert.equal((await get("/myip")).status, 200);
      assert.equal((await get("/ping/::1?count=1", key)).status, 401);
      assert.equal(await show("NRestarts"), "0");
      await sh(`cat /root/keys.json > ${file}`);
      await until(async () => (await get("/ping/::1?count=1", key)).status === 200);
    },
  );

  await step("a reload drops no request", async () => {
    const hammer = bun(`let failed = 0, done = 0;
      const end = Date.now() + 1500;
      await Promise.all(Array.from({ length: 8 }, async () => {
        while (Date.now() < end) {
          const ok = await fetch("${BASE}/myip").then((response) => response.ok, () => false);
          if (ok) done++; else failed++;
          await Bun.sleep(5);
        }
      }));
      console.log(JSON.stringify({ failed, many: done > 100 }));`);
    const pid = await show("MainPID");
    for (let round = 0; round < 3; round++) await machine.run(["systemctl", "reload", UNIT]);
    assert.deepEqual(JSON.parse(await hammer), { failed: 0, many: true });
    assert.equal(await show("MainPID"), pid);
  });

  await step("a stop waits for a running ping", async () => {
    const ping = get("/ping/::1?count=5", key);
    await Bun.sleep(400);
    await machine.run(["systemctl", "stop", UNIT]);
    assertHas(await ping, '"received":5');
    assert.equal(await show("Result"), "success");
    await machine.run(["systemctl", "start", UNIT]);
  });

  await step(
    "a stop takes as long as SIXSCOPE_STOP_GRACE_MS allows, beyond the unit's limit",
    async () => {
      await configure(["SIXSCOPE_PING_INTERVAL_MS=500"]);
      await dropIn("stop", "TimeoutStopSec=1");
      const ping = get("/ping/::1?count=10", key);
      await Bun.sleep(400);
      await machine.run(["systemctl", "stop", UNIT]);
      assertHas(await ping, '"received":10');
      assert.equal(await show("Result"), "success");
      await sh(
        `sed -i '/^SIXSCOPE_PING/d' /etc/sixscope/sixscope.env; rm -r /run/systemd/system/${UNIT}.d`,
      );
      await sh(`systemctl daemon-reload; systemctl start ${UNIT}`);
    },
  );

  await step("it restarts after kill -9, and the keys are still valid", async () => {
    await restartsAfterSignal("KILL");
    assert.equal((await get("/ping/::1?count=1", key)).status, 200);
  });

  await step("the watchdog restarts a service whose event loop hangs", async () => {
    await dropIn("watchdog", "WatchdogSec=1");
    await restartsAfterSignal("STOP");
    const journal = await sh(`journalctl --unit=${UNIT} --output=cat`);
    assert.match(journal, /Watchdog timeout .*\n.*Killing process .* with signal SIGKILL/);
    // systemd may name a process by one of its threads.
    assert.doesNotMatch(journal.replaceAll(/Killing process .*/g, ""), /\bbun\b/i);
    await sh(`rm -r /run/systemd/system/${UNIT}.d; systemctl daemon-reload`);
  });

  await step("the journal has readable lines with priorities", async () => {
    const file = "/var/lib/sixscope/keys.json";
    await sh(`cp -p ${file} /root/keys.json; echo broken > ${file}`);
    const priorityOf = async (text: string) => {
      const lines = await sh(`journalctl --unit=${UNIT} --output=json`);
      const entries = lines
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      return entries.find(({ MESSAGE }) => String(MESSAGE).includes(text))?.PRIORITY;
    };
    await until(async () => (await priorityOf("does not parse")) === "3");
    await sh(`cat /root/keys.json > ${file}`);
    assert.equal(await priorityOf("msg=request"), "6");
  });

  await step(
    "the folder of credentials belongs to root, and the service starts without it",
    async () => {
      assert.equal(await sh("stat --format='%U %a' /etc/sixscope/tls"), "root 700\n");
      await sh("rmdir /etc/sixscope/tls");
      await machine.run(["systemctl", "restart", UNIT]);
      assert.equal(await sh("stat --format=%a /etc/sixscope/tls"), "700\n");
    },
  );

  await step("HTTPS on port 443 with a key that only root can read", async () => {
    const install = "install -m 0600 /opt/test/first";
    await sh(`${install}/fullchain.pem /etc/sixscope/tls/cert.pem`);
    await sh(`${install}/privkey.pem /etc/sixscope/tls/key.pem`);
    const credentials = `/run/credentials/${UNIT}`;
    await configure([
      "SIXSCOPE_LISTEN=[::]:443,[::1]:8080",
      `SIXSCOPE_TLS_CERT=${credentials}/tls_cert.pem`,
      `SIXSCOPE_TLS_KEY=${credentials}/tls_key.pem`,
    ]);
    await machine.run(["systemctl", "restart", UNIT]);
    assert.deepEqual(await capabilities(), {
      held: [CAP.netBindService],
      bounding: [CAP.netBindService | CAP.netRaw],
    });
    assert.equal((await get("/ping/::1?count=1", key, "https://127.0.0.1/api/v1")).status, 200);
    await sh("sed -i '/_TLS_/d' /etc/sixscope/sixscope.env");
  });

  await step("the documented certbot hook renews the certificate without a restart", async () => {
    const hook = "/etc/letsencrypt/renewal-hooks/deploy/sixscope";
    const [lineage, another] = ["six.example.com", "www.example.com"];
    await sh(`mkdir -p /etc/letsencrypt/live $(dirname ${hook})`);
    await machine.run(["tee", hook], part("### With its own certificate", "#!/bin/sh\n"));
    await sh(`chmod +x ${hook}`);
    /** Does what certbot does: changes the files, then passes the folder to the hook. */
    const renew = async (domain: string, certificate: string) => {
      const folder = `/etc/letsencrypt/live/${domain}`;
      await sh(`mkdir -p ${folder}; cp /opt/test/${certificate}/*.pem ${folder}`);
      await sh(`RENEWED_LINEAGE=${folder} ${hook}`);
    };
    const shown = async () =>
      bun(`const socket = require("node:tls").connect({ host: "::1", port: 443, rejectUnauthorized: false }, () => {
          console.log(socket.getPeerCertificate().subject.CN);
          socket.end();
        });`);
    await renew(lineage, "first");
    const [cert, key] = ["/etc/sixscope/cert.pem", "/etc/sixscope/key.pem"];
    await configure([`SIXSCOPE_TLS_CERT=${cert}`, `SIXSCOPE_TLS_KEY=${key}`]);
    await machine.run(["systemctl", "restart", UNIT]);
    assert.equal(await shown(), "first\n");
    const pid = await show("MainPID");
    const before = await sh(`sha256sum ${cert} ${key}`);
    await renew(another, "other");
    assert.equal(await sh(`sha256sum ${cert} ${key}`), before);
    await renew(lineage, "second");
    await until(async () => (await shown()) === "second\n");
    assert.equal(await show("MainPID"), pid);
    await sh(
      "sed -i '/_TLS_/d; s/^SIXSCOPE_LISTEN=.*/SIXSCOPE_LISTEN=[::1]:8080/' /etc/sixscope/sixscope.env",
    );
  });

  await step("the documented nginx and Caddy are in front of it", async () => {
    const heading = "### Behind Caddy or nginx";
    const settings = part(heading, "SIXSCOPE_TRUSTED_PROXIES").trim();
    const site = part(heading, "six.example.com {", "");
    const server = part(heading, "upstream sixscope", "nginx").replaceAll("443 ssl", "8443 ssl");
    // Caddy makes a certificate itself instead of asking for one on the Internet.
    const options = "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n}\n";
    await configure([settings]);
    await machine.run(["tee", "/etc/caddy/Caddyfile"], options + site);
    await machine.run(["tee", "/etc/nginx/conf.d/sixscope.conf"], server);
    await sh(`rm /etc/nginx/sites-enabled/default; echo ::1 six.example.com >> /etc/hosts
      systemctl restart ${UNIT} nginx caddy`);
    for (const proxy of PROXIES) {
      const asked = () => get("/myip", "", `${proxy}/api/v1`).catch(() => null);
      await until(async () => (await asked())?.status === 200);
    }
  });

  await step("an upgrade under load fails no request, and keeps settings and keys", async () => {
    const before = await sh("sha256sum /etc/sixscope/sixscope.env /var/lib/sixscope/keys.json");
    const pid = await show("MainPID");
    const load = bun(`const { existsSync, writeFileSync } = require("node:fs");
      const seen = {};
      const ask = async (proxy) => {
        const { status } = await fetch(proxy + "/api/v1/myip", { tls: { rejectUnauthorized: false } })
          .catch(({ code }) => ({ status: code }));
        const what = proxy + " " + status;
        seen[what] = (seen[what] ?? 0) + 1;
        writeFileSync("/run/asked", String(Object.values(seen).reduce((sum, count) => sum + count)));
        if (!existsSync("/run/enough")) await Bun.sleep(5).then(() => ask(proxy));
      };
      const proxies = ${JSON.stringify(PROXIES)};
      await Promise.all([...proxies, ...proxies, ...proxies, ...proxies].map(ask));
      console.log(JSON.stringify(seen));`);
    const asked = async () => Number(await sh("cat /run/asked 2> /dev/null || echo 0"));
    const isAskedAgain = async (earlier: number) => (await asked()) > earlier + 200;
    await until(() => isAskedAgain(0));
    await sh(
      "ln -sfn /opt/test/apt-second /opt/repository; apt-get update; apt-get install sixscope",
    );
    const upgraded = await asked();
    await until(() => isAskedAgain(upgraded));
    await sh("touch /run/enough");
    const seen: Record<string, number> = JSON.parse(await load);
    assert.deepEqual(Object.keys(seen).sort(), PROXIES.map((proxy) => `${proxy} 200`).sort());
    console.log(`   ${JSON.stringify(seen)}`);
    assert.equal(
      await sh("sha256sum /etc/sixscope/sixscope.env /var/lib/sixscope/keys.json"),
      before,
    );
    assert.notEqual(await show("MainPID"), pid);
    assert.equal((await get("/ping/::1?count=1", key)).status, 200);
  });

  await step("without IPv6 sockets, it logs that and serves over IPv4", async () => {
    await dropIn(
      "no-ipv6",
      "RestrictAddressFamilies=\nRestrictAddressFamilies=AF_INET AF_UNIX\nEnvironment=SIXSCOPE_LISTEN=\nEnvironmentFile=",
    );
    await machine.run(["systemctl", "restart", UNIT]);
    assert.equal(
      (await get("/validate?address=::1", "", "http://127.0.0.1:8080/api/v1")).status,
      200,
    );
    const journal = await sh(`journalctl --unit=${UNIT} --output=cat`);
    assert.match(journal, /cannot listen on \[::1\]:8080/);
    assert.match(journal, /raw sockets: none .*EAFNOSUPPORT.*; enable IPv6 in the kernel/);
    await sh(
      `rm -r /run/systemd/system/${UNIT}.d; systemctl daemon-reload; systemctl restart ${UNIT}`,
    );
  });

  await step("the documented commands make it an agent, which a service finds", async () => {
    await sh("systemd-run --quiet --unit=nats /opt/nats-server --addr ::1");
    const url = "nats://[::1]:4222";
    const commands = part("## Several places", "install -m 0640");
    await sh(`cd /root; sixscope agent --new-key ams.nk
      ${commands.replace("tls://nats.example.com:4222", url)}`);
    await until(async () => (await show("StatusText")).startsWith("ams, connected to NATS"));
    assert.match(await sh("sixscope doctor 2>&1 || true"), /^ok .*connect to NATS/m);
    const settings = `--setenv=SIXSCOPE_NATS_URL=${url} --setenv=SIXSCOPE_KEYLESS_FROM=::1`;
    await sh(`systemd-run --quiet --unit=asker ${settings} sixscope`);
    const asked = () => get("/ping/::1?count=1&from=ams").catch(() => null);
    await until(async () => (await asked())?.status === 200);
    assertHas(await get("/ping/::1?count=1&from=ams"), '"location":"ams"');
    await sh(`systemctl stop asker nats; rm -r /etc/systemd/system/${UNIT}.d
      sed -i '/_NATS_/d; /_LOCATION/d' /etc/sixscope/sixscope.env
      systemctl daemon-reload`);
    // A container's systemd may still be removing the control groups of what has just stopped (219/CGROUP).
    await until(() => machine.succeeds(["systemctl", "restart", UNIT]));
  });

  await step("systemd-analyze accepts the unit", async () => {
    const unit = `/usr/lib/systemd/system/${UNIT}`;
    assert.equal(await sh(`systemd-analyze verify ${unit} 2>&1`), "");
    await machine.run(["systemd-analyze", "security", "--offline=yes", "--threshold=16", unit]);
  });

  await step("after removal and another installation it is enabled and runs", async () => {
    await machine.run(["dpkg", "--remove", "sixscope"]);
    await machine.run(["dpkg", "--install", packages.second]);
    assert.equal(
      await sh(`systemctl is-enabled ${UNIT}; systemctl is-active ${UNIT}`),
      "enabled\nactive\n",
    );
  });

  await step("removal stops it and keeps its files; a purge removes them", async () => {
    await machine.run(["dpkg", "--remove", "sixscope"]);
    assert.equal(await machine.succeeds(["systemctl", "is-active", UNIT]), false);
    assert.equal(await sh("cat /proc/[0-9]*/comm | grep -x sixscope || true"), "");
    await sh("test -e /var/lib/sixscope/keys.json -a -e /etc/sixscope/sixscope.env");
    await machine.run(["dpkg", "--purge", "sixscope"]);
    await sh("test ! -e /var/lib/sixscope -a ! -e /etc/sixscope -a ! -e /usr/bin/sixscope");
  });

  const fromArchive = part("### From the archive", "tar ").replaceAll("linux-x64", hostTarget());
  await step("the documented commands install it from the archive", async () => {
    await sh(`cp ${packages.archive} /root; cd /root\n${fromArchive}`);
    key = (await machine.run(["sixscope", "keys", "add", "me"])).split("\n")[0] ?? "";
    await until(async () => (await get("/ping/::1?count=1", key)).status === 200);
    await documentationIsWhole();
  });

  await step("the same commands upgrade it and keep settings and keys", async () => {
    await configure(["SIXSCOPE_MAX_PROBES=7"]);
    const pid = await show("MainPID");
    await sh(`cd /root\n${fromArchive}`);
    assert.notEqual(await show("MainPID"), pid);
    await sh("grep -q ^SIXSCOPE_MAX_PROBES=7 /etc/sixscope/sixscope.env");
    assert.equal((await get("/ping/::1?count=1", key)).status, 200);
    await sh("sed -i '/^SIXSCOPE_MAX_PROBES/d' /etc/sixscope/sixscope.env");
  });

  await step("a backup can be restored, and the package replaces the archive", async () => {
    await sh("cp -r /var/lib/sixscope /root/keys");
    await sh(row("remove what the archive installed"));
    assert.equal(await machine.succeeds(["systemctl", "is-active", UNIT]), false);
    await sh("rm -r /var/lib/sixscope");
    await machine.run(["dpkg", "--install", packages.first]);
    assert.doesNotMatch(await show("FragmentPath"), /^\/etc\//);
    await sh(`cp -r /root/keys/. /var/lib/sixscope\n${row("restore")}`);
    assert.equal((await get("/ping/::1?count=1", key)).status, 200);
  });

  /** The unit's own link, and those in the pages. */
  async function documentationIsWhole(): Promise<void> {
    const shown = (await show("Documentation")).replace("file://", "");
    await machine.run(["test", "-f", shown]);
    const root = dirname(dirname(shown));
    for (const page of (await sh(`ls ${root}/*.md ${root}/docs/*.md`)).trim().split("\n")) {
      const links = (await machine.run(["cat", page])).matchAll(/\]\(([^)#:]+)[^):]*\)/g);
      for (const [, link = ""] of links)
        await machine.run(["test", "-f", join(dirname(page), link)]);
    }
  }

  /** Sends the service a signal, and waits until systemd has restarted it and it is ready. */
  async function restartsAfterSignal(signal: string): Promise<void> {
    const pid = await show("MainPID");
    await sh(`kill -${signal} ${pid}`);
    await until(
      async () =>
        !["0", pid].includes(await show("MainPID")) && (await show("ActiveState")) === "active",
    );
  }
}
