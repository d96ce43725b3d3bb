/** A watched site of real servers, of which one thing after the other changes: what is told of it, and how soon. */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GATEWAY, linkGateway } from "../here/places.ts";
import { makeCertificate } from "../lab/certificate.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { until } from "../lab/metrics.ts";
import { labEnvironment, run } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { startResolver } from "../tools/check/resolver.ts";

/** Workers of nginx, which a reload replaces, change their groups. */
const missing = usersMissing ?? programMissing("nginx") ?? programMissing("openssl");
const labTest = testWith(missing);

const SITE = "www.lab.test";
const NAME = `check ${SITE}`;
/** A second address of the site's machine, to which it moves. */
const MOVED = "2001:db8:1::2";

/** A row of the changes of a watch, and a change with both sides. */
interface Change {
  readonly id: number;
  readonly kind: string;
  readonly text: string;
  readonly confirmed: boolean;
}
interface Sides {
  readonly before: object;
  readonly after: object;
  readonly diff: readonly { readonly kind: string; readonly before: unknown }[];
}

/** The records of the resolver. */
const names: Record<string, readonly string[]> = { [SITE]: [GATEWAY] };

const stack = new AsyncDisposableStack();
let folder: string;
let service: Service;
let nginx: Bun.Subprocess;
let chain: KernelChain;
/** The watch of the way to the end of the chain. */
let wayThere: string;

const inGateway = (command: readonly string[]) => ["ip", "netns", "exec", "gateway", ...command];

/** Puts a new certificate at the site's place, and returns it. */
async function renew(): Promise<string> {
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const alternatives = `DNS:${SITE}`;
  await makeCertificate({ commonName: SITE, alternatives, days: 90, certFile, keyFile });
  return readFileSync(certFile, "utf8");
}

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-watch-lab-"));
  stack.defer(() => rmSync(folder, { recursive: true }));
  await linkGateway();
  await run(inGateway(["ip", "addr", "add", `${MOVED}/64`, "dev", "eth0", "nodad"]));
  // The service trusts both certificates, of which the second takes the place of the first later.
  const second = [await renew(), readFileSync(join(folder, "key.pem"), "utf8")] as const;
  const first = await renew();
  writeFileSync(join(folder, "trusted.pem"), first + second[0]);
  writeFileSync(join(folder, "second-cert.pem"), second[0]);
  writeFileSync(join(folder, "second-key.pem"), second[1]);
  writeFileSync(
    join(folder, "nginx.conf"),
    `user root root; daemon off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log; events {}
     http { access_log off; server {
       listen [::]:443 ssl; ssl_certificate ${folder}/cert.pem; ssl_certificate_key ${folder}/key.pem;
       return 200; } }`,
  );
  nginx = Bun.spawn(inGateway(["nginx", "-c", join(folder, "nginx.conf")]), {
    env: labEnvironment,
    stdio: ["ignore", "ignore", "inherit"],
  });
  stack.defer(async () => {
    nginx.kill();
    await nginx.exited;
  });
  const resolver = stack.use(await startResolver(names));
  chain = stack.use(await startKernelChain({ routers: 2 }));
  wayThere = `trace ${chain.target}`;
  const lines = [NAME, wayThere].map((name) => `${name} every=10s\n`);
  writeFileSync(join(folder, "watches"), lines.join(""));
  service = stack.use(
    await startService({
      SIXSCOPE_WATCH_FILE: join(folder, "watches"),
      SIXSCOPE_HISTORY_FILE: join(folder, "history.db"),
      SIXSCOPE_TARGETS_ALLOW: "2001:db8::/32",
      SIXSCOPE_RESOLVER_A: resolver.server,
      SIXSCOPE_RESOLVER_B: resolver.server,
      SIXSCOPE_RESOLVER_C: resolver.server,
      NODE_EXTRA_CA_CERTS: join(folder, "trusted.pem"),
    }),
  );
});

