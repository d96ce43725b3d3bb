import { HEADER_BYTES, PAYLOAD_BYTES, TYPE } from "../icmp/wire/packet.ts";
import { mergeRound, outcomesIn } from "../tools/mtr/report.ts";
import type { MtrResult, MtrRound } from "../tools/mtr/result.ts";
import type { PingResult } from "../tools/ping/result.ts";
import type { TraceResult } from "../tools/trace/result.ts";

/** The circumstances of a result. */
export interface AtlasRun {
  /** The data of all events before the result, in order. */
  readonly events: readonly unknown[];
  /** Unix time in milliseconds, as `endMs`. */
  readonly startMs: number;
  readonly endMs: number;
}

/** Bytes of data in a probe: a SYN has none, and a UDP packet has an echo request. */
const DATA_BYTES = { icmp: PAYLOAD_BYTES, tcp: 0, udp: HEADER_BYTES + PAYLOAD_BYTES };

const unixTime = (ms: number) => Math.floor(ms / 1000);

/**
 * The fields of every result. The two versions say which structure it has. RIPE Atlas counts its probes and
 * measurements from 1, so 0 means neither; a probe that does not know when its clock was set says -1.
 */
function headOf(
  type: "ping" | "traceroute",
  { target, ip, details }: PingResult | TraceResult | MtrResult,
  { startMs }: AtlasRun,
) {
  const { source, port: { protocol } = { protocol: "icmp" as const } } = details;
  return {
    ...{ fw: 5000, mver: "2.2.1", lts: -1, msm_id: 0, prb_id: 0 },
    ...{ msm_name: type === "ping" ? "Ping" : "Traceroute", type, timestamp: unixTime(startMs) },
    ...{ af: 6, dst_name: target, dst_addr: ip, src_addr: source, from: source },
    ...{ proto: protocol.toUpperCase(), size: DATA_BYTES[protocol] },
  };
}

const NO_REPLY = { x: "*" } as const;

/** The result of a ping as RIPE Atlas has it. */
export function atlasPing(result: PingResult, run: AtlasRun): object {
  const { results, stats, details } = result;
  const firstTtl = results[0]?.ttl;
  const replies = results.map(({ seq, rtt, ttl, details: other }) => ({
    seq,
    reply: { rtt, ...(ttl !== firstTtl && { ttl }), ...(other && { src_addr: other.from }) },
  }));
  const others = details.lost.map((lost) => ({ seq: lost.seq, reply: lostReply(lost) }));
  return {
    ...headOf("ping", result, run),
    ...(firstTtl !== undefined && { ttl: firstTtl }),
    result: [...replies, ...others].toSorted((a, b) => a.seq - b.seq).map(({ reply }) => reply),
    dup: details.duplicates,
    sent: stats.transmitted,
    rcvd: stats.received,
    // Without a reply, RIPE Atlas has -1.
    ...{ min: stats.min ?? -1, avg: stats.avg ?? -1, max: stats.max ?? -1 },
  };
}

function lostReply(lost: PingResult["details"]["lost"][number]): object {
  if ("errno" in lost) return { error: `sendto failed: ${lost.errno}` };
  if ("from" in lost) return { error: `${lost.reason} from ${lost.from}` };
  return NO_REPLY;
}

function tracerouteOf(result: TraceResult | MtrResult, run: AtlasRun, hops: readonly object[]) {
  return {
    ...headOf("traceroute", result, run),
    endtime: unixTime(run.endMs),
    // Both choose one of several equal paths.
    paris_id: result.details.flowLabel,
    result: hops,
  };
}

/** The result of a trace as RIPE Atlas has it. */
export function atlasTrace(result: TraceResult, run: AtlasRun): object {
  const { refused = [] } = result.details;
  const hops = result.hops.map((hop) => {
    const errno = refused.find((each) => each.hop === hop.hop)?.errno;
    if (hop.rtt === null && errno !== undefined) {
      return { hop: hop.hop, error: `sendto failed: ${errno}` };
    }
    return { hop: hop.hop, result: hop.rtt === null ? [NO_REPLY] : repliesOf(hop, result) };
  });
  return tracerouteOf(result, run, hops);
}

type Hop = TraceResult["hops"][number];

function repliesOf({ hop, ip, rtt, details = {} }: Hop, result: TraceResult): readonly object[] {
  const { rtts = [rtt], addresses = [ip], mtu, replyHopLimit: ttl } = details;
  const isEnd = hop === result.hops.length;
  const { reached, error, port } = result.details;
  const outcome = {
    ...(isEnd && reached && !port && { size: PAYLOAD_BYTES }),
    ...(isEnd && error && errorOf(error)),
    ...(mtu !== undefined && { mtu }),
  };
  // If there are more times than addresses, only the first pair is known to belong together.
  const times =
    addresses.length === 1 || addresses.length === rtts.length ? rtts : rtts.slice(0, 1);
  return times.map((each, at) => ({
    ...{ from: addresses[at] ?? ip, rtt: each },
    // It is that of the first answer.
    ...(at === 0 && ttl !== undefined && { ttl }),
    ...outcome,
  }));
}

/** The letters for codes of Destination Unreachable. */
const UNREACHABLE = ["N", "A", "h", "H"] as const;

function errorOf({ type, code }: NonNullable<TraceResult["details"]["error"]>): object {
  // From a closed port, the target itself answers.
  const CLOSED_PORT = 4;
  if (type !== TYPE.destinationUnreachable || code === CLOSED_PORT) return {};
  return { err: UNREACHABLE[code] ?? code };
}

/** The rounds as one traceroute with a probe a round for each hop; each event adds one round. */
export function atlasMtr(result: MtrResult, run: AtlasRun): object {
  const replies = result.hops.map((): object[] => []);
  let merged: MtrRound | undefined;
  for (const round of run.events as readonly MtrRound[]) {
    for (const { hop, ip, rtt } of outcomesIn(merged, round)) {
      replies[hop - 1]?.push(rtt === null ? NO_REPLY : { from: ip, rtt });
    }
    merged = mergeRound(merged, round);
  }
  const hops = result.hops.map(({ hop }, at) => ({ hop, result: replies[at] }));
  return tracerouteOf(result, run, hops);
}
