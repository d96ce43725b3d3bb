/** What a victim gets, counted where it arrives, and what callers get who all want the same port. */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { PACKETS_PER_SECOND, SYN_PAUSE_MS } from "../../src/gate/bounds.ts";
import { type Arrival, type Watch, watchArrivals } from "../lab/arrivals.ts";
import { readEvents } from "../lab/events.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { type KernelChain, startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { startAgent, startNats, untilListed } from "../lab/nats.ts";
import { labEnvironment, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { type CountingResolver, startResolver } from "../tools/check/resolver.ts";

const missing = labMissing ?? programMissing("nft");
const labTest = testWith(missing);
const natsTest = testWith(missing, programMissing("nats-server"));

/** The victim is behind one router, at which the agent is. */
const [ROUTER, VICTIM] = [1, 2];

const PORT = 443;
const SYNS_PER_SECOND = 1000 / SYN_PAUSE_MS;

/**
 * How many times its bound a second may have, because what the gate lets leave need not leave at once on a busy machine:
 * the gate's own tests have a clock. What leaves by another way comes many times as fast.
 */
const HASTE = 1.5;

/** Addresses of the victim, one for each test, so that no test adds to what another one counts. */
const SITES = ["crowd", "aborted", "silent", "agent", "flood", "many", "one"] as const;

type Site = (typeof SITES)[number];

const SITES_OF_CHECKS = ["crowd", "aborted", "silent"] as const;

/** The hop limit of what the kernel sends, behind the router. */
const HOP_LIMIT = 63;

/** Outcomes of checks that wait for others, or for an agent on a busy machine; servers that close fail a handshake. */
const NO_FAULT = [
  ...["unknown", "names-unknown", "ipv6-unknown", "tls-failed"],
  ...["TOO_MANY_PROBES", "LOCATION_TIMEOUT"],
];

/** Nobody is blamed because others come first. */
const expectNoFault = (outcomes: readonly string[]) =>
  expect(outcomes.filter((code) => !NO_FAULT.includes(code))).toEqual([]);

const prefixOf = (site: Site) => `2001:db8:5:${SITES.indexOf(site) + 1}::`;
const ipOf = (site: Site) => `${prefixOf(site)}1`;
const ip4Of = (site: Site) => `192.0.2.${SITES.indexOf(site) + 1}`;
/** Checks of one name share a measurement, so each has its own. */
const nameOf = (site: Site, at: number) => `${site}-${at}.example`;

const CHECKS = 64;

let chain: KernelChain;
let watch: Watch;
let resolver: CountingResolver;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  if (missing !== null) return;
  chain = stack.use(await startKernelChain({ routers: 1 }));
  await setUpVictim();
  resolver = stack.use(
    await startResolver(
      Object.fromEntries(
        SITES.flatMap((site) =>
          Array.from({ length: CHECKS }, (_, at) => [nameOf(site, at), [ipOf(site), ip4Of(site)]]),
        ),
      ),
    ),
  );
  watch = stack.use(await watchArrivals(chain, VICTIM));
});

afterAll(() => stack.disposeAsync());

