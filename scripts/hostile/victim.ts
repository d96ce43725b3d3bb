/** A machine behind a link that many clients check at once: its web servers are hostile, and it counts what arrives. */
import { join } from "node:path";
import { SYN_PAUSE_MS } from "../../src/gate/bounds.ts";
import { type Arrival, watchArrivals } from "../../test/lab/arrivals.ts";
import { startKernelChain } from "../../test/lab/kernel-chain.ts";
import { labEnvironment, runIp } from "../../test/lab/run.ts";

/** Addresses of the victim: one whose checks are aborted, and one whose port 443 many want. */
export const VICTIM = { aborted: "2001:db8:beef::a", crowded: "2001:db8:beef::b" } as const;

/** Web servers of the victim, each of which is hostile in its own way. */
export const WEB_SERVERS = Array.from({ length: 14 }, (_, at) => `2001:db8:beef::80:${at}`);

/** The hop limit of what the kernel sends; SYNs of a trace have others, and a bound for each. */
const HOP_LIMIT = 64;

/** How much shorter a second is, because what may leave does not leave at once on a busy machine. */
const HASTE_MS = 100;

/** Starts the victim. */
export async function startVictim(seed: number) {
  const stack = new AsyncDisposableStack();
  const chain = stack.use(await startKernelChain({ routers: 0 }));
  await runIp([`route add 2001:db8:beef::/48 via ${chain.target}`]);
  await chain.exec(1, ["ip", "-6", "route", "add", "local", "2001:db8:beef::/48", "dev", "lo"]);
  await chain.exec(1, ["ip", "-6", "route", "add", "default", "via", chain.source]);
  const program = [process.execPath, join(import.meta.dir, "../hostile-web.ts"), `${seed}`];
  const web = Bun.spawn(chain.inside(1, program), { env: labEnvironment, stdout: "pipe" });
  stack.defer(() => web.kill());
  await web.stdout.getReader().read();
  const watch = stack.use(await watchArrivals(chain, 1));
  return {
    /** For each address and port: its SYNs, and the most of them in a second, without those that the kernel sent again. */
    async syns() {
      const ids = new Set<string>();
      const first = (await watch.arrivals()).filter(({ to, hopLimit, syn }) => {
        const id = `${to} ${syn?.id}`;
        if (syn === undefined || hopLimit !== HOP_LIMIT || ids.has(id)) return false;
        return ids.add(id);
      });
      return Object.entries(Object.groupBy(first, ({ to, syn }) => `[${to}]:${syn?.port}`)).map(
        ([place, syns = []]) => ({ place, count: syns.length, most: mostInASecond(syns) }),
      );
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** SYNs that a port may get in a second. */
export const MAX_SYNS = 1000 / SYN_PAUSE_MS;

function mostInASecond(syns: readonly Arrival[]): number {
  let [most, from] = [0, 0];
  for (const [at, { atMs }] of syns.entries()) {
    while ((syns[from]?.atMs ?? 0) <= atMs - 1000 + HASTE_MS) from++;
    most = Math.max(most, at - from + 1);
  }
  return most;
}
