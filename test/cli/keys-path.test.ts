/** Which file `keys` takes on a machine where a service is installed, and whose it is afterwards. */
import { describe, expect } from "bun:test";
import { testWith } from "../lab/lab.ts";
import { installationMissing, onInstalledMachine } from "./installation.ts";

const machineTest = testWith(installationMissing);

const OWNER = "stat --format='%U %G %a'";

describe("root", () => {
  machineTest("makes the service's file as the service's user", async () => {
    const { stdout, stderr } = await onInstalledMachine(
      `sixscope keys add me; ${OWNER} /var/lib/sixscope/keys.json`,
    );
    expect(stderr).toBe("");
    expect(stdout).toContain("stored in /var/lib/sixscope/keys.json;");
    expect(stdout).toEndWith("sixscope sixscope 600\n");
  });

  machineTest("gives a new file in a folder of its own to the service's user", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      echo SIXSCOPE_KEYS_FILE=/etc/sixscope/keys.json > /etc/sixscope/sixscope.env
      sixscope keys add me
      sixscope keys add other
      ${OWNER} /etc/sixscope/keys.json
      as_service keys list`);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^sixscope sixscope 600\nNAME.*\nme +active.*\nother +active/m);
  });

  const unreadable: [string, string, string, string][] = [
    [
      "a restored file that is root's",
      `echo '{"version":1,"keys":[]}' > /var/lib/sixscope/keys.json; chmod 600 /var/lib/sixscope/keys.json`,
      "/var/lib/sixscope/keys.json",
      "chown sixscope: /var/lib/sixscope/keys.json",
    ],
    [
      "a folder that the service may not enter",
      "chmod 700 /etc/sixscope",
      "/etc/sixscope/keys.json",
      "let it enter /etc/sixscope",
    ],
    [
      "a relative path",
      "",
      "keys.json",
      "the service takes it from its own folder, /keys.json, and everybody else from theirs",
    ],
  ];
  machineTest.each(unreadable)(
    "is told of %s, and nothing is written",
    async (_, prepare, file, said) => {
      const { stdout, stderr } = await onInstalledMachine(`
      ${prepare}
      echo SIXSCOPE_KEYS_FILE=${file} > /etc/sixscope/sixscope.env
      sixscope keys add me || find /etc/sixscope /var/lib/sixscope -name 'keys.json*' -size +1`);
      expect(stderr).toContain(said);
      expect(stdout).toBe("");
    },
  );

  const traps: [string, string][] = [
    ["the file", "ln -s /etc/profile.d/x.sh /var/lib/sixscope/keys.json"],
    [
      "the folder",
      "ln -s /etc/profile.d /var/lib/sixscope/keys; echo SIXSCOPE_KEYS_FILE=/var/lib/sixscope/keys/keys.json > /etc/sixscope/sixscope.env",
    ],
    [
      "the file in a folder of root's that the service's group may write to",
      "install -d -g sixscope -m 0770 /etc/open; ln -s /etc/profile.d/x.sh /etc/open/keys.json; echo SIXSCOPE_KEYS_FILE=/etc/open/keys.json > /etc/sixscope/sixscope.env",
    ],
    [
      "the file in a folder whose ACL may let others write",
      "install -d -m 0775 /etc/open; ln -s /etc/profile.d/x.sh /etc/open/keys.json; echo SIXSCOPE_KEYS_FILE=/etc/open/keys.json > /etc/sixscope/sixscope.env",
    ],
  ];
  machineTest.each(traps)("is not led astray by a link in place of %s", async (_, trap) => {
    const { stdout, stderr } = await onInstalledMachine(`
      mkdir -p /etc/profile.d
      ls /etc/profile.d > /run/before
      ${trap}
      sixscope keys add me || ls /etc/profile.d | diff /run/before -`);
    expect(stderr).toContain("cannot write the keys file /etc/profile.d/");
    expect(stdout).toBe("");
  });

  machineTest("hears of a missing user, and of a missing folder", async () => {
    const { stderr } = await onInstalledMachine(`
      rm -r /var/lib/sixscope
      sixscope keys add me || true
      sed -i /^sixscope:/d /etc/passwd
      sixscope keys add me || true`);
    expect(stderr).toContain("there is no folder /var/lib/sixscope for the keys file");
    expect(stderr).toContain("there is no user sixscope");
  });
});

describe("the service's own user", () => {
  machineTest("uses the service's file, wherever it is called", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      cd /run
      as_service keys add me
      ls /run
      cd /etc/sixscope/tls
      as_service keys add other
      sixscope keys list`);
    expect(stderr).toBe("");
    expect(stdout).not.toContain("/run/keys.json");
    expect(stdout).toMatch(/^me +active.*\nother +active/m);
  });

  machineTest("is told what to do about settings that it cannot read", async () => {
    const { stderr } = await onInstalledMachine(
      "chmod 600 /etc/sixscope/sixscope.env; as_service keys list || true",
    );
    expect(stderr).toContain("/etc/sixscope/sixscope.env: EACCES");
    expect(stderr).toContain("run it as root");
  });
});

machineTest("somebody else in a folder that is not theirs is told what to do", async () => {
  const { stderr } = await onInstalledMachine(`
    cd /etc/sixscope/tls
    setpriv --reuid=65534 --clear-groups /var/lib/bin/bun /var/lib/source/src/main.ts keys add me || true`);
  expect(stderr).toContain("cannot open the folder /etc/sixscope/tls of the keys file");
  expect(stderr).toContain("run it as root, or set SIXSCOPE_KEYS_FILE");
});

describe("with systemd", () => {
  machineTest("what a drop-in sets counts, and a file counts more", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      mkdir /etc/keys
      systemd_shows 'Environment="SIXSCOPE_KEYS_FILE=/etc/keys/a b.json"'
      sixscope keys list
      echo 'SIXSCOPE_KEYS_FILE=/etc/keys/\\' > /etc/more.env
      echo 'c.json' >> /etc/more.env
      systemd_shows 'Environment="SIXSCOPE_KEYS_FILE=/etc/keys/a b.json"' \\
        'EnvironmentFiles=/etc/sixscope/sixscope.env (ignore_errors=yes)' \\
        'EnvironmentFiles=/etc/more.env (ignore_errors=no)'
      sixscope keys list`);
    expect(stderr).toBe("");
    expect(stdout).toMatch(
      /^No keys in \/etc\/keys\/a b\.json\. .*\nNo keys in \/etc\/keys\/c\.json\. /,
    );
  });

  machineTest("another user of the unit is the one that gets the file", async () => {
    const { stdout } = await onInstalledMachine(`
      echo other:x:991:991::/:/bin/false >> /etc/passwd
      systemd_shows Environment=SIXSCOPE_KEYS_FILE=/etc/sixscope/keys.json User=other
      sixscope keys add me
      stat --format='%u %g' /etc/sixscope/keys.json`);
    expect(stdout).toEndWith("991 991\n");
  });

  machineTest("no unit, no service", async () => {
    const { stdout } = await onInstalledMachine(
      "systemd_shows LoadState=not-found; cd /run; sixscope keys list",
    );
    expect(stdout).toStartWith("No keys in /run/keys.json.");
  });
});
