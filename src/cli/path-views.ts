import type { MtrResult, MtrRound } from "../routes/mtr.ts";
import type { MtuResult } from "../routes/mtu.ts";
import type { TraceResult } from "../routes/traceroute.ts";
import type { Line, Part, Screen } from "./screen.ts";
import type { View } from "./tool.ts";
import { milliseconds, NO_TIME, plural, translatorLines } from "./views.ts";

type Hop = TraceResult["hops"][number];
type MtrHop = MtrResult["hops"][number];
type MtuHop = MtuResult["hops"][number];

/** A target as it was given, and its address if that is another text. */
function titleOf(target: string, result: { readonly ip: string } | null): Part {
  return ["bold", result === null || result.ip === target ? target : `${target} (${result.ip})`];
}

/** A line for each hop, which changes in a terminal when more is known of the hop, and how the trace ended. */
export function traceView(target: string, screen: Screen): View {
  const hops: Hop[] = [];
  screen.print([["dim", `trace to ${target}`]]);
  return {
    event(data, name) {
      if (name !== "hop") return;
      const hop = data as Hop;
      hops[hop.hop - 1] = hop;
      screen.show(hopLines(hops));
    },
    end(data) {
      const result = data as TraceResult | null;
      const lines = hopLines(result?.hops ?? hops);
      if (screen.isTerminal) screen.show(lines);
      else screen.print(...lines);
      const { reached = false, paths = [] } = result?.details ?? {};
      const isReached = reached || paths.some((path) => path.reached);
      screen.print(
        [],
        [
          titleOf(target, result),
          " ",
          [isReached ? "green" : "yellow", result === null ? "interrupted" : endOf(result)],
        ],
        ...(result === null
          ? []
          : [...translatorLines(result.details), ...foundPathLines(result.details)]),
      );
      return isReached;
    },
  };
}

/** The lines of a trace; a hop that is not known yet is empty. */
function hopLines(hops: readonly (Hop | undefined)[]): Line[] {
  const widthOf = (text: string | null | undefined) => text?.length ?? 0;
  const width = Math.max(0, ...Array.from(hops, (hop) => widthOf(hop?.ip)));
  return Array.from(hops, (hop, index) => {
    const number: Part = ["dim", String(index + 1).padStart(3)];
    if (hop === undefined) return [number];
    const { ip, rtt, hostname } = hop;
    if (ip === null || rtt === null) return [number, ["dim", `  ${NO_TIME}  no reply`]];
    return [
      number,
      `  ${milliseconds(rtt)}  `,
      hostname === null && notes(hop) === "" ? ip : ip.padEnd(width),
      ["bold", hostname === null ? "" : `  ${hostname}`],
      ["dim", notes(hop)],
    ];
  });
}

/** What else is known of a hop of a trace. */
function notes({ ip, details = {} }: Hop): string {
  const { addresses = [], mpls = [], mtu } = details;
  const others = addresses.filter((address) => address !== ip);
  return joined([
    ...whose(details),
    ...(others.length === 0 ? [] : [`also ${others.join(" ")}`]),
    ...(mpls.length === 0 ? [] : [`MPLS ${mpls.map(({ label }) => label).join(" ")}`]),
    ...(mtu === undefined ? [] : [`MTU ${mtu}`]),
  ]);
}

/** Whose network a hop belongs to, and the interface to it. */
function whose({ network, zone }: Pick<NonNullable<Hop["details"]>, "network" | "zone">): string[] {
  const asn = network?.asn ? `AS${network.asn}` : null;
  return [
    ...[asn, network?.name].filter((each) => typeof each === "string"),
    ...(zone === undefined ? [] : [`on ${zone}`]),
  ];
}

const joined = (notes: readonly string[]) => notes.map((note) => `  ${note}`).join("");

function endOf({ hops, details }: TraceResult): string {
  const { reason, error, otherSource, paths = [] } = details;
  if (paths.length > 1) {
    return `reached on ${paths.filter(({ reached }) => reached).length} of ${paths.length} paths`;
  }
  if (error !== undefined) return notReached(error);
  if (reason !== "reached") return `not reached: ${reason}`;
  const other = otherSource === undefined ? "" : `, which replied as ${otherSource}`;
  return `reached in ${plural(hops.length, "hop")}${other}`;
}

const notReached = ({ name, from }: NonNullable<TraceResult["details"]["error"]>) =>
  `not reached: ${name} from ${from}`;

