import { formatIpv6 } from "../../addr/format.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import type { Prober } from "../../icmp/prober/prober.ts";
import type { Response } from "../../icmp/prober/response.ts";
import { errorMeaning } from "../../icmp/wire/icmp-error.ts";
import { IPV6_HEADER_BYTES, LEAST_MTU, TYPE } from "../../icmp/wire/packet.ts";
import type { RunOptions } from "../engine.ts";
import { type TraceRequest, traceroute } from "../trace/engine.ts";
import { describeError, describeHop, type TraceError, type TraceHop } from "../trace/responses.ts";
import type { DoubtfulTooBig, MtuHop, TooBig } from "./result.ts";
import { ECHO, type Fate, type Line, searchPath, TRACE_BYTES, UDP } from "./size-search.ts";
import { conclude } from "./verdict.ts";

/** How a measurement ended. */
export type MtuOutcome = Awaited<ReturnType<typeof measureMtu>>;

/** How the caller takes part in a measurement. */
export interface MtuOptions extends RunOptions {
  /** Called with each hop as soon as it is measured; other hops can still change its row. */
  readonly onHop?: ((hop: MtuHop) => void) | undefined;
}

const HEADERS_BYTES = IPV6_HEADER_BYTES + 8;

const UDP_HEADER_BYTES = 8;

/** Ports of traceroute, which are closed almost everywhere: the first one, and how many. */
const FIRST_PORT = 33_434;

const PORTS = 100;

/** UDP packets of one measurement; each can be a line in the target's log. */
const MAX_UDP = 20;

/** Further than any path goes, as for a ping. */
const HOP_LIMIT = 64;

/** The least wait for an answer in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 200;

/** The least wait for the target while its distance is not known, in milliseconds. */
const UNKNOWN_WAIT_MS = 400;

/** The longest wait for an answer in milliseconds, whatever the time to the hop. */
const MAX_WAIT_MS = 2000;

/** How many times the time to a hop its answer is waited for; a later one counts too. */
const WAIT_FACTOR = 2;

/** The longest time of a measurement in milliseconds; then the bounds that are known are the result. */
export const LONGEST_SEARCH_MS = 14_500;

/** Different doubtful messages that are kept. */
const MAX_DOUBTFUL = 16;

/**
 * Measures the path MTU and where it narrows. Packet Too Big (RFC 8201) says which size to try next; where
 * none comes, the sizes that are answered decide (RFC 8899). Routers are measured with packets that expire
 * there. The target's echo reply is as large as the request; only UDP to a closed port tells the way there.
 */
