/** A look at the links of this machine: what its routers say, whether its gateways are there, and what its firewall drops. */
import { prefixContains } from "../addr/prefix.ts";
import { SystemError } from "../platform/libc.ts";
import type { Interface, Route } from "./kernel.ts";
import { Listener } from "./listener.ts";
import { ANYWHERE, MAIN_TABLE, type Machine, readMachine } from "./machine.ts";

/** A router may answer only every three seconds (RFC 4861 section 10), half a second late. */
const LISTEN_MS = 3600;
/** How long an address may be tentative before that is a finding, in milliseconds. */
const TENTATIVE_MS = 5000;
const READ_MS = 20;
/** Links that are listened on. */
const MAX_LINKS = 8;

/** This machine before and after its links were listened on. */
export type Observation = Awaited<ReturnType<typeof observe>>;

/** A gateway of a way out, or a router that was heard. */
export type Gateway = Observation["gateways"][number];

/**
 * The default routes that are in use: to everywhere, or to all global unicast addresses, in the main table or the one in
 * which the kernel finds the way to the Internet. What rules send by other tables, as by a mark, is not known.
 */
export const defaultRoutes = ({ routes, way }: Machine) =>
  routes.filter(
    ({ prefix, kind, table, expiresSeconds }) =>
      kind === "unicast" &&
      (table === MAIN_TABLE || table === way?.table) &&
      prefix.length <= 3 &&
      prefixContains(prefix, ANYWHERE) &&
      (expiresSeconds === null || expiresSeconds > 0),
  );

/** One look at a time: the sockets that a service was started with are one pair. */
let last: Promise<unknown> = Promise.resolve();

/** Listens on links as `listen` does, once all that began before have ended. */
export function observe(...look: Parameters<typeof listen>) {
  const observed = last.then(() => listen(...look));
  last = observed.catch(() => {});
  return observed;
}

/**
 * Listens on links while it asks, and reads the kernel's tables before and after. Takes 3.6 s, up to 5 s where an
 * answer or an address is still open, and 3 s more where a gateway is there only after.
 *
 * @param all those that may be asked, the most important first
 * @param hopsOf where the packets of a machine go, whose gateways are asked
 * @param isTried resolves when all else that leaves over these links has had its answer
 */
async function listen(
  all: readonly Interface[],
  hopsOf: (machine: Machine) => Route["hops"],
  isTried: Promise<unknown>,
  signal: AbortSignal,
) {
  const links = all.slice(0, MAX_LINKS);
  const before = readMachine();
  const opened = links.length > 0 ? openListener(links, before) : null;
  using listener = opened instanceof Listener ? opened : null;
  /** Why nothing could be heard: the system call that failed and its errno name; null if it could. */
  const withoutRaw = typeof opened === "string" ? opened : null;
  const askGateways = (machine: Machine) => {
    for (const { index, via } of hopsOf(machine)) if (via) listener?.ask(index, via);
  };
  askGateways(before);
  // Whoever waits for it is told if it fails.
  isTried.catch(() => {});
  const startMs = performance.now();
  for (;;) {
    listener?.turn();
    const ms = performance.now() - startMs;
    const isHeard = !listener || (ms >= LISTEN_MS && listener.isDone());
    const after = isHeard && Bun.peek.status(isTried) !== "pending" ? readMachine() : null;
    if (after) askGateways(after);
    const isSettled =
      (listener?.isDone() ?? true) && after?.addresses.every(({ state }) => state !== "tentative");
    if (after && (isSettled || ms >= TENTATIVE_MS)) {
      listener?.read();
      const [heard, gateways] = [listener?.heard() ?? [], listener?.gateways() ?? []];
      return { before, after, heard, gateways, withoutRaw };
    }
    signal.throwIfAborted();
    await Bun.sleep(READ_MS);
  }
}

/** The listener, or why there is none: the system call that failed and its errno name. */
function openListener(links: readonly Interface[], { addresses }: Machine): Listener | string {
  try {
    return new Listener(links, addresses);
  } catch (error) {
    if (error instanceof SystemError) return error.message;
    throw error;
  }
}
