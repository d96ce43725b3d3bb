/** A look at the links of this machine: what its routers say, whether its gateways are there, and what its firewall drops. */
import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import { SystemError } from "../platform/libc.ts";
import type { Interface } from "./kernel.ts";
import { Listener } from "./listener.ts";
import { type Machine, readMachine } from "./machine.ts";

/** When routers and silent gateways are asked, in milliseconds; RFC 4861 section 10 asks three times, too. */
const ASKED_MS = [0, 1000, 2000];
/** How long a gateway may take from the first question on, in milliseconds: a second after the last. */
const ANSWERED_MS = 3000;
/** A router may answer only every three seconds (RFC 4861 section 10), half a second late. */
const LISTEN_MS = 3600;
/** How long an address may be tentative before that is a finding, in milliseconds. */
const TENTATIVE_MS = 5000;
const READ_MS = 20;
/** Links that are listened on, and with them gateways that are asked: all get 72 solicitations. */
const MAX_LINKS = 8;
const MAX_QUESTIONS = 24;

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

/** A solicitation of a gateway, or of all routers of a link if it has no address, which is repeated until it is answered. */
interface Question {
  readonly index: number;
  readonly ip: Ipv6Address | null;
  readonly sinceMs: number;
  count: number;
}

async function listen(links: readonly Interface[], isTried: Promise<unknown>, signal: AbortSignal) {
  const before = readMachine();
  const opened = links.length > 0 ? openListener(links) : null;
  using listener = opened instanceof Listener ? opened : null;
  /** Why nothing could be heard: the system call that failed and its errno name; null if it could. */
  const withoutRaw = typeof opened === "string" ? opened : null;
  const questions = new Map<string, Question>();
  const add = (index: number, ip: Ipv6Address | null, sinceMs: number) => {
    const canAsk = links.some((link) => link.index === index) && questions.size < MAX_QUESTIONS;
    const key = `${index} ${ip && formatIpv6(ip)}`;
    if (canAsk) questions.getOrInsert(key, { index, ip, sinceMs, count: 0 });
  };
  const isAnswered = (index: number, ip: Ipv6Address | null) =>
    listener?.isAnswered(index, ip) ?? null;
  // Whoever waits for it is told if it fails.
  isTried.catch(() => {});
  for (const { index } of links) add(index, null, 0);
  for (const { hops } of defaultRoutes(before)) {
    for (const { index, via } of hops) if (via) add(index, via, 0);
  }
  const startMs = performance.now();
  for (;;) {
    const nowMs = performance.now() - startMs;
    for (const question of questions.values()) {
      const { index, ip, sinceMs, count } = question;
      const isDue = nowMs - sinceMs >= (ASKED_MS[count] ?? Infinity);
      if (!isDue || (count > 0 && isAnswered(index, ip))) continue;
      listener?.solicit(index, ip);
      question.count++;
    }
    listener?.read();
    const heard = listener?.heard() ?? [];
    for (const { index, routers } of heard) for (const { ip } of routers) add(index, ip, nowMs);
    const isOver = ({ index, ip, sinceMs }: Question) =>
      isAnswered(index, ip) || nowMs >= sinceMs + ANSWERED_MS;
    const isHeard = !listener || (nowMs >= LISTEN_MS && questions.values().every(isOver));
    const after = isHeard && Bun.peek.status(isTried) !== "pending" ? readMachine() : null;
    const isSettled = after?.addresses.every(({ state }) => state !== "tentative");
    if (after && (isSettled || nowMs >= TENTATIVE_MS)) {
      listener?.read();
      const gateways = [...questions.values()].flatMap(({ index, ip }) =>
        // Null if it could not be asked.
        ip ? [{ index, ip, answers: isAnswered(index, ip) }] : [],
      );
      return { before, after, heard: listener?.heard() ?? [], gateways, withoutRaw };
    }
    signal.throwIfAborted();
    await Bun.sleep(READ_MS);
  }
}

/** The listener, or why there is none: the system call that failed and its errno name. */
function openListener(links: readonly Interface[]): Listener | string {
  try {
    return new Listener(links);
  } catch (error) {
    if (error instanceof SystemError) return error.message;
    throw error;
  }
}
