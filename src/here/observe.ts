/** A look at the links of this machine: what its routers say, whether its gateways are there, and what its firewall drops. */
import type { Ipv6Address } from "../addr/ipv6.ts";
import { SystemError } from "../platform/libc.ts";
import type { Interface } from "./kernel.ts";
import { Listener } from "./listener.ts";
import { type Machine, readMachine } from "./machine.ts";

/** A router may answer only every three seconds (RFC 4861 section 10), half a second late. */
const LISTEN_MS = 3600;
/** How long an address may be tentative before that is a finding, in milliseconds. */
const TENTATIVE_MS = 5000;
const READ_MS = 20;
/** Links that are listened on. */
const MAX_LINKS = 8;

/** This machine before and after its links were listened on. */
export type Observation = Awaited<ReturnType<typeof observe>>;

/** A gateway of a default route, or a router that was heard. */
export type Gateway = Observation["gateways"][number];

/** The default routes that are in use: to everywhere, or to all global unicast addresses. */
export const defaultRoutes = ({ routes }: Machine) =>
  routes.filter(
    ({ prefix, kind, expiresSeconds }) =>
      kind === "unicast" &&
      prefix.length <= 3 &&
      (prefix.length === 0 || (prefix.network as Ipv6Address).word0 >>> 29 === 1) &&
      (expiresSeconds === null || expiresSeconds > 0),
  );

/** One look at a time: the sockets that a service was started with are one pair. */
let last: Promise<unknown> = Promise.resolve();

/**
 * Listens on links while it asks, and reads the kernel's tables before and after. Takes 3.6 s, and up to 5 s where an
 * answer or an address is still open.
 *
 * @param links those that may be asked, the most important first
 * @param isTried resolves when all else that leaves over these links has had its answer
 */
export function observe(
  links: readonly Interface[],
  isTried: Promise<unknown>,
  signal: AbortSignal,
) {
  const look = last.then(() => listen(links.slice(0, MAX_LINKS), isTried, signal));
  last = look.catch(() => {});
  return look;
}

async function listen(links: readonly Interface[], isTried: Promise<unknown>, signal: AbortSignal) {
  const before = readMachine();
  const opened = links.length > 0 ? openListener(links, before) : null;
  using listener = opened instanceof Listener ? opened : null;
  /** Why nothing could be heard: the system call that failed and its errno name; null if it could. */
  const withoutRaw = typeof opened === "string" ? opened : null;
  for (const { index, via } of defaultRoutes(before).flatMap(({ hops }) => hops))
    if (via) listener?.ask(index, via);
  // Whoever waits for it is told if it fails.
  isTried.catch(() => {});
  const startMs = performance.now();
  for (;;) {
    listener?.turn();
    const ms = performance.now() - startMs;
    const isHeard = !listener || (ms >= LISTEN_MS && listener.isDone());
    const after = isHeard && Bun.peek.status(isTried) !== "pending" ? readMachine() : null;
    const isSettled = after?.addresses.every(({ state }) => state !== "tentative");
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
