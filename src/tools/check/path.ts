/** The way to an address, by the measurements of a check. */
import type { Call } from "../../api/endpoint.ts";
import { mtr } from "../mtr/endpoint.ts";
import type { MtrResult } from "../mtr/result.ts";
import { mtu } from "../mtu/endpoint.ts";
import type { MtuResult } from "../mtu/result.ts";
import { traceroute } from "../trace/endpoint.ts";
import type { Hop, TraceResult } from "../trace/result.ts";
import { judgeMtr, judgeMtu, judgeTrace } from "./judge.ts";
import { worked } from "./ledger.ts";
import type { CheckPath, Verdict } from "./result.ts";
import type { RunningCheck } from "./running.ts";

/** Rounds of mtr. */
const ROUNDS = "20";

/** The measurements of the way to an address that have ended. */
export interface Way {
  readonly ip: string;
  mtu?: MtuResult;
  mtr?: MtrResult;
  trace?: TraceResult;
}

/** True if another machine on the way has answered. */
export const isHeard = (way?: Way) =>
  [way?.mtr, way?.trace].some((measured) =>
    measured?.hops.some(({ ip }) => ip !== null && ip !== measured.details.source),
  );

type PathHop = CheckPath["hops"][number];

const heardIn = (hops: readonly PathHop[]) => hops.filter(({ ip }) => ip !== null).length;

const shownHop = ({ hop, ip, hostname, details }: Omit<PathHop, "rtt">, rtt: number | null) => {
  const { zone, network, nameLate } = details ?? {};
  const known = {
    ...(zone && { zone }),
    ...(network && { network }),
    ...(nameLate && { nameLate }),
  };
  return { hop, ip, hostname, rtt, ...(Object.keys(known).length > 0 && { details: known }) };
};

/** The hops of a trace, with the fields that a check shows. */
const tracedHops = (hops: TraceResult["hops"]) => hops.map((hop) => shownHop(hop, hop.rtt));

/** The hops by the measurement that heard more of them, and the hop behind which the path breaks. */
export function pathOf({ ip, mtu, mtr, trace }: Way, { code, at }: Pick<Verdict, "code" | "at">) {
  const rounds = mtr?.hops.map((hop) => shownHop(hop, hop.p50));
  const traced = tracedHops(trace?.hops ?? []);
  const heard = rounds && heardIn(rounds) >= heardIn(traced) ? rounds : traced;
  if (heard.length === 0) return undefined;
  // The target also answers with greater hop limits, in rounds in which a nearer reply was lost.
  const end = heard.findIndex((hop) => hop.ip === ip);
  const hops = end === -1 ? heard : heard.slice(0, end + 1);
  const hopOf = (router?: string) => hops.find((hop) => hop.ip === router)?.hop;
  const isSilent = code === "port-silent" || code === "no-answer";
  // The last hop that answered before the silence.
  const isLost = isSilent && !trace?.details.reached;
  const last = isLost && traced.findLast((hop) => hop.ip !== null)?.hop;
  const narrow = code === "mtu-black-hole" && mtu?.lastLarge;
  const brokenAfter = hopOf(at) || narrow || last;
  const reached = hopOf(ip) === hops.at(-1)?.hop;
  return { ip, reached, hops, ...(brokenAfter && { brokenAfter }) };
}

/** Shows each hop of a trace when it is first heard. */
function pathShower({ onEvent }: RunningCheck, ip: string): Call["onEvent"] {
  const found: Hop[] = [];
  return (event, data) => {
    if (event !== "hop") return;
    const hop = data as Hop;
    const isNew = found[hop.hop - 1]?.ip == null;
    found[hop.hop - 1] = hop;
    // A network decides how often a hop changes.
    if (!isNew) return;
    const hops = tracedHops(found.filter((each) => each !== undefined));
    onEvent?.("path", { ip, reached: hop.ip === ip, hops } satisfies CheckPath);
  };
}

/** Measures the way to an address: its path MTU, its loss and its hops. */
export async function measurePath(check: RunningCheck, ip: string): Promise<Way> {
  const heard = check.rows.filter((row) => row.ip === ip && worked(row)).map(({ kind }) => kind);
  const [isOpen, isSilent] = [heard.includes("connect"), !heard.includes("echo")];
  const overIcmp = { target: ip };
  const overTcp = { target: ip, protocol: "tcp", port: `${check.port}` };
  const way: Way = { ip };
  await Promise.all([
    check.take("mtu", ip, async () => {
      way.mtu = await check.ask<MtuResult>(mtu, overIcmp);
      return judgeMtu(way.mtu);
    }),
    check.take("mtr", ip, async () => {
      // A port gets few SYNs, so the rounds send SYNs only if the port is open and echo requests are not answered.
      const isOverTcp = isOpen && isSilent;
      const texts = { ...(isOverTcp ? overTcp : overIcmp), rounds: ROUNDS };
      way.mtr = await check.ask<MtrResult>(mtr, texts);
      return judgeMtr(way.mtr, isOverTcp);
    }),
    check.take("trace", ip, async () => {
      // Over TCP in that case too, and where the port alone is silent.
      const texts = isOpen === isSilent ? overTcp : overIcmp;
      const onEvent = pathShower(check, ip);
      way.trace = await check.ask<TraceResult>(traceroute, texts, { onEvent });
      return judgeTrace(way.trace);
    }),
  ]);
  return way;
}