/** Each path that was looked for, with a flow label that takes it, and where it differs from the first. */
function foundPathLines({
  complete,
  labels,
  perPacket,
  paths,
  graph,
}: TraceResult["details"]): Line[] {
  if (paths === undefined) return [];
  const first = paths[0]?.addresses ?? [];
  const names = new Map(graph?.nodes.map(({ ip, hostname }) => [ip, hostname]));
  const found = `${plural(paths.length, "path")} for ${plural(labels ?? 0, "flow label")}`;
  const all = `${found}; with 95 % confidence there are no others`;
  const perHop =
    perPacket === undefined ? "" : `the address changes by packet at hop ${perPacket.join(", ")}`;
  const widest = Math.max(...paths.map(({ flowLabel }) => String(flowLabel).length));
  return [
    [],
    [["bold", complete ? all : `at least ${found}`]],
    ...(perHop === "" ? [] : [[["yellow", perHop] as const]]),
    ...paths.flatMap(({ flowLabel, labels: count, reached, reason, addresses }): Line[] => [
      [
        `--flow-label ${String(flowLabel).padEnd(widest)}`,
        ["dim", `  ${String(count).padStart(3)} of ${labels}  `],
        reached ? plural(addresses.length, "hop") : ["red", `not reached: ${reason}`],
      ],
      ...addresses.flatMap((ip, at): Line[] => {
        const name = names.get(ip) ?? null;
        const number: Part = ["dim", String(at + 1).padStart(5)];
        if (ip === first[at]) return [];
        return [[number, `  ${ip ?? "no reply"}`, ["bold", name === null ? "" : `  ${name}`]]];
      }),
    ]),
  ];
}

/** The titles of the columns of `mtrLines` but the last. */
const MTR_TITLES = "hop loss sent  last   avg  best worst stdev  ";

/** A table of all hops, which changes in a terminal after each round, and where the path ends. */
export function mtrView(target: string, screen: Screen): View {
  let last: MtrRound = { round: 0, hops: [] };
  screen.print([["dim", `mtr to ${target}, times in ms`]]);
  return {
    event(data) {
      last = data as MtrRound;
      screen.show(mtrLines(last.hops, screen.columns, `address, round ${last.round}`));
    },
    end(data) {
      const result = data as MtrResult | null;
      screen.finish(mtrLines(result?.hops ?? last.hops, screen.columns, "address"));
      const title = titleOf(target, result);
      const end: Line[] =
        result === null
          ? [[title, " ", ["yellow", `interrupted after ${plural(last.round, "round")}`]]]
          : [
              [title, " ", mtrEnd(result)],
              ...translatorLines(result.details),
              ...takenPathLines(result.details.paths),
            ];
      screen.print([], ...end);
      return result?.details.reached ?? false;
    },
  };
}

/** The lines of the table; if addresses and names do not fit, names alone. */
function mtrLines(hops: readonly MtrHop[], columns: number, lastTitle: string): Line[] {
  const width = Math.max(0, ...hops.map(({ ip }) => ip?.length ?? 0));
  const names = Math.max(0, ...hops.map(({ hostname }) => hostname?.length ?? 0));
  const isWide = MTR_TITLES.length + width + 2 + names < columns;
  return [
    [["dim", `${MTR_TITLES}${lastTitle}`]],
    ...hops.map((hop): Line => {
      const { ip, hostname, sent, received, last, avg, min, max, stdDev } = hop;
      const number: Part = ["dim", String(hop.hop).padStart(3)];
      const counts = `${percentOf(hop).padStart(5)}${String(sent).padStart(5)}`;
      if (ip === null) return [number, ["dim", `${counts}${" ".repeat(32)}no reply`]];
      const isLossy = received < sent && !hop.limited;
      const address = hostname === null ? ip : isWide ? ip.padEnd(width) : "";
      const name = hostname === null ? "" : isWide ? `  ${hostname}` : hostname;
      return [
        number,
        isLossy ? ["red", counts] : counts,
        [last, avg, min, max, stdDev].map((time) => shortTime(time ?? 0).padStart(6)).join(""),
        `  ${address}`,
        ["bold", name],
        ["dim", mtrNotes(hop)],
      ];
    }),
  ];
}

/** The loss in whole percent, never 0 or 100 if that is not exact. */
function percentOf({ loss }: MtrHop): string {
  if (loss === null) return "";
  if (loss === 0 || loss === 100) return `${loss}%`;
  return `${Math.min(99, Math.max(1, Math.round(loss)))}%`;
}

/** A time in at most five characters, up to 99,999 ms. */
const shortTime = (ms: number) => ms.toFixed(ms < 99.995 ? 2 : ms < 999.95 ? 1 : 0);

function mtrNotes({ limited, addresses, details = {} }: MtrHop): string {
  const others = addresses.slice(1).map(({ ip, share }) => `also ${ip} (${Math.round(share)}%)`);
  return joined([...(limited ? ["limits its answers"] : []), ...others, ...whose(details)]);
}

function mtrEnd({ hops, details }: MtrResult): Part {
  if (details.error !== undefined) return ["yellow", notReached(details.error)];
  if (!details.reached) return ["yellow", "not reached"];
  const loss = hops.at(-1)?.loss ?? 0;
  return [
    loss === 0 ? "green" : "red",
    `reached in ${plural(hops.length, "hop")}, ${loss} % of ${hops.at(-1)?.sent} probes lost`,
  ];
}