/** Gives the victim addresses of both families, servers that accept and then close, and one port that is silent. */
async function setUpVictim() {
  const [, far = ""] = chain.hops;
  await runIp([
    `addr add 10.0.1.1/24 dev ${chain.device}`,
    "route add 192.0.2.0/24 via 10.0.1.2",
    `route add 2001:db8:5::/48 via ${chain.hops[0]}`,
  ]);
  const batch = (node: number, lines: readonly string[]) =>
    chain.exec(node, ["ip", "-batch", "-"], `${lines.join("\n")}\n`);
  await chain.exec(ROUTER, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
  await batch(ROUTER, [
    "addr add 10.0.1.2/24 dev uplink",
    "addr add 10.0.2.1/24 dev downlink",
    "route add 192.0.2.0/24 via 10.0.2.2",
    `route add 2001:db8:5::/48 via ${far}`,
  ]);
  await batch(VICTIM, [
    "addr add 10.0.2.2/24 dev uplink",
    "route add default via 10.0.2.1",
    "route add local 192.0.2.0/24 dev lo",
    "route add local 2001:db8:5::/48 dev lo",
  ]);
  const silence = (family: string, ip: string) =>
    `table ${family} lab { chain input { type filter hook input priority 0; ${family} daddr ${ip} tcp dport ${PORT} drop; }; }\n`;
  const rules = silence("ip6", ipOf("silent")) + silence("ip", ip4Of("silent"));
  await chain.exec(VICTIM, ["nft", "-f", "-"], rules);
  const servers = join(import.meta.dir, "../lab/odd-servers.ts");
  const command = [process.execPath, servers, "::", `${PORT}`, "closer"];
  const child = Bun.spawn(chain.inside(VICTIM, command), { env: labEnvironment, stdout: "pipe" });
  stack.defer(async () => {
    child.kill();
    await child.exited;
  });
  await child.stdout.getReader().read();
}

const settings = () => ({
  SIXSCOPE_RESOLVER_A: resolver.server,
  SIXSCOPE_RESOLVER_B: resolver.server,
  SIXSCOPE_RESOLVER_C: resolver.server,
  SIXSCOPE_RATE_KEY: "1000000",
  SIXSCOPE_MAX_PROBES: "256",
});

/** Adds keys to a service, and waits until it knows them. */
async function addKeys(service: Service, count: number): Promise<readonly string[]> {
  const file = { SIXSCOPE_KEYS_FILE: service.keysFile };
  const keys: string[] = [];
  while (keys.length < count) {
    const { stdout } = await sixscopeHere(["keys", "add", `key-${keys.length}`], file);
    keys.push(stdout.split("\n")[0] ?? "");
  }
  const last = { "X-API-Key": keys.at(-1) ?? "" };
  const isKnown = async () =>
    (await fetch(`${service.url}/ping/::1?count=1`, { headers: last })).status !== 401;
  while (!(await isKnown())) await Bun.sleep(20);
  return keys;
}

/** The answer to a request; an error of `fetch` if there is none, or not one of the interface document. */
async function ask(service: Service, key: string, path: string) {
  const response = await fetch(service.url + path, { headers: { "X-API-Key": key } });
  const body = (await response.json()) as {
    readonly error?: { readonly code: string };
    readonly details?: { readonly verdict: { readonly code: string } };
  };
  return body.error?.code ?? body.details?.verdict.code ?? "nothing";
}

/** The most of some moments that are within so many milliseconds. */
function mostWithin(moments: readonly number[], ms: number): number {
  const sorted = moments.toSorted((a, b) => a - b);
  let [most, from] = [0, 0];
  for (const [at, moment] of sorted.entries()) {
    while ((sorted[from] ?? 0) <= moment - ms) from++;
    most = Math.max(most, at - from + 1);
  }
  return most;
}

const inASecond = (arrivals: readonly Arrival[]) =>
  mostWithin(
    arrivals.map(({ atMs }) => atMs),
    1000,
  );

/** SYNs that came to the port of an address, and those of them that the kernel did not merely send again. */
function synsTo(arrivals: readonly Arrival[], ip: string) {
  const all = arrivals.filter(({ to, syn }) => to === ip && syn?.port === PORT);
  const seen = new Set<string>();
  const first = all.filter(({ syn }) => {
    const isNew = !seen.has(syn?.id ?? "");
    return seen.add(syn?.id ?? "") && isNew;
  });
  return { all, first };
}

/** What a port got: SYNs that were new, and the most of all in a second. */
function summary(arrivals: readonly Arrival[], ip: string) {
  const { all, first } = synsTo(arrivals, ip);
  return { first: first.length, most: inASecond(all) };
}

/** Runs checks at once, as many of each key, and returns how each ended. */
const checkAtOnce = (
  service: Service,
  keys: readonly string[],
  subjectOf: (at: number) => string,
  query = "",
) =>
  Promise.all(
    Array.from({ length: CHECKS }, (_, at) =>
      ask(service, keys[at % keys.length] as string, `/check/${subjectOf(at)}${query}`),
    ),
  );

/** One of 64 texts of an address of a site: each of three groups has up to three zeros in front. */
function textOf(site: Site, at: number): string {
  const group = (text: string, digits: number) => text.padStart(1 + (digits % 4), "0");
  const subnet = group(`${SITES.indexOf(site) + 1}`, at >> 2);
  return `2001:db8:${group("5", at)}:${subnet}::${group("1", at >> 4)}`;
}

/** Begins checks and aborts each a while after it begins to connect, until the signal aborts. */
async function abortOver(
  service: Service,
  key: string,
  path: string,
  ms: number,
  until: AbortSignal,
) {
  const headers = { "X-API-Key": key, Accept: "text/event-stream" };
  while (!until.aborted) {
    const gone = new AbortController();
    const check = async () => {
      const response = await fetch(service.url + path, { headers, signal: gone.signal });
      for await (const { event, data } of readEvents(response)) {
        const { name } = data as { readonly name?: string };
        if (event === "begin" && name === "tcp") setTimeout(() => gone.abort(), ms);
      }
    };
    await check().catch(() => {});
  }
}

labTest(
  "64 checks at once, and checks begun and aborted, bring a port ten SYNs a second",
  async () => {
    await using service = await startService(settings());
    const keys = await addKeys(service, 33);
    const [crowd, quiet, [aborting = ""]] = [keys.slice(0, 16), keys.slice(16, 32), keys.slice(32)];
    const over = new AbortController();
    const aborted = [50, 70, 90, 110].map((ms, at) =>
      abortOver(service, aborting, `/check/${nameOf("aborted", at)}`, ms, over.signal),
    );
    const isMany = async () => {
      const arrivals = await watch.arrivals();
      const ips = SITES_OF_CHECKS.flatMap((site) => [ipOf(site), ip4Of(site)]);
      return ips.every((ip) => synsTo(arrivals, ip).first.length > SYNS_PER_SECOND / 2);
    };
    // On a busy machine, few of the checks come to a SYN in their time.
    do {
      const [ofCrowd, ofQuiet] = await Promise.all([
        checkAtOnce(service, crowd, (at) => nameOf("crowd", at)),
        checkAtOnce(service, quiet, (at) => nameOf("silent", at)),
      ]);
      expectNoFault(ofCrowd);
      expectNoFault(ofQuiet.filter((code) => code !== "port-silent"));
    } while (!(await isMany()));
    over.abort();
    await Promise.all(aborted);
    const arrivals = await watch.arrivals();
    for (const site of SITES_OF_CHECKS) {
      for (const ip of [ipOf(site), ip4Of(site)]) {
        const { all, first } = synsTo(arrivals, ip);
        // SYNs of a trace to a silent port are counted by their hop limits.
        for (const each of Object.values(Object.groupBy(first, ({ hopLimit }) => hopLimit)))
          expect(inASecond(each ?? [])).toBeLessThanOrEqual(HASTE * SYNS_PER_SECOND);
        const whole = all.filter(({ hopLimit }) => hopLimit === HOP_LIMIT);
        // Those that the kernel sends again keep new ones back.
        expect(inASecond(whole)).toBeLessThan(2 * HASTE * SYNS_PER_SECOND);
      }
    }
  },
);

natsTest("64 checks at once by an agent bring a port ten SYNs a second", async () => {
  await using nats = await startNats();
  await using service = await startService({ ...settings(), SIXSCOPE_NATS_URL: nats.url });
  await using _agent = await startAgent(
    {
      ...settings(),
      SIXSCOPE_NATS_URL: `nats://[${chain.source}]:${nats.port}`,
      SIXSCOPE_LOCATION: "ams",
    },
    chain.inside(ROUTER, []),
  );
  const keys = await addKeys(service, 16);
  await untilListed(service, "ams");
  // The resolver is not of the agent's network.
  const outcomes: string[] = [];
  let [first, most] = [0, 0];
  // An agent on a busy machine may have had no time for most of them.
  while (first <= SYNS_PER_SECOND / 2) {
    outcomes.push(...(await checkAtOnce(service, keys, (at) => textOf("agent", at), "?from=ams")));
    ({ first, most } = summary(await watch.arrivals(), ipOf("agent")));
  }
  expectNoFault(outcomes);
  expect(most).toBeLessThanOrEqual(HASTE * SYNS_PER_SECOND);
});

labTest("many pings at once bring a /64 a thousand packets a second", async () => {
  await using service = await startService({ ...settings(), SIXSCOPE_PING_INTERVAL_MS: "10" });
  const keys = await addKeys(service, 8);
  const statuses = await Promise.all(
    keys.flatMap((key, at) =>
      Array.from({ length: 12 }, async (_, turn) => {
        const outcomes: string[] = [];
        while (outcomes.length < 3) {
          const target = `${prefixOf("flood")}${at + 1}:${turn}`;
          outcomes.push(await ask(service, key, `/ping/${target}?count=10`));
        }
        return outcomes;
      }),
    ),
  );
  const arrivals = (await watch.arrivals()).filter(({ to }) => to.startsWith(prefixOf("flood")));
  expect(new Set(statuses.flat())).toEqual(new Set(["no-loss"]));
  // Each was answered, so all have arrived; the small buffer that an ordinary user has for the watch can miss some.
  const sent = 8 * 12 * 3 * 10;
  expect(arrivals.length).toBeLessThanOrEqual(sent);
  expect(arrivals.length).toBeGreaterThan(0.9 * sent);
  expect(inASecond(arrivals)).toBeLessThanOrEqual(HASTE * PACKETS_PER_SECOND);
});

labTest(
  "fifty pings of one port at once get fifty answers, also if one client sends them",
  async () => {
    const ping = (site: Site) => `/ping/${ipOf(site)}?protocol=tcp`;
    // Slots as by default.
    const few = { ...settings(), SIXSCOPE_MAX_PROBES: "64" };
    await using service = await startService(few);
    await using other = await startService(few);
    const keys = await addKeys(service, 50);
    const [many, one] = await Promise.all([
      Promise.all(keys.map((key) => ask(service, key, ping("many")))),
      Promise.all(keys.map(() => ask(other, other.key, ping("one")))),
    ]);
    const arrivals = await watch.arrivals();
    for (const outcomes of [many, one]) {
      expect(outcomes).toHaveLength(50);
      expect(outcomes.filter((code) => code !== "no-loss" && code !== "TOO_MANY_PROBES")).toEqual(
        [],
      );
    }
    for (const site of ["many", "one"] as const)
      expect(summary(arrivals, ipOf(site)).most).toBeLessThanOrEqual(HASTE * SYNS_PER_SECOND);
  },
);
