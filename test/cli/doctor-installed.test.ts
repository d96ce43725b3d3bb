/** The findings of doctor about an installed service and its files. */
import { expect } from "bun:test";
import { programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { onInstalledMachine } from "./installation.ts";

const machineTest = testWith(usersMissing);
const tlsTest = testWith(usersMissing, programMissing("openssl"));

/** Functions to create a certificate and to write settings; resolvers that refuse connections answer at once. */
const SET_UP = `
certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 60 -subj /CN=x \\
    -keyout "$1/key.pem" -out "$1/cert.pem" 2> /dev/null
}
settings() {
  for name in A B C; do echo "SIXSCOPE_RESOLVER_$name=[::1]:9"; done > /etc/sixscope/sixscope.env
  for line in "$@"; do echo "$line" >> /etc/sixscope/sixscope.env; done
}
doctor() { sixscope doctor 2>&1 || true; }
settings
`;

async function doctor(script: string): Promise<string> {
  const { stdout, stderr } = await onInstalledMachine(`${SET_UP}${script}\ndoctor`);
  expect(stderr).toBe("");
  return stdout;
}

const COPIED = `settings SIXSCOPE_TLS_CERT=/run/credentials/sixscope.service/tls_cert.pem \\
  SIXSCOPE_TLS_KEY=/run/credentials/sixscope.service/tls_key.pem`;

tlsTest("before the start it checks the files that systemd will copy", async () => {
  const said = await doctor(`certificate /etc/sixscope/tls\n${COPIED}`);
  expect(said).toMatch(
    /^ok .*\/etc\/sixscope\/tls\/cert\.pem and key \/etc\/sixscope\/tls\/key\.pem: they match/m,
  );
});

tlsTest("after the start it checks the files that systemd has copied", async () => {
  const said = await doctor(`
    mkdir -p /run/credentials/sixscope.service
    certificate /run/credentials/sixscope.service
    cd /run/credentials/sixscope.service
    for name in cert key; do mv $name.pem tls_$name.pem; done
    chown -R sixscope .
    cd /
    ${COPIED}`);
  expect(said).toMatch(
    /^ok .*\/run\/credentials\/sixscope\.service\/tls_cert\.pem .*: they match/m,
  );
});

tlsTest("it reads files with every group of the service's user", async () => {
  const said = await doctor(`
    echo certificates:x:992:sixscope >> /etc/group
    install -d -g certificates -m 0750 /etc/certificates
    certificate /etc/certificates
    chgrp certificates /etc/certificates/*.pem
    chmod 0640 /etc/certificates/*.pem
    settings SIXSCOPE_TLS_CERT=/etc/certificates/cert.pem SIXSCOPE_TLS_KEY=/etc/certificates/key.pem`);
  expect(said).toMatch(/^ok .*\/etc\/certificates\/cert\.pem .*: they match/m);
});

tlsTest(
  "a key that every user can read is a warning, unless its folder keeps them out",
  async () => {
    const open = `
    install -d -g sixscope -m 0755 /etc/certificates
    certificate /etc/certificates
    chmod 0644 /etc/certificates/*.pem
    settings SIXSCOPE_TLS_CERT=/etc/certificates/cert.pem SIXSCOPE_TLS_KEY=/etc/certificates/key.pem`;
    expect(await doctor(open)).toMatch(
      /^warning .* \/etc\/certificates\/key\.pem: every user .*; make its group sixscope and its mode 640, /m,
    );
    expect(await doctor(`${open}; chmod 0750 /etc/certificates`)).not.toContain("every user");
  },
);

machineTest("a restored keys file that belongs to root is a problem with advice", async () => {
  const said = await doctor(`
    echo '{"version":1,"keys":[]}' > /var/lib/sixscope/keys.json
    chmod 600 /var/lib/sixscope/keys.json
    systemd_shows ActiveState=failed \\
      'EnvironmentFiles=/etc/sixscope/sixscope.env (ignore_errors=yes)'`);
  expect(said).toMatch(/^problem .*; run: chown sixscope: \/var\/lib\/sixscope\/keys\.json$/m);
  expect(said).toMatch(
    /^problem .*it is failed; .*, systemctl reset-failed sixscope first; run: systemctl restart sixscope$/m,
  );
});

machineTest("lines of the settings that systemd ignores are problems", async () => {
  const said = await doctor("settings 'export SIXSCOPE_LISTEN=[::1]:80' SIXSCOPE_LOG_LEVEL=debug");
  expect(said).toMatch(
    /^problem .* line 4 of \/etc\/sixscope\/sixscope\.env: systemd ignores it, or reads it otherwise; write NAME=value/m,
  );
  expect(said.match(/systemd ignores/g)).toHaveLength(1);
});

machineTest(
  "another user is told what doctor cannot see, and doctor reports no problem with it",
  async () => {
    const said = await doctor(`
    systemd_shows ActiveState=active
    settings SIXSCOPE_LISTEN=nowhere
    sixscope() {
      setpriv --reuid=65534 --clear-groups env -i "PATH=/var/lib/bin:$PATH" \\
        /var/lib/program "$@"
    }`);
    expect(said).toMatch(
      /^unknown {2}see the settings, keys and certificate of sixscope\.service: .*; run: sudo sixscope doctor$/m,
    );
    expect(said).toMatch(/^ok .* runs: it is active$/m);
    expect(said).toMatch(/ see whether the link is up: /);
    expect(said).not.toMatch(/raw ICMPv6 socket|keys file|SIXSCOPE_LISTEN|resolver/);
  },
);

machineTest("a relative keys file is in the service's working directory", async () => {
  const said = await doctor("settings SIXSCOPE_KEYS_FILE=keys.json; cd /etc");
  expect(said).toMatch(/^warning .*read the keys file \/keys\.json: it does not exist/m);
});

machineTest("settings in the unit itself are read and named", async () => {
  const said = await doctor("systemd_shows Environment=SIXSCOPE_LISTEN=nowhere ActiveState=active");
  expect(said).toMatch(
    /^problem .*from Environment= of sixscope\.service: SIXSCOPE_LISTEN="nowhere": /m,
  );
});

machineTest("in a container without IPv6, it says which network to use", async () => {
  const script = `${SET_UP}\nip link set lo up\n: > /run/.containerenv\ndoctor`;
  const { stdout } = await onInstalledMachine(script, "--net");
  expect(stdout).toMatch(/^problem .* no interface but loopback.*--network=host/m);
});
