/** A look at the links of this machine: the advertisements of routers, the answers of gateways, and the drops of the firewall. */
import { prefixContains } from "../addr/prefix.ts";
import { SystemError } from "../platform/libc.ts";
import type { Interface, Route } from "./kernel.ts";
import { Listener } from "./listener.ts";
import { ANYWHERE, MAIN_TABLE, type Machine, readMachine } from "./machine.ts";

/** The least time of a look: a router may answer once in three seconds (RFC 4861 section 10), and half a second late. */
const LISTEN_MS = 3600;
/** The time that a look waits for tentative addresses, in milliseconds. */
const TENTATIVE_MS = 5000;
/** The greatest time of a look: gateways that come late are not asked to the end then. */
const LONGEST_MS = 9500;
const READ_MS = 20;
/** Links that are listened on. */
const MAX_LINKS = 8;

/** This machine before and after its links were listened on. */
export type Observation = Awaited<ReturnType<typeof observe>>;

/** A gateway of a way out, or a router that was heard. */
export type Gateway = Observation["gateways"][number];

/**
 * The default routes that are in use: to everywhere, or to all global unicast addresses, in the main table or the table
 * of the way to the Internet. Routes of other tables, which rules select by a mark for example, are not known.
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

/** The last look. Looks take turns, because a service is started with one pair of sockets. */
let last: Promise<unknown> = Promise.resolve();

/** Listens on links as `listen` does, after all earlier looks. */
export function observe(...look: Parameters<typeof listen>) {
  const observed = last.then(() => listen(...look));
  last = observed.catch(() => {});
  return observed;
}

/**
 * Listens on links while it asks, and reads the kernel's tables before and after. Takes 3.6 s, up to 5 s if an answer
 * or a tentative address is outstanding, and 3 s more if a gateway is only in the later tables.
 * It ends after 9.5 s, if all other questions are answered by then.
 *
 * @param all links that may be asked, the most important first
 * @param hopsOf the next hops of a machine, whose gateways are asked
 * @param isTried settles when all other questions over these links are answered
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
  /** The reason why nothing could be heard: the system call that failed and its errno name; null if it could. */
  const withoutRaw = typeof opened === "string" ? opened : null;
  const askGateways = (machine: Machine) => {
    for (const { index, via } of hopsOf(machine)) if (via) listener?.ask(index, via);
  };
  askGateways(before);
  // The caller that waits for it gets its error.
  isTried.catch(() => {});
  const startMs = performance.now();
  for (;;) {
    listener?.turn();
    const ms = performance.now() - startMs;
    const isOver = ms >= LONGEST_MS;
    const isHeard = !listener || isOver || (ms >= LISTEN_MS && listener.isDone());
    const after = isHeard && Bun.peek.status(isTried) !== "pending" ? readMachine() : null;
    if (after) askGateways(after);
    const isTentative = after?.addresses.some(({ state }) => state === "tentative");
    const isSettled = (listener?.isDone() ?? true) && (!isTentative || ms >= TENTATIVE_MS);
    if (after && (isSettled || isOver)) {
      listener?.read();
      const [heard, gateways] = [listener?.heard() ?? [], listener?.gateways() ?? []];
      return { before, after, heard, gateways, withoutRaw };
    }
    signal.throwIfAborted();
    await Bun.sleep(READ_MS);
  }
}

/** Opens a listener. If that fails, returns the system call that failed and its errno name. */
function openListener(links: readonly Interface[], { addresses }: Machine): Listener | string {
  try {
    return new Listener(links, addresses);
  } catch (error) {
    if (error instanceof SystemError) return error.message;
    throw error;
  }
}
