/**
 * Runs the arm64 executable under qemu's user-mode emulation, and requests /validate.
 *
 * It needs qemu-user and libc6-arm64-cross from Debian. Without them it says so and exits with status
 * 0, or 1 with CI set. The emulator does not support socket timestamps, so ping and traceroute are not
 * tested.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "./build/compile.ts";
import { readSource } from "./build/source.ts";
import { skip } from "./skip.ts";

const LIBRARIES = "/usr/aarch64-linux-gnu";
const DEADLINE_MS = 60_000;

const missing = Bun.which("qemu-aarch64") === null ? "qemu-user" : "libc6-arm64-cross";
if (missing === "qemu-user" || !existsSync(LIBRARIES)) {
  skip({ reason: `${missing} is not installed`, canBeInstalled: true });
}

const folder = await mkdtemp(join(tmpdir(), "sixscope-arm64-"));
const executable = join(folder, "sixscope");
const socket = join(folder, "socket");
await compile("linux-arm64", await readSource(), executable);
const service = Bun.spawn(["qemu-aarch64", "-L", LIBRARIES, executable], {
  // A unix socket cannot collide with another program's port.
  env: { SIXSCOPE_LISTEN: `unix:${socket}`, SIXSCOPE_KEYS_FILE: join(folder, "keys.json") },
  stdio: ["ignore", "inherit", "inherit"],
});
try {
  const deadlineMs = performance.now() + DEADLINE_MS;
  while (!existsSync(socket)) {
    assert.equal(service.exitCode, null, "the service has ended");
    assert.ok(performance.now() < deadlineMs, "the service does not start");
    await Bun.sleep(50);
  }
  const url = "http://localhost/api/v1/validate?address=2001:0db8::0001";
  const response = await fetch(url, {
    unix: socket,
    headers: { "X-Forwarded-Proto": "https" },
  });
  const body = (await response.json()) as { compressed: string };
  assert.deepEqual([response.status, body.compressed], [200, "2001:db8::1"]);
  service.kill("SIGTERM");
  assert.equal(await service.exited, 0);
  console.log("ok the arm64 executable starts, serves /validate and stops");
} finally {
  service.kill("SIGKILL");
  await rm(folder, { recursive: true });
}
