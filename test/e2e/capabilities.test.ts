/** Which capabilities of those from a service manager the service keeps. */
import { expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { attempt } from "../../src/util/errors.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { startService } from "../lab/service.ts";

const capabilityTest = testWith(labMissing, programMissing("setpriv"));

const NET_BIND_SERVICE = 1 << 10;

/** Runs a command with two ambient capabilities, and root without any other. */
const CAPABILITIES = "+net_raw,+net_bind_service";
const asServiceManager = [
  "setpriv",
  "--securebits=+noroot,+noroot_locked",
  `--inh-caps=-all,${CAPABILITIES}`,
  `--ambient-caps=${CAPABILITIES}`,
  "--",
];

/** The permitted and effective capabilities of all threads of a process. */
function capabilities(pid: number): Set<number> {
  const threads = readdirSync(`/proc/${pid}/task`);
  // One can have ended meanwhile.
  const statuses = threads.map(
    (thread) => attempt(() => readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8")) ?? "",
  );
  const sets = statuses.flatMap((status) => [...status.matchAll(/^Cap(?:Prm|Eff):\s*(\w+)$/gm)]);
  return new Set(sets.map(([, hex = ""]) => Number.parseInt(hex, 16)));
}

const rows: [string, string, number][] = [
  ["no capability", "127.0.0.1:8080,[::1]:8080", 0],
  ["only CAP_NET_BIND_SERVICE", "127.0.0.1:80,[::1]:443", NET_BIND_SERVICE],
];
capabilityTest.each(rows)("keeps %s when it listens on %s, and probes", async (_, listen, kept) => {
  const environment = { SIXSCOPE_LISTEN: listen };
  await using service = await startService(environment, asServiceManager);
  expect([...capabilities(service.pid)]).toEqual([kept]);
  const headers = { "X-API-Key": service.key };
  const response = await fetch(`${service.url}/ping/::1?count=1`, { headers });
  expect(await response.json()).toMatchObject({ stats: { received: 1 } });
  for (const protocol of ["tcp", "udp"]) {
    const ping = await fetch(`${service.url}/ping/::1?count=1&protocol=${protocol}`, { headers });
    const state = listen.includes("443") && protocol === "tcp" ? "open" : "closed";
    expect(await ping.json()).toMatchObject({ details: { port: { protocol, state } } });
  }
  service.signal("SIGTERM");
  expect(await service.exited).toBe(0);
});
