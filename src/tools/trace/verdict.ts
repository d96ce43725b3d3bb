import { inWords, listText, plural } from "../../util/text.ts";
import { hopsText } from "../report.ts";
import type { TraceDetails, TraceResult } from "./result.ts";

/** The conclusion of a trace, from its hops, its end, and the paths if there may be several. */
export function traceVerdict(
  hops: TraceResult["hops"],
  end: Pick<TraceDetails, "reason" | "error" | "loop" | "otherSource" | "refused">,
  found: Pick<TraceDetails, "paths" | "labels" | "complete" | "perPacket"> | null,
) {
  const sentences = found === null ? [endOf(hops, end)] : [...pathSentences(found)];
  return { code: end.reason, text: sentences.join(" ") };
}

/** The sentence about a loop, and up to which hop its routers answered. */
export function loopText(loop: NonNullable<TraceDetails["loop"]>, last: number): string {
  const who = listText(loop.addresses.map((ip) => ip ?? "a silent router"));
  return `There is a loop between hops ${loop.from} and ${loop.to}: ${who} answered in turn up to hop ${last}, ${plural(loop.repeats, "time")} again, and the target did not reply.`;
}

function endOf(
  hops: TraceResult["hops"],
  { reason, error, loop, otherSource, refused }: Parameters<typeof traceVerdict>[1],
): string {
  if (error !== undefined) {
    const who = error.fromTarget ? "The target" : error.from;
    // The sender may have rate-limited its answers to nearer probes.
    const orNearer = hops.at(-2)?.ip === null ? " or nearer" : "";
    return `${who} answered ${inWords(error.name)} at hop ${hops.length}${orNearer}, and the path ends there.`;
  }
  const last = hops.findLast(({ ip }) => ip !== null);
  if (loop !== undefined) return loopText(loop, hops.length);
  switch (reason) {
    case "reached":
      return `The target replied at hop ${hops.length}${otherSource === undefined ? "" : ` from ${otherSource}`}.`;
    case "not-sent":
      return `This machine could not send probes ${last === undefined ? "to any hop" : `beyond hop ${last.hop}`} (${refused?.at(-1)?.errno}).`;
    case "max-hops":
      return `No reply from the target within ${plural(hops.length, "hop")} (the limit you set).`;
    default:
      return last === undefined
        ? "No hop answered, and the target did not reply."
        : `The last answer came from hop ${last.hop} (${last.ip}); no hop behind it answered, and the target did not reply.`;
  }
}

function* pathSentences({ paths = [], labels = 0, complete, perPacket }: Partial<TraceDetails>) {
  const found = `${plural(paths.length, "path")} with ${plural(labels, "flow label")}`;
  yield complete
    ? `Found ${found}. At each router, a further next hop is unlikely (5 %).`
    : `Found at least ${found}; there may be more.`;
  const failing = paths.flatMap(({ reached }, index) => (reached ? [] : [index + 1]));
  if (failing.length === paths.length) {
    yield paths.length === 1 ? "It does not reach the target." : "None of them reaches the target.";
  } else if (failing.length > 0)
    yield `${failing.length === 1 ? "Path" : "Paths"} ${listText(failing)} of ${paths.length} did not reach the target.`;
  if (perPacket !== undefined) {
    yield `At ${hopsText(perPacket)} one flow label was answered by different addresses: a router chooses by packet, or the path changed.`;
  }
}
