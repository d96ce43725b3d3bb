/** The packets of a measurement, each of one size on one line, and their fates. */
import { formatIpv6 } from "../../addr/format.ts";
import type { Ipv6Address } from "../../addr/ipv6.ts";
import type { ProbeRequest, Prober } from "../../icmp/prober/prober.ts";
import type { Response } from "../../icmp/prober/response.ts";
import { errorMeaning } from "../../icmp/wire/icmp-error.ts";
import { IPV6_HEADER_BYTES, LEAST_MTU, TYPE } from "../../icmp/wire/packet.ts";
import { describeError, type TraceError, type TraceHop } from "../trace/responses.ts";
import type { DoubtfulTooBig, TooBig } from "./result.ts";
import { ECHO, type Fate, type Line, UDP } from "./size-search.ts";

const HEADERS_BYTES = IPV6_HEADER_BYTES + 8;
const UDP_HEADER_BYTES = 8;

/** Ports of traceroute, which are closed almost everywhere: the first one, and how many. */
const FIRST_PORT = 33_434;
const PORTS = 100;

/** UDP packets in one measurement; each can be a line in the target's log. */
const MAX_UDP = 20;

/** Further than any path goes, as for a ping. */
const HOP_LIMIT = 64;

/** The least wait for an answer in milliseconds: Linux sends one error in 100 ms to one address. */
const MIN_WAIT_MS = 200;

/** The least wait for the target while its distance is not known, in milliseconds. */
const UNKNOWN_WAIT_MS = 400;

/** The longest wait for an answer in milliseconds, whatever the time to the hop. */
const MAX_WAIT_MS = 2000;

/** How many round-trip times of a hop the wait for its answer lasts; a later answer counts too. */
const WAIT_FACTOR = 2;

/** Different doubtful messages that are kept. */
const MAX_DOUBTFUL = 16;

/** The fields that all packets of a measurement share. */
type Wish = Omit<ProbeRequest, "hopLimit">;

/**
 * Makes the function that sends a packet, and keeps the Packet Too Big messages.
 *
 * @param rows the hops that are known; their times decide how long a packet waits for its answer
 * @param onArrived called with the size of an echo request that the target answers with an error
 */
export function createPackets(
  prober: Prober,
  wish: Wish,
  rows: readonly TraceHop[],
  onArrived: (bytes: number) => void,
) {
  const { target, timeoutMs } = wish;
  const probedPort = {
    protocol: "udp",
    port: FIRST_PORT + ((wish.flowLabel ?? 0) % PORTS),
  } as const;
  const believed: TooBig[] = [];
  /** By sender, MTU and doubt, so that each is kept once. */
  const doubtful = new Map<string, DoubtfulTooBig>();
  let udpSent = 0;
  let error = null as TraceError | null;

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
      if (line === ECHO && response.kind === "error") return onArrived(sentBytes);
      hasPassed = true;
      late();
    };
    const answer = await prober.probe({
      ...wish,
      hopLimit: Math.min(line, HOP_LIMIT),
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
      // The router lies: it says Packet Too Big, and forwards the packet.
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

  return {
    send,
    doubt,
    believed,
    doubtful: () => [...doubtful.values()],
    /** The last other error that answered an echo request; null without one. */
    error: () => error,
  };
}

/** A Packet Too Big about one of our packets; the hop of its sender is found at the end. */
function aboutPacket(from: Ipv6Address, mtu: number, sent: number): TooBig {
  return { from: formatIpv6(from), hop: null, mtu, sent };
}
