/**
 * Runs the executable of the arm64 image under qemu's user-mode emulation, with the image's C library, and
 * requests /validate.
 *
 * It needs qemu-user from Debian. Without it, it says so and exits with status 0, or 1 with CI set. The
 * emulator does not support socket timestamps, so ping and traceroute are not tested.
 */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../test/lab/run.ts";
import { makeImage } from "./build/image.ts";
import { readSource } from "./build/source.ts";
import { makeContents } from "./build/stage.ts";
import { skip } from "./skip.ts";

const DEADLINE_MS = 60_000;

if (Bun.which("qemu-aarch64") === null) {
  skip({ reason: "qemu-user is not installed", canBeInstalled: true });
}

const folder = await mkdtemp(join(tmpdir(), "sixscope-arm64-"));
const root = join(folder, "root");
const socket = join(folder, "socket");
await unpackImage();
const service = Bun.spawn(["qemu-aarch64", "-L", root, join(root, "usr/bin/sixscope")], {
  // A unix socket cannot collide with another program's port.
  env: { SIXSCOPE_LISTEN: `unix:${socket}`, SIXSCOPE_KEYS_FILE: join(folder, "keys.json") },
  stdio: ["ignore", "inherit", "inherit"],
});
try {
  const deadlineMs = performance.now() + DEADLINE_MS;
  const url = "http://localhost/api/v1/validate?address=2001:0db8::0001";
  const options = { unix: socket, headers: { "X-Forwarded-Proto": "https" } };
  // The socket is there before the service listens.
  const ask = () => fetch(url, options).catch(() => null);
  let response = await ask();
  while (response === null) {
    assert.equal(service.exitCode, null, "the service has ended");
    assert.ok(performance.now() < deadlineMs, "the service does not start");
    await Bun.sleep(50);
    response = await ask();
  }
  const body = (await response.json()) as { compressed: string };
  assert.deepEqual([response.status, body.compressed], [200, "2001:db8::1"]);
  service.kill("SIGTERM");
  assert.equal(await service.exited, 0);
  console.log("ok the arm64 executable starts, serves /validate and stops");
} finally {
  service.kill("SIGKILL");
  await rm(folder, { recursive: true });
}

/** Makes the image, and unpacks its one layer into a folder. */
async function unpackImage(): Promise<void> {
  const source = await readSource();
  const contents = await makeContents("linux-arm64", source, folder);
  await makeImage(contents, "arm64", source, join(folder, "image.tar"));
  await run(["tar", `--directory=${folder}`, "-xf", join(folder, "image.tar")]);
  const [{ Layers }] = await Bun.file(join(folder, "manifest.json")).json();
  await mkdir(root);
  await run(["tar", `--directory=${root}`, "-xzf", join(folder, Layers[0])]);
}
