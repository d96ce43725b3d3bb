/**
 * Tests the container image: loads it into podman in a small Debian with its own network, and runs it as
 * docs/operations.md says, under systemd with the quadlet file.
 *
 * It needs what `systemd-test.ts` needs, and skips as that does.
 */
import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostTarget } from "./build/compile.ts";
import { makeImage } from "./build/image.ts";
import { DEBIAN_ARCHITECTURES } from "./build/package.ts";
import { readSource } from "./build/source.ts";
import { inProject, makeContents } from "./build/stage.ts";
import { skip } from "./skip.ts";
import { administrator, assertHas, CAP, UNIT } from "./systemd/administrator.ts";
import { boot, type Machine, makeRoot, whyNoMachine, whyNoTools } from "./systemd/machine.ts";
import { part, step, until } from "./systemd/steps.ts";

const toolsMissing = await whyNoTools();
if (toolsMissing !== null) skip(toolsMissing);
const root = await makeRoot("trixie");
const machineMissing = await whyNoMachine(root);
if (machineMissing !== null) skip(machineMissing);

const source = await readSource();
const target = hostTarget();
const architecture = DEBIAN_ARCHITECTURES[target] ?? "amd64";
const folder = await mkdtemp(join(tmpdir(), "sixscope-image-"));
try {
  const image = join(folder, `sixscope-${source.version}-oci-${architecture}.tar`);
  const contents = await makeContents(target, source, folder);
  await makeImage(contents, architecture, source, image);
  await step("it is the same to the byte with another umask", async () => {
    const [umask, again] = [process.umask(0o077), join(folder, "again.tar")];
    await makeImage(contents, architecture, source, again);
    process.umask(umask);
    assert.deepEqual(await Bun.file(again).bytes(), await Bun.file(image).bytes());
  });
  await copyFile(inProject("systemd/sixscope.container"), join(folder, "sixscope.container"));
  await using machine = await boot(root, { "/opt/test": folder, "/opt/bun": process.execPath });
  await test(machine).catch(async (error) => {
    console.log(await machine.run(["journalctl", "--lines=60", "--no-pager"]));
    throw error;
  });
} finally {
  await rm(folder, { recursive: true });
}

async function test(machine: Machine): Promise<void> {
  const { sh, show, get, capabilities, linkGateway } = administrator(machine);
  const pidOf = async () => (await sh("pidof sixscope || true")).trim();
  const canPing = async () => (await get("/ping/::1?count=1", key)).status === 200;
  let key = "";

  await step("podman gets the limits of this machine as they are", async () => {
    const [files, processes] = (await sh("ulimit -Hn; ulimit -Hp")).trim().split("\n");
    const settings = {
      // An overlay does not work on the overlay that the machine's files are.
      "storage.conf": `[storage]
        driver = "vfs"
        runroot = "/run/containers/storage"
        graphroot = "/var/lib/containers/storage"`,
      // systemd-nspawn forbids keyrings, and the machine below it may forbid higher limits.
      "containers.conf": `[containers]
        keyring = false
        default_ulimits = ["nofile=${files}:${files}", "nproc=${processes}:${processes}"]
        [engine]
        cgroup_manager = "cgroupfs"`,
      "systemd/sixscope.container.d/test.conf": `[Container]
        PodmanArgs=--cgroups=disabled --stop-timeout=5`,
    };
    await sh("mkdir -p /etc/containers/systemd/sixscope.container.d");
    for (const [path, text] of Object.entries(settings)) {
      await machine.run(["tee", `/etc/containers/${path}`], `${text.replaceAll(/^ +/gm, "")}\n`);
    }
  });

  await step("the documented commands load and start it, and it is ready", async () => {
    const commands = part("### In a container", "podman load").replace("amd64", architecture);
    key = /^sx_\w+$/m.exec(await sh(`cd /opt/test\n${commands}`))?.[0] ?? "";
    assert.match(await show("StatusText"), /^http:\/\/127\.0\.0\.1:8080 .*; API keys: [01];/);
    await until(canPing);
  });

  await step("it is not root, keeps no capability and cannot change its files", async () => {
    const status = await sh("cat /proc/$(pidof sixscope)/status");
    assert.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);
    assert.deepEqual(await capabilities(), {
      held: [0],
      bounding: [CAP.netBindService | CAP.netRaw],
    });
    assert.match(await sh("grep ' / ' /proc/$(pidof sixscope)/mounts"), / ro[, ]/);
    assert.equal(await machine.succeeds(["podman", "exec", "sixscope", "sh"]), false);
  });

  await step("it looks at the machine, and sees all of it", async () => {
    await linkGateway();
    const found = await get("/here", key);
    assertHas(found, "answered by fe80::1");
    assertHas(found, "drops none of the ICMPv6");
  });

  await step("a reload signals it, and it goes on", async () => {
    const pid = await pidOf();
    await machine.run(["systemctl", "reload", UNIT]);
    assert.equal(await canPing(), true);
    assert.equal(await pidOf(), pid);
  });

  await step("a stop waits for a running ping, and the keys stay", async () => {
    const ping = get("/ping/::1?count=5", key);
    await Bun.sleep(400);
    await machine.run(["systemctl", "stop", UNIT]);
    assertHas(await ping, '"received":5');
    assert.equal(await show("Result"), "success");
    await machine.run(["systemctl", "start", UNIT]);
    assert.equal(await canPing(), true);
  });

  await step("the watchdog restarts it if its event loop hangs", async () => {
    const pid = await pidOf();
    await sh(`kill -STOP ${pid}`);
    await until(async () => ![pid, ""].includes(await pidOf()));
    await until(() => canPing().catch(() => false));
    assert.match(await sh(`journalctl --unit=${UNIT} --output=cat`), /Watchdog timeout/);
  });

  await step("doctor says what to do if a container has no IPv6", async () => {
    const options = ["--rm", "--cgroups=disabled", "--network=none", "--cap-add=NET_RAW"];
    const doctor = `podman run ${options.join(" ")} localhost/sixscope doctor`;
    assert.match(await sh(`${doctor} || true`), /^problem .*--network=host/m);
  });
}
