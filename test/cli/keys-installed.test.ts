/** Which file `keys` uses on a machine with an installed service, and who owns it afterwards. */
import { describe, expect } from "bun:test";
import { testWith, usersMissing } from "../lab/lab.ts";
import { onInstalledMachine } from "./installation.ts";

const machineTest = testWith(usersMissing);

const OWNER = "stat --format='%U %G %a'";

describe("root", () => {
  machineTest("creates the service's file as the service's user", async () => {
    const { stdout, stderr } = await onInstalledMachine(
      `sixscope keys add me; ${OWNER} /var/lib/sixscope/keys.json`,
    );
    expect(stderr).toBe("");
    expect(stdout).toContain("stored in /var/lib/sixscope/keys.json;");
    expect(stdout).toEndWith("sixscope sixscope 600\n");
  });

  machineTest("uses another folder that belongs to the service's user", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      install -d -o sixscope /etc/keys
      echo SIXSCOPE_KEYS_FILE=/etc/keys/keys.json > /etc/sixscope/sixscope.env
      sixscope keys add me
      sixscope keys add other
      ${OWNER} /etc/keys/keys.json
      as_service keys list`);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^sixscope sixscope 600\nNAME.*\nme +active.*\nother +active/m);
  });

  const unusable: [string, string, string, string][] = [
    [
      "a restored file that belongs to root",
      `echo '{"version":1,"keys":[]}' > /var/lib/sixscope/keys.json; chmod 600 /var/lib/sixscope/keys.json`,
      "/var/lib/sixscope/keys.json",
      "chown sixscope: /var/lib/sixscope/keys.json",
    ],
    [
      "a folder that the service cannot enter",
      "chmod 700 /etc/sixscope",
      "/etc/sixscope/keys.json",
      "cannot open the folder /etc/sixscope of the keys file: EACCES",
    ],
    [
      "a folder that the service cannot write to",
      "",
      "/etc/sixscope/keys.json",
      "let sixscope write to /etc/sixscope",
    ],
    [
      "a relative path, which starts at the service's working directory",
      "",
      "keys.json",
      "let sixscope write to /\n",
    ],
  ];
  machineTest.each(unusable)(
    "gets an error about %s, and writes nothing",
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
      "its folder",
      "ln -s /etc/profile.d /var/lib/sixscope/keys; echo SIXSCOPE_KEYS_FILE=/var/lib/sixscope/keys/keys.json > /etc/sixscope/sixscope.env",
    ],
    [
      "the file in a folder of root that the service's group can write to",
      "install -d -g sixscope -m 0770 /etc/open; ln -s /etc/profile.d/x.sh /etc/open/keys.json; echo SIXSCOPE_KEYS_FILE=/etc/open/keys.json > /etc/sixscope/sixscope.env",
    ],
    [
      "the file in a folder that an ACL may open to others",
      "install -d -m 0775 /etc/open; ln -s /etc/profile.d/x.sh /etc/open/keys.json; echo SIXSCOPE_KEYS_FILE=/etc/open/keys.json > /etc/sixscope/sixscope.env",
    ],
  ];
  machineTest.each(traps)("does not write where a link in place of %s leads", async (_, trap) => {
    const { stdout, stderr } = await onInstalledMachine(`
      mkdir -p /etc/profile.d
      ls /etc/profile.d > /run/before
      ${trap}
      sixscope keys add me || ls /etc/profile.d | diff /run/before -`);
    expect(stderr).toMatch(/cannot write the keys file \/.*: EACCES: /);
    expect(stdout).toBe("");
  });

  machineTest("gets an error about a missing folder and about a missing user", async () => {
    const { stderr } = await onInstalledMachine(`
      rm -r /var/lib/sixscope
      sixscope keys add me || true
      sed -i /^sixscope:/d /etc/passwd
      sixscope keys add me || true`);
    expect(stderr).toContain("cannot open the folder /var/lib/sixscope of the keys file: ENOENT");
    expect(stderr).toContain("the service's user sixscope does not exist");
  });
});

describe("root in a folder of another user", () => {
  const OTHER = 65534;
  const theirs = `install -d -o ${OTHER} /run/theirs /run/theirs/folder`;
  const addTo = (path: string, name = "me") =>
    `SIXSCOPE_KEYS_FILE=${path} as_root keys add ${name}`;
  const asRoot = `as_root() { /var/lib/program "$@"; }
    mkdir -p /etc/profile.d
    ls /etc/profile.d > /run/before`;

  machineTest("creates the file with its owner's rights", async () => {
    const { stdout, stderr } = await onInstalledMachine(`${asRoot}; ${theirs}
      ${addTo("/run/theirs/keys.json")}
      ${addTo("/run/theirs/keys.json", "again")}
      stat --format='%u %a' /run/theirs/keys.json`);
    expect(stderr).toBe("");
    expect(stdout).toEndWith(`${OTHER} 600\n`);
  });

  const traps: [string, string, string][] = [
    ["the file", "ln -s /etc/profile.d/x /run/theirs/keys.json", "/run/theirs/keys.json"],
    ["a folder", "ln -s /etc/profile.d /run/theirs/to", "/run/theirs/to/keys.json"],
    [
      "a folder below a link of root",
      "ln -s /etc/profile.d /run/theirs/to; ln -s /run/theirs /etc/theirs",
      "/etc/theirs/to/keys.json",
    ],
    [
      "the file in a folder of everybody",
      `install -d -m 1777 /run/all; setpriv --reuid=${OTHER} ln -s /etc/profile.d/x /run/all/keys.json`,
      "/run/all/keys.json",
    ],
  ];
  machineTest.each(traps)(
    "does not write where their link in place of %s leads",
    async (...row) => {
      const [, trap, path] = row;
      const { stdout, stderr } = await onInstalledMachine(`${asRoot}; ${theirs}
      ${trap}
      ${addTo(path)} || ls /etc/profile.d | diff /run/before -`);
      expect(stderr).toMatch(/cannot write the keys file \/etc\/profile\.d\/.*: EACCES: /);
      expect(stdout).toBe("");
    },
  );

  machineTest("changes no file of root while links race with it", async () => {
    const race = `
      const { readdirSync, rmSync, symlinkSync, writeFileSync } = require("node:fs");
      const attempt = (action) => { try { action(); } catch {} };
      process.chdir("/run/theirs");
      writeFileSync("ready", "");
      for (let round = 0; ; round++) {
        for (const name of readdirSync(".").filter((name) => name.endsWith(".tmp"))) {
          attempt(() => rmSync(name));
          attempt(() => symlinkSync("/etc/secret", name));
        }
        attempt(() => rmSync("keys.json"));
        if (round % 3 === 0) attempt(() => symlinkSync("/etc/profile.d/x", "keys.json"));
        if (round % 3 === 1) attempt(() => writeFileSync("keys.json", '{"version":1,"keys":[]}', { mode: 0o666 }));
      }`;
    const { stdout } = await onInstalledMachine(`${asRoot}; ${theirs}
      echo secret > /etc/secret; chmod 600 /etc/secret
      echo '${race.replaceAll("'", "'\\''")}' > /run/race.js
      setpriv --reuid=${OTHER} --clear-groups /var/lib/bin/bun /run/race.js &
      until test -e /run/theirs/ready; do sleep 0.01; done
      for name in 1 2 3 4 5 6 7 8 9 10 11 12; do ${addTo("/run/theirs/keys.json", "$name")} > /run/out 2>&1 || true; done
      kill $!
      ls /etc/profile.d | diff /run/before -
      cat /etc/secret
      stat --format='%u %a' /etc/secret`);
    expect(stdout).toBe("secret\n0 600\n");
  });
});

describe("the service's own user", () => {
  machineTest("uses the service's file from any folder", async () => {
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

  machineTest("gets advice about settings that it cannot read", async () => {
    const { stderr } = await onInstalledMachine(
      "chmod 600 /etc/sixscope/sixscope.env; as_service keys list || true",
    );
    expect(stderr).toContain("/etc/sixscope/sixscope.env: EACCES");
    expect(stderr).toContain("run this as root");
  });
});

describe("another user", () => {
  const asOther = "setpriv --reuid=65534 --clear-groups /var/lib/program";

  const commands: [string, string][] = [
    ["add me --limit 5", "sudo sixscope keys add me --limit 5,"],
    ["add 'a b'", "sudo sixscope keys add 'a b',"],
    ["list", "sudo sixscope keys list,"],
  ];
  machineTest.each(commands)(
    "gets the sudo command for keys %s, and creates no file",
    async (args, said) => {
      const { stdout, stderr } = await onInstalledMachine(`
      mkdir -m 0777 /run/open
      cd /run/open
      ${asOther} keys ${args} || ls /run/open /var/lib/sixscope`);
      expect(stderr).toContain(`run: ${said}`);
      expect(stdout).toBe("/run/open:\n\n/var/lib/sixscope:\n");
    },
  );

  machineTest("can name a keys file of its own", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      mkdir -m 0777 /run/open
      SIXSCOPE_KEYS_FILE=/run/open/keys.json ${asOther} keys add me
      ${OWNER} /run/open/keys.json`);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^\S+ .* 600\n$/m);
  });

  machineTest("gets advice about its own folder", async () => {
    const { stderr } = await onInstalledMachine(
      `SIXSCOPE_KEYS_FILE=/etc/sixscope/tls/keys.json ${asOther} keys add me || true`,
    );
    expect(stderr).toContain("cannot open the folder /etc/sixscope/tls of the keys file");
    expect(stderr).toMatch(/, let \w+ write to it, or set SIXSCOPE_KEYS_FILE$/m);
  });
});

