/** The differences between two paths to one address. */
import { listText } from "../util/text.ts";
import type { Difference } from "./result.ts";

/** The parts of the documents of trace, mtr and mtu that show the path. */
interface PathDocument {
  readonly ip?: string;
  readonly hops?: readonly PathHop[];
  readonly details?: {
    readonly source?: string;
    readonly flowLabel?: number;
    readonly complete?: boolean;
    readonly perPacket?: readonly number[];
    readonly graph?: { readonly nodes: readonly PathHop[] };
  };
}

interface PathHop {
  readonly hop: number;
  readonly ip: string | null;
  /** How often each address answered, in a document of mtr. */
  readonly addresses?: readonly { readonly ip: string; readonly received: number }[];
  readonly details?: { readonly unanswered?: string; readonly addresses?: readonly string[] };
}

/** How often each address answered, by hop. */
type Answers = ReadonlyMap<number, ReadonlyMap<string, number>>;

/** The greatest chance that a router that chooses by packet looks like a change. */
const CHANCE = 0.001;

/**
 * The first hop of each part in which the paths differ. Silence says nothing. Two flows say nothing either, because
 * routers choose by flow, unless both documents have all next hops of every router. If a router chooses by packet, the
 * answers must be too many for chance.
 */
export function pathDifferences(before: PathDocument, after: PathDocument): Difference[] {
  if (before.ip !== after.ip) return [];
  const found = isOneFlow(before, after) ? differentHops(before, after) : [];
  const hops = new Map([...graphHops(before, after), ...found]);
  return [...hops.keys()]
    .toSorted((a, b) => a - b)
    .filter((hop) => !hops.has(hop - 1))
    .map((hop) => {
      const [old = [], now = []] = hops.get(hop) ?? [];
      const text = `At hop ${hop}, ${listText(now)} is in place of ${listText(old)}.`;
      return { kind: "path", text, before: [...old], after: [...now], hop };
    });
}

type Both = readonly [before: readonly string[], after: readonly string[]];

const isOneFlow = ({ details: one }: PathDocument, { details: other }: PathDocument) =>
  one?.flowLabel === other?.flowLabel && one?.source === other?.source;

/** True if both documents are of one flow, and more hops answered in the first one. */
export const showsMore = (one: PathDocument, other: PathDocument): boolean =>
  one.ip === other.ip && isOneFlow(one, other) && answersOf(one).size > answersOf(other).size;

/** The hops at which all answers to one flow came from other addresses than before. */
function differentHops(before: PathDocument, after: PathDocument): [number, Both][] {
  const [old, now] = [answersOf(before), answersOf(after)];
  const choosesByPacket = [old, now].some((answers) =>
    [...answers.values()].some(({ size }) => size > 1),
  );
  return [...old].flatMap(([hop, was]) => {
    const is = now.get(hop);
    if (!is || [...is.keys()].some((ip) => was.has(ip))) return [];
    if (choosesByPacket && chanceOfDisjoint([...was.values()], [...is.values()]) > CHANCE)
      return [];
    return [[hop, [[...was.keys()], [...is.keys()]]]];
  });
}

function answersOf({ hops = [], details }: PathDocument): Answers {
  const perPacket = details?.perPacket ?? [];
  const rows = hops.flatMap(({ hop, ip, addresses, details: about }) => {
    // An answer to other traces need not be on the path of this flow.
    if (ip === null || about?.unanswered || perPacket.includes(hop)) return [];
    const ips = about?.addresses ?? [ip];
    const counts = addresses ?? ips.map((each) => ({ ip: each, received: 1 }));
    return [[hop, new Map(counts.map((each) => [each.ip, each.received]))] as const];
  });
  return new Map(rows);
}

/** The hops at which one node is new and another is gone, if both graphs have all next hops of every node. */
function graphHops(before: PathDocument, after: PathDocument): [number, Both][] {
  if (!before.details?.complete || !after.details?.complete) return [];
  const byHop = ({ details }: PathDocument) =>
    Map.groupBy((details?.graph?.nodes ?? []).filter(isAnswer), ({ hop }) => hop);
  const [old, now] = [byHop(before), byHop(after)];
  const changing = [before, after].flatMap(({ details }) => details?.perPacket ?? []);
  return [...old].flatMap(([hop, rows]) => {
    const ips = [rows, now.get(hop) ?? []].map((each) => new Set(each.map(({ ip }) => ip ?? "")));
    const [was, is] = ips as [Set<string>, Set<string>];
    const [gone, come] = [[...was.difference(is)], [...is.difference(was)]];
    const isChanged = gone.length > 0 && come.length > 0 && !changing.includes(hop);
    return isChanged ? [[hop, [gone, come]]] : [];
  });
}

const isAnswer = ({ ip, details }: PathHop) => ip !== null && details?.unanswered === undefined;

/**
 * The chance that no address is on both sides if one router chooses among all of them for each packet: of all ways to
 * divide the answers into two sides of these sizes, the share in which no address is on both.
 */
function chanceOfDisjoint(before: readonly number[], after: readonly number[]): number {
  const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);
  const [least = 0, most = 0] = [before, after].map(total).toSorted((a, b) => a - b);
  let deals = 1;
  // Each factor is at least 2, so this ends early, whatever number of answers a document claims.
  for (let chosen = 1; chosen <= least; chosen++) {
    deals *= (most + chosen) / chosen;
    if (deals === Infinity) return 0;
  }
  /** By a number of answers: how many sets of addresses have so many. */
  const choices = new Map([[0, 1]]);
  for (const count of [...before, ...after]) {
    for (const [sum, ways] of [...choices].toSorted(([a], [b]) => b - a)) {
      if (sum + count <= least) choices.set(sum + count, (choices.get(sum + count) ?? 0) + ways);
    }
  }
  return (choices.get(least) ?? 0) / deals;
}
