import { networkName, type Tone, toneOf } from "../../tools/report.ts";
import { listText, numberText, splitSentence } from "../../util/text.ts";

/** The parts of the documents of tools that are compared. */
interface Measured {
  /** The address of the target. */
  readonly ip?: string;
  readonly hops?: readonly HopOf[];
  readonly mtu?: number | null;
  readonly details?: {
    readonly verdict?: { readonly code: string; readonly text: string; readonly headline?: string };
    readonly path?: { readonly hops: readonly HopOf[] };
  };
}

interface HopOf {
  readonly ip?: string | null;
  readonly rtt?: number | null;
  readonly details?: {
    readonly network?: { readonly asn: number | null; readonly name: string | null } | undefined;
  };
}

/** The outcome from a place: its document, or the message of its error; neither while it measures. */
export interface Place {
  readonly location: string;
  readonly document: object | null;
  readonly problem: string | null;
}

const measuredOf = ({ document }: Place) => (document ?? {}) as Measured;

function toneOfPlace(place: Place): Tone | null {
  if (place.problem !== null) return "bad";
  const { verdict } = measuredOf(place).details ?? {};
  return verdict === undefined ? null : toneOf(verdict.code);
}

/** The outcome from a place in a sentence. */
function sentenceOf(place: Place): string {
  const { verdict } = measuredOf(place).details ?? {};
  return place.problem ?? verdict?.headline ?? splitSentence(verdict?.text ?? "")[0];
}

/** The worst first. */
const TONES: readonly Tone[] = ["bad", "warn", "good"];

const all = ({ length }: readonly Place[]) => (length === 2 ? "both" : `all ${numberText(length)}`);

/** From how many places the outcome is good, and the worst outcome with its document; null before all have ended. */
export function answerOfPlaces(places: readonly Place[]) {
  const tones = places.map(toneOfPlace);
  if (places.length < 2 || tones.includes(null)) return null;
  const good = tones.filter((tone) => tone === "good").length;
  const isBad = tones.every((tone) => tone === "bad");
  const tone: Tone = good === places.length ? "good" : isBad ? "bad" : "warn";
  const worst = TONES.find((tone) => tones.includes(tone)) ?? null;
  const shown = places[tones.indexOf(worst)];
  const isOne = new Set(places.map(sentenceOf)).size === 1;
  const some =
    good === 0 && places.length === 2
      ? "neither"
      : `${numberText(good)} of ${numberText(places.length)}`;
  const of = good === places.length ? all(places) : some;
  const text = shown ? sentenceOf(shown) : "";
  const from = !isOne && good < places.length && shown ? `From ${shown.location}: ` : "";
  return {
    tone,
    word: good === 0 && !isBad ? "Partly." : `From ${of} ${of === "neither" ? "place" : "places"}.`,
    headline: `${from}${text}`,
    about: shown?.document ?? null,
  };
}

const hopsOf = (place: Place) => {
  const { hops, details } = measuredOf(place);
  return details?.path?.hops ?? hops ?? [];
};

const networkOf = ({ details }: HopOf) => (details?.network ? [networkName(details.network)] : []);

const networksOf = (place: Place) => new Set(hopsOf(place).flatMap(networkOf));

/** How far the times of like ways may differ: a share, and milliseconds. */
const ALIKE = { share: 0.1, ms: 1 };

/**
 * The words for ways from all places that are alike: as many hops by the same networks (or routers, if no network is
 * known), almost the same times, and the same answer. Null if they are not alike, or not all have ended.
 */
export function likenessOf(places: readonly Place[]): string | null {
  if (places.length < 2) return null;
  const ways = places.map((place) => {
    const { ip, details: { verdict } = {} } = measuredOf(place);
    const hops = hopsOf(place).map((hop) => networkOf(hop)[0] ?? hop.ip ?? "");
    return verdict && hops.length > 0 ? JSON.stringify([verdict.code, ip, hops]) : null;
  });
  const times = places.map((place) => hopsOf(place).findLast(({ rtt }) => rtt != null)?.rtt ?? 0);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  const isAlike = ways[0] !== null && new Set(ways).size === 1;
  return isAlike && most - least <= Math.max(ALIKE.ms, ALIKE.share * most)
    ? `the same from ${all(places)}`
    : null;
}

/** The differences between places in a sentence: the networks on only some of the ways, and the path MTU. */
export function differenceOfPlaces(places: readonly Place[]): string {
  const measured = places.filter(({ document }) => document !== null);
  // A way without a known network may go by any of them.
  const known = measured.filter((place) => networksOf(place).size > 0);
  const networks = known.map(networksOf);
  const parts: string[] = [];
  const common = networks.reduce((both, each) => both.intersection(each), networks[0] ?? new Set());
  const own = networks.map((each) => each.difference(common));
  const ways = Map.groupBy(known.entries(), ([at]) => [...(own[at] ?? [])].join(" and "));
  if (ways.size > 1) {
    const each = [...ways].map(([names, rows]) => {
      const where = listText(rows.map(([, { location }]) => location));
      const goes = rows.length === 1 ? "goes" : "go";
      return names === "" ? `${where} ${goes} by none of these` : `${where} ${goes} by ${names}`;
    });
    parts.push(
      each.toSorted((a, b) => Number(a.endsWith("these")) - Number(b.endsWith("these"))).join("; "),
    );
  }
  const mtus = Map.groupBy(measured, (place) => measuredOf(place).mtu ?? null);
  if (mtus.size > 1) {
    const each = [...mtus].map(
      ([mtu, rows]) =>
        `${mtu === null ? "not known" : `${mtu} bytes`} from ${listText(rows.map(({ location }) => location))}`,
    );
    parts.push(`the path MTU is ${each.join(", ")}`);
  }
  return parts.length === 0 ? "" : `What differs: ${parts.join("; ")}.`;
}