/** If there are several paths, how often each was taken, and where they part. */
function takenPathLines(paths: MtrResult["details"]["paths"]): Line[] {
  if (paths.length < 2) return [];
  const length = Math.max(...paths.map(({ addresses }) => addresses.length));
  const hops = Array.from({ length }, (_, at) => at).filter((at) => {
    const here = paths.map(({ addresses }) => addresses[at]).filter((address) => address);
    return new Set(here).size > 1;
  });
  const where =
    hops.length === 0 ? "" : `, which differ at hop ${hops.map((at) => at + 1).join(", ")}`;
  const rounds = paths.map((path) => path.rounds).join(" + ");
  return [[["yellow", `${rounds} rounds took ${paths.length} paths${where}`]]];
}

/** The verdict, and the largest packet of each hop, which a terminal shows as soon as it is known. */
export function mtuView(target: string, screen: Screen): View {
  const hops: MtuHop[] = [];
  screen.print([["dim", `mtu to ${target}`]]);
  return {
    event(data) {
      const hop = data as MtuHop;
      hops[hop.hop - 1] = hop;
      screen.show([[["dim", "measuring"]], [], ...mtuLines(hops)]);
    },
    end(data) {
      const result = data as MtuResult | null;
      if (result === null) {
        screen.finish([[["yellow", "interrupted"]], [], ...mtuLines(hops)]);
        return false;
      }
      const notes = [
        ...translatorLines(result.details),
        ...result.details.doubtful.map((each): Line => [["yellow", doubtOf(each)]]),
      ];
      screen.finish([...verdictLines(result, screen.columns), [], ...mtuLines(result.hops)]);
      if (notes.length > 0) screen.print([], ...notes);
      return result.verdict !== "inconclusive";
    },
  };
}

/** What the measurement means, in several lines if one is too short. */
function verdictLines(result: MtuResult, columns: number): Line[] {
  const size = result.mtu === null ? "no size is known" : `${result.mtu} bytes`;
  const text = meaningOf(result);
  const style = { clear: "green", narrowed: "green", inconclusive: "yellow" } as const;
  const colour = result.verdict in style ? style[result.verdict as keyof typeof style] : "red";
  return `${size}; ${text}`.length < columns
    ? [[["bold", size], "; ", [colour, text]]]
    : [[["bold", size]], ...wrapped(text, columns - 1).map((row): Line => [[colour, row]])];
}

/** The words of a text in lines of so many characters; a longer word has a line of its own. */
function wrapped(text: string, columns: number): string[] {
  const rows = text.match(new RegExp(`.{1,${columns}}(?: |$)|\\S+`, "g")) ?? [];
  return rows.map((row) => row.trimEnd());
}

function meaningOf({ verdict, ip, mtu, told, lastLarge, firstSmall }: MtuResult): string {
  const where = stretchOf(lastLarge, firstSmall);
  switch (verdict) {
    case "clear":
      return "clear, no link on the path is narrower than the first";
    case "narrowed":
      if (told === null) return `narrowed${where}, larger packets get Packet Too Big`;
      return `${told.from}${told.hop === null ? "" : ` at hop ${told.hop}`} said so (Packet Too Big)`;
    case "blackHole":
      return `a black hole, larger packets vanish${where}`;
    case "below1280":
      return `too narrow for IPv6, packets of 1280 bytes vanish${where}`;
    case "inconclusive":
      if (mtu === null) return `${ip} does not answer`;
      return `perhaps more, ${ip} answers too seldom to tell`;
  }
}

/** Where the path narrows, as far as it is known. */
function stretchOf(lastLarge: number | null, firstSmall: number | null): string {
  if (lastLarge === null) return firstSmall === null ? "" : ` before hop ${firstSmall}`;
  return firstSmall === null
    ? ` behind hop ${lastLarge}`
    : ` between hops ${lastLarge} and ${firstSmall}`;
}

const DOUBTS = {
  "below-1280": "every link of IPv6 carries 1280",
  "not-smaller": "that is not less than was sent",
  disproved: "larger packets pass",
  "not-ours": "it quotes what was not sent",
} as const;

function doubtOf({ from, hop, mtu, doubt }: MtuResult["details"]["doubtful"][number]): string {
  const where = hop === null ? "" : ` at hop ${hop}`;
  return `${from}${where} claims ${mtu} bytes, not believed: ${DOUBTS[doubt]}`;
}

/** The lines of the hops; one that is not known yet is empty. */
function mtuLines(hops: readonly (MtuHop | undefined)[]): Line[] {
  const width = Math.max(0, ...Array.from(hops, (hop) => hop?.ip?.length ?? 0));
  return Array.from(hops, (hop, index) => {
    const number: Part = ["dim", String(index + 1).padStart(3)];
    if (hop === undefined) return [number];
    const { ip, hostname, mtu, details = {} } = hop;
    if (ip === null) return [number, ["dim", "               no reply"]];
    const size = mtu === null ? "unknown" : `${mtu} bytes`;
    const name: Part = ["bold", hostname === null ? "" : `  ${hostname}`];
    return [
      number,
      size.padStart(13),
      `  ${ip.padEnd(width)}`,
      name,
      ["dim", joined(whose(details))],
    ];
  });
}