export async function measureMtu(
  prober: Prober,
  request: TraceRequest,
  { signal: callersSignal, onHop }: MtuOptions = {},
) {
  const { target, scopeId = 0, timeoutMs, caller } = request;
  const { clock } = prober;
  const route = prober.route(target, scopeId, request.flowLabel);
  if (typeof route === "string") return { kind: "unreachable", code: route } as const;
  const end = new AbortController();
  using held = new DisposableStack();
  held.defer(clock.after(LONGEST_SEARCH_MS, () => end.abort()));
  held.defer(() => end.abort());
  const callers = prober.signalFor(callersSignal);
  const signal = AbortSignal.any([callers, end.signal]);
  const rows: TraceHop[] = [];
  const believed: TooBig[] = [];
  /** Each once. */
  const doubtful = new Map<string, DoubtfulTooBig>();
  let udpSent = 0;
  let error = null as TraceError | null;
  const probedPort = { protocol: "udp", port: FIRST_PORT + (route.flowLabel % PORTS) } as const;

  const doubt = (message: DoubtfulTooBig) => {
    const key = [message.from, message.mtu, message.doubt].join(" ");
    if (doubtful.size < MAX_DOUBTFUL) doubtful.set(key, message);
  };

  const waitMsOf = (line: Line) => {
    const row = line < ECHO ? rows[line - 1] : rows.find((each) => each?.end === "reached");
    // Rows of silent hops are holes, which `map` would keep.
    const furthestMs = Math.max(0, ...Array.from(rows, (each) => each?.rtt ?? 0));
    const leastMs = row ? MIN_WAIT_MS : UNKNOWN_WAIT_MS;
    const waitMs = Math.max(leastMs, WAIT_FACTOR * (row?.rtt ?? furthestMs));
    return Math.min(timeoutMs, MAX_WAIT_MS, waitMs);
  };

  /** True if a response shows that the packet got to the end of a line. */
  const isArrival = (response: Response, line: Line) => {
    if (response.kind === "reply") return true;
    const { type, code, from } = response;
    if (errorMeaning(type, code) === "hop") return line < ECHO;
    const addresses = [formatIpv6(target), rows[line - 1]?.ip];
    return type !== TYPE.packetTooBig && addresses.includes(formatIpv6(from));
  };

  const send = async (line: Line, sentBytes: number, late: () => void): Promise<Fate> => {
    if (line === UDP && ++udpSent > MAX_UDP) return { kind: "unknown" };
    let hasPassed = false;
    let tooBig: TooBig | undefined;
    const onResponse = (response: Response) => {
      if (response.kind === "error" && response.type === TYPE.packetTooBig)
        tooBig ??= aboutPacket(response.from, response.parameter, sentBytes);
      if (!isArrival(response, line)) return;
      // An error of the target itself shows that an echo request got there.
      if (line === ECHO && response.kind === "error") return path.pass(UDP, sentBytes);
      hasPassed = true;
      late();
    };
    const answer = await prober.probe({
      ...{ target, scopeId, ...route, signal, caller, hopLimit: Math.min(line, HOP_LIMIT) },
      ...(line === UDP && { probedPort }),
      payloadBytes: sentBytes - HEADERS_BYTES - (line === UDP ? UDP_HEADER_BYTES : 0),
      timeoutMs: waitMsOf(line),
      onResponse,
      onForged(from, type, mtu) {
        if (type !== TYPE.packetTooBig) return;
        doubt({ ...aboutPacket(from, mtu, sentBytes), doubt: "not-ours" });
      },
    });
    if (hasPassed) {
      // A router that says Packet Too Big and forwards the packet all the same lies.
      if (tooBig) doubt({ ...tooBig, doubt: "disproved" });
      return { kind: "passed" };
    }
    if (answer.kind === "refused" && answer.code === "EMSGSIZE") return { kind: "refused" };
    if (answer.kind === "unknown" || answer.kind === "aborted") return { kind: "unknown" };
    if (answer.kind !== "error") return { kind: "lost" };
    if (tooBig === undefined) {
      if (line !== UDP) error = describeError(answer, target);
      return { kind: "lost" };
    }
    const { mtu } = tooBig;
    if (mtu >= LEAST_MTU && mtu < sentBytes) {
      believed.push(tooBig);
      return { kind: "lost", hintBytes: mtu };
    }
    doubt({ ...tooBig, doubt: mtu < LEAST_MTU ? "below-1280" : "not-smaller" });
    return { kind: "lost" };
  };

  const rowOf = ({ hop, ip, hostname, end, details: { zone } = {} }: TraceHop): MtuHop => {
    const { atLeast, atMost } = path.boundsOf(end === "reached" ? UDP : hop);
    const isKnown = ip !== null && atLeast > 0;
    const sizes = { mtu: isKnown ? atLeast : null, atMost: isKnown ? atMost : null };
    return { hop, ip, hostname, ...sizes, ...(zone && { details: { zone } }) };
  };

  const path = searchPath({ send, clock, signal }, (hop) => {
    if (!signal.aborted) onHop?.(rowOf(rows[hop - 1] as TraceHop));
  });
  const onRow = (row: TraceHop) => {
    rows[row.hop - 1] = row;
    if (row.end === "reached") path.pass(ECHO, TRACE_BYTES);
    else if (row.ip !== null) path.add(row.hop);
  };
  const traceRequest = { ...request, flowLabel: route.flowLabel };
  const tracing = traceroute(prober, traceRequest, { signal, onHop: onRow });
  // If the target is silent, the result does not wait for the rest of the trace.
  const isSilent = path.settle().then(() => (path.boundsOf(ECHO).atLeast > 0 ? tracing : null));
  const traced = await Promise.race([tracing, isSilent]);
  if (traced?.kind === "unreachable") return traced;
  await path.finish();
  if (callers.aborted) return { kind: "aborted" } as const;
  const ended = rows.findIndex((row) => row?.end === "reached");
  const known = rows.slice(0, ended < 0 ? undefined : ended + 1);
  const shown = Array.from(known, (row, at) => row ?? describeHop(at + 1, [], target, target));
  const hops = (traced?.kind === "done" ? traced.hops : shown).map(rowOf);
  for (const hop of hops) onHop?.(hop);
  const [echo, way] = [path.boundsOf(ECHO), path.boundsOf(UDP)];
  for (const message of believed) {
    if (message.mtu < Math.max(echo.atLeast, way.atLeast))
      doubt({ ...message, doubt: "disproved" });
  }
  const placed = <Message extends TooBig>(message: Message) => {
    const hop = hops.find(({ ip }) => ip === message.from)?.hop ?? null;
    return { ...message, hop };
  };
  return {
    kind: "done" as const,
    ...route,
    /** From 1 to where the path ends, or the last hop that answered. */
    hops,
    ...conclude(echo, way, hops, believed.map(placed)),
    /** The last other error that answered an echo request; null also if the target answers all that gets through. */
    error: echo.atLeast > 0 && echo.limit !== "silence" ? null : error,
    doubtful: [...doubtful.values()].map(placed),
  };
}

/** What a Packet Too Big says about one of our packets; its sender's hop is found in the end. */
function aboutPacket(from: Ipv6Address, mtu: number, sent: number): TooBig {
  return { from: formatIpv6(from), hop: null, mtu, sent };
}