afterAll(() => stack.disposeAsync());

async function ask<T>(path: string): Promise<T> {
  const response = await fetch(service.url + path, { headers: { "X-API-Key": service.key } });
  return (await response.json()) as T;
}

const pathOf = (name: string) => `/watch/${encodeURIComponent(name)}`;

const changes = async (name: string) =>
  (await ask<{ readonly changes: readonly Change[] }>(pathOf(name))).changes;

/** How many runs there were, and the code of the last. */
async function runs(name: string) {
  const { series } = await ask<{
    readonly series: readonly { readonly runs: number; readonly code: string | null }[];
  }>(`${pathOf(name)}?since=1h&points=360`);
  const measured = series.filter(({ runs }) => runs > 0);
  return { count: measured.reduce((sum, { runs }) => sum + runs, 0), code: measured.at(-1)?.code };
}

/** Runs until a change is told that was not: one that begins before the truth changes, one after it, and one that confirms it. */
const MOST_RUNS = 3;

/** Changes the truth, and returns what is told of it: one change with both sides. */
async function toldOf(name: string, change: () => unknown): Promise<Change & Sides> {
  const before = (await changes(name)).length;
  const { count } = await runs(name);
  await change();
  await until(async () => (await changes(name)).length > before);
  expect((await runs(name)).count - count).toBeLessThanOrEqual(MOST_RUNS);
  const all = await changes(name);
  expect(all.length).toBe(before + 1);
  const [told] = all.toSorted((a, b) => b.id - a.id);
  return { ...(told as Change), ...(await ask<Sides>(`${pathOf(name)}/changes/${told?.id}`)) };
}

labTest("a certificate, an address and the death of a site are told, each once", async () => {
  await until(async () => (await runs(NAME)).count >= 2);
  expect([(await runs(NAME)).code, await changes(NAME)]).toEqual(["works", []]);

  const renewed = await toldOf(NAME, async () => {
    for (const name of ["cert", "key"])
      writeFileSync(join(folder, `${name}.pem`), readFileSync(join(folder, `second-${name}.pem`)));
    nginx.kill("SIGHUP");
  });
  expect([renewed.kind, renewed.confirmed]).toEqual(["certificate", true]);
  expect(renewed.diff.map(({ kind }) => kind)).toEqual(["certificate"]);

  const moved = await toldOf(NAME, () => {
    names[SITE] = [MOVED];
  });
  expect([moved.kind, moved.confirmed]).toEqual(["addresses", true]);
  expect(moved.text).toContain(MOVED);

  const died = await toldOf(NAME, async () => {
    nginx.kill();
    await nginx.exited;
  });
  expect([died.kind, died.confirmed]).toEqual(["verdict", true]);
  const codeOf = (side: object) =>
    (side as { details: { verdict: { code: string } } }).details.verdict.code;
  expect([codeOf(died.before), codeOf(died.after)]).toEqual(["works", "port-closed"]);
});

labTest("a router in the place of another is told once, with its hop", async () => {
  await until(async () => (await runs(wayThere)).count >= 2);
  expect([(await runs(wayThere)).code, await changes(wayThere)]).toEqual(["reached", []]);
  const [, old = ""] = chain.hops;
  const other = old.replace(/2$/, "9");
  const replaced = await toldOf(wayThere, async () => {
    await chain.exec(2, ["ip", "addr", "add", `${other}/64`, "dev", "uplink", "nodad"]);
    await chain.exec(1, ["ip", "route", "replace", `${chain.target}/128`, "via", other]);
    await chain.exec(2, ["ip", "addr", "del", `${old}/64`, "dev", "uplink"]);
  });
  expect([replaced.kind, replaced.confirmed]).toEqual(["path", true]);
  expect(replaced.text).toContain(other);
  const secondHop = (side: object) => (side as { hops: { ip: string }[] }).hops[1]?.ip;
  expect([replaced.before, replaced.after].map(secondHop)).toEqual([old, other]);
});