describe("with systemd", () => {
  machineTest("an environment file overrides what a drop-in sets", async () => {
    const { stdout, stderr } = await onInstalledMachine(`
      mkdir /etc/keys
      systemd_shows 'Environment="SIXSCOPE_KEYS_FILE=/etc/keys/a b.json"'
      sixscope keys list
      echo 'SIXSCOPE_KEYS_FILE=/etc/keys/c.json' > /etc/more.env
      systemd_shows 'Environment="SIXSCOPE_KEYS_FILE=/etc/keys/a b.json"' \\
        'EnvironmentFiles=/etc/sixscope/sixscope.env (ignore_errors=yes)' \\
        'EnvironmentFiles=/etc/more.env (ignore_errors=no)'
      sixscope keys list`);
    expect(stderr).toBe("");
    expect(stdout).toMatch(
      /^No keys in \/etc\/keys\/a b\.json\. .*\nNo keys in \/etc\/keys\/c\.json\. /,
    );
  });

  machineTest("the file belongs to the user that the unit names", async () => {
    const { stdout } = await onInstalledMachine(`
      echo other:x:991:991::/:/bin/false >> /etc/passwd
      install -d -o 991 /etc/keys
      systemd_shows Environment=SIXSCOPE_KEYS_FILE=/etc/keys/keys.json User=other
      sixscope keys add me
      stat --format='%u %g' /etc/keys/keys.json`);
    expect(stdout).toEndWith("991 991\n");
  });

  machineTest("without a unit there is no service", async () => {
    const { stdout } = await onInstalledMachine(
      "systemd_shows LoadState=not-found; cd /run; sixscope keys list",
    );
    expect(stdout).toStartWith("No keys in /run/keys.json.");
  });
});
