/** docs/friends.md, command by command. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../build/source.ts";
import { administrator } from "./administrator.ts";
import type { Machine } from "./machine.ts";
import { step, until } from "./steps.ts";

const page = await Bun.file(join(ROOT, "docs/friends.md")).text();

const SITE = "https://six.example.com";

/** Where the name leads in the test. */
const ADDRESSES = ["192.0.2.80", "2001:db8:80::80"] as const;

/**
 * Follows the page on a fresh machine that has Caddy, curl and a resolver, and expects what it promises.
 *
 * @param packageFile the package inside the machine
 */
export async function followFriends(machine: Machine, packageFile: string): Promise<void> {
  const { sh, get, configure, linkGateway } = administrator(machine);
  const commands = [...page.matchAll(/```sh\n([^`]+)```/g)].map(([, block = ""]) => block);
  /** Runs the next commands of the page. */
  const next = (beginning: string, change = (block: string) => block): Promise<string> => {
    const block = commands.shift() ?? "";
    assert.ok(block.startsWith(beginning), block);
    // apt asks whether to continue.
    return machine.run(["sh", "-ec", `cd /root\n${change(block)}`], "y\n");
  };
  const ask = (path: string, key?: string) => get(path, key, `${SITE}/api/v1`);

  // test/e2e/package.test.ts builds it.
  assert.match(commands.shift() ?? "", /^npx .* run build --deb\n$/);
  await step("friends: the package installs beside Caddy", async () => {
    await sh(`rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*
      cp ${packageFile} /root/sixscope_1_amd64.deb
      for address in ${ADDRESSES.join(" ")}; do
        ip address add $address dev lo
        echo $address six.example.com >> /etc/hosts
      done
      echo ::1 localhost >> /etc/hosts
      systemctl stop nginx; systemctl restart caddy`);
    await next("apt-get update");
    await linkGateway();
    // Nothing else answers in this network.
    await configure(["A", "B", "C"].map((name) => `SIXSCOPE_RESOLVER_${name}=::1,127.0.0.1`));
  });
  await step("friends: settings and Caddy", async () => {
    await next("cat >> /etc/sixscope/sixscope.env");
    // Caddy makes a certificate itself instead of asking for one on the Internet.
    const options = "{\n\tlocal_certs\n\tskip_install_trust\n}\n";
    await next("cat > /etc/caddy/Caddyfile", (block) =>
      block.replace("six.example.com {", `${options}$&`),
    );
    await until(async () => (await ask("/myip").catch(() => null))?.status === 200);
  });
  await step("friends: a key for each probes global addresses until it is revoked", async () => {
    const printed = await next("sixscope keys add anna");
    const keys = printed.match(/^sx_\w+$/gm) ?? [];
    assert.match(printed, /^anna +active .*\nben +active .*100/m);
    assert.equal(keys.length, 2);
    const [anna, ben] = keys as [string, string];
    const ping = async (target: string, key?: string) => {
      const { status, body } = await ask(`/ping/${target}?count=1`, key);
      return status === 200 ? 200 : (body as { error: { code: string } }).error.code;
    };
    await until(async () => (await ping("2001:4860::1", ben)) === 200);
    assert.deepEqual(
      [await ping("2001:4860::1", anna), await ping("fd00::1", anna), await ping("::1")],
      [200, "TARGET_NOT_ALLOWED", "UNAUTHORIZED"],
    );
    const here = await ask("/dns/ns.example.test");
    assert.equal(here.status, 200);
    await next("sixscope keys revoke ben");
    await until(async () => (await ping("2001:4860::1", ben)) === "UNAUTHORIZED");
    assert.equal(await ping("2001:4860::1", anna), 200);
  });
  await step("friends: doctor and the clients see that it works", async () => {
    const said = await next("sixscope doctor");
    assert.doesNotMatch(said, /^problem/m);
    const [, sentence = ""] = /```text\n(without a key, .*)\n```/.exec(page) ?? [];
    assert.ok(sentence !== "" && said.includes(sentence), said);
    const authority = "/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt";
    const shown = await next("curl", (block) => `export CURL_CA_BUNDLE=${authority}\n${block}`);
    assert.equal(shown, `${ADDRESSES.join("\n")}\n`);
    assert.deepEqual(commands, []);
  });
}
