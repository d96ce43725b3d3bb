import { equalIpv6 } from "../../addr/ipv6.ts";
import type { OutgoingPacket, PortState, ReceivedPacket } from "../socket/socket.ts";
import { type Extensions, errorMeaning, splitExtensions } from "../wire/icmp-error.ts";
import {
  COOKIE_BYTES,
  decodeInvokingPacket,
  decodeMessage,
  type EchoMessage,
  type ErrorMessage,
  echoChecksum,
} from "../wire/packet.ts";

type Received = Readonly<ReturnType<typeof receivedFor>>;

/** An echo reply with the probe's cookie. */
export interface EchoReply extends Received {
  readonly kind: "reply";
  /** True if it comes from another address than the target's, as replies of an anycast target do. */
  readonly isOtherSource: boolean;
  /** The state of the probed port; absent for an echo request. */
  readonly state?: PortState | undefined;
}

/** An ICMPv6 error about the probe. */
export interface ProbeError extends Received {
  readonly kind: "error";
  readonly type: number;
  readonly code: number;
  /** The MTU of a Packet Too Big in bytes, the pointer of a Parameter Problem, else 0. */
  readonly parameter: number;
  readonly extensions: Extensions;
}

/** A packet that answers a probe. */
export type Response = EchoReply | ProbeError;

/** A probe that has been sent. */
export interface SentProbe {
  readonly request: Pick<
    OutgoingPacket,
    "target" | "source" | "scopeId" | "flowLabel" | "probedPort"
  >;
  /** One character for each byte: an array would take more memory than all other fields. */
  readonly cookie: string;
  readonly sentMs: number;
}

/** The probes that a packet may answer, by `probeKey`. */
type SentProbes<Probe> = Pick<ReadonlyMap<number, Probe>, "get">;

/** The key of a probe: its identifier and its sequence. */
export function probeKey(identifier: number, sequence: number): number {
  return identifier * 2 ** 16 + sequence;
}

/** A probe and its response, or why a packet is no response. */
export type Match<Probe> =
  | { readonly probe: Probe; readonly response: Response; readonly isWithoutCookie?: boolean }
  /** Our identifier and sequence with another cookie, or an error about another destination or flow label. */
  | { readonly forged: Probe; readonly error: ErrorMessage | null }
  /** An identifier and sequence that are not in use. */
  | "unknown"
  /** An error that does not tell whether the probe arrives, such as a failed reassembly. */
  | "inconclusive"
  /** A message that cannot be decoded or does not concern an echo request. */
  | "malformed";

/**
 * Finds the probe that a packet answers.
 *
 * A reply must return the cookie. An error must quote the probe: its destination, and its cookie. The invoking
 * packet may end before the cookie, or have zeros from there on. Then it must have the flow label of the probe, or
 * 0, as translators from IPv4 write it, and a checksum that depends on 16 bits of the flow label.
 *
 * A SYN has no cookie: its key is 32 random bits, and an error about it must have its flow label, or 0. A packet about
 * a port must be about the probed port, and a reply of a port must come from the target.
 */
export function matchResponse<Probe extends SentProbe>(
  packet: ReceivedPacket,
  probes: SentProbes<Probe>,
): Match<Probe> {
  const message = decodeMessage(packet.message);
  if (message?.kind === "echo-reply") return matchReply(packet, message, probes);
  return message?.kind === "error" ? matchError(packet, message, probes) : "malformed";
}

function matchReply<Probe extends SentProbe>(
  packet: ReceivedPacket,
  { identifier, sequence, data }: EchoMessage,
  probes: SentProbes<Probe>,
): Match<Probe> {
  const probe = probes.get(probeKey(identifier, sequence));
  if (probe === undefined) return "unknown";
  const { target, scopeId, probedPort } = probe.request;
  // The kernel gives link-local senders a scope; it must be the target's.
  const isInScope = packet.scopeId === 0 || packet.scopeId === scopeId;
  const isOtherSource = !isInScope || !equalIpv6(packet.source, target);
  const { state } = packet;
  const cookieBytes = probedPort?.protocol === "tcp" ? 0 : COOKIE_BYTES;
  const isGenuine = data.length >= cookieBytes && hasCookie(data, probe);
  if (!isGenuine || !isAboutPortOf(packet, probe) || (probedPort && isOtherSource)) {
    return { forged: probe, error: null };
  }
  const response = { kind: "reply", isOtherSource, state, ...receivedFor(probe, packet) } as const;
  return { probe, response };
}

function matchError<Probe extends SentProbe>(
  packet: ReceivedPacket,
  error: ErrorMessage,
  probes: SentProbes<Probe>,
): Match<Probe> {
  const { invokingPacket, extensions } = splitExtensions(error);
  const invoking = decodeInvokingPacket(invokingPacket);
  if (invoking === null) return "malformed";
  const { echo, destination, flowLabel, checksum } = invoking;
  const probe = probes.get(probeKey(echo.identifier, echo.sequence));
  if (probe === undefined) return "unknown";
  const { source, target, flowLabel: sentLabel, probedPort } = probe.request;
  const isSyn = probedPort?.protocol === "tcp";
  const data = echo.data.some((byte) => byte !== 0) ? echo.data : NO_DATA;
  const isWithoutCookie = data.length < COOKIE_BYTES && !isSyn;
  const isTranslated = () =>
    flowLabel === 0 && (checksum - echoChecksum(source, target, sentLabel)) % 0xffff === 0;
  const hasLabel = () =>
    isSyn
      ? flowLabel === sentLabel || flowLabel === 0
      : sentLabel !== 0 && (flowLabel === sentLabel || isTranslated());
  const isOurs = equalIpv6(destination, target) && hasCookie(data, probe);
  const isProven = (!isWithoutCookie && !isSyn) || hasLabel();
  if (!isOurs || !isProven || !isAboutPortOf(packet, probe)) return { forged: probe, error };
  const { type, code, parameter } = error;
  if (errorMeaning(type, code) === "inconclusive") return "inconclusive";
  const received = receivedFor(probe, packet);
  const response: ProbeError = { kind: "error", type, code, parameter, extensions, ...received };
  return { probe, response, isWithoutCookie };
}

/** True if a packet is about the port of a probe, or if neither has a port. */
function isAboutPortOf({ probedPort }: ReceivedPacket, { request }: SentProbe): boolean {
  return (
    probedPort?.protocol === request.probedPort?.protocol &&
    probedPort?.port === request.probedPort?.port
  );
}

/** A router that cuts the invoking packet may fill it up with zeros; RFC 4884 section 4. */
const NO_DATA = new Uint8Array();

/** True if the data begins with the cookie, or with as much of it as fits. */
const hasCookie = (data: Uint8Array, { cookie }: SentProbe) =>
  cookie.startsWith(String.fromCharCode(...data.subarray(0, COOKIE_BYTES)));

function receivedFor(probe: SentProbe, packet: ReceivedPacket) {
  const { source: from, scopeId, hopLimit, receivedMs, readMs } = packet;
  // A stamp from before the sending shows a step of the wall clock; then the time of the read counts.
  const rttMs = (receivedMs >= probe.sentMs ? receivedMs : readMs) - probe.sentMs;
  return {
    from,
    /** Index of the interface of a link-local sender, 0 otherwise. */
    scopeId,
    /** The hop limit of the received packet. */
    hopLimit,
    /** Milliseconds from sending to the kernel's receipt. */
    rttMs,
  };
}
