import { median } from "../util/numbers.ts";
import { inWords } from "../util/text.ts";
import { type Table, toneOf } from "./report.ts";

/** The parts of the documents of all tools that are compared. */
interface Measured {
  readonly stats: { readonly transmitted: number; readonly loss: number };
  readonly results: readonly { readonly rtt: number }[];
  readonly queryTime: number;
  readonly mtu: number | null;
  readonly hops: { rtt?: number | null; p50?: number | null; details?: { rtts?: number[] } }[];
  readonly details: {
    readonly verdict?: { readonly code: string };
    readonly reached?: boolean;
    readonly toTarget?: { readonly loss: number | null };
  };
}

/** The row of a location in a comparison, from its document or the code of its error, if it has ended. */
export function summaryRow(location: string, document: object = {}, error: string | null = null) {
  const measured = document as Partial<Measured>;
  const { stats, results, queryTime, hops = [], mtu = null, details = {} } = measured;
  const isReached = details.reached ?? mtu !== null;
  const last = isReached ? hops.at(-1) : undefined;
  const times = results?.map(({ rtt }) => rtt) ?? last?.details?.rtts ?? [last?.rtt ?? []].flat();
  return {
    location,
    verdict: details.verdict?.code ?? null,
    error,
    loss: (stats?.transmitted ? stats.loss : details.toTarget?.loss) ?? null,
    median: queryTime ?? last?.p50 ?? median(times),
    hops: isReached && hops.length > 0 ? hops.length : null,
    mtu,
  };
}

/** The part of the answer of several locations that compares them. */
export interface Summary {
  readonly summary: readonly ReturnType<typeof summaryRow>[];
  /** Locations that the request means. */
  readonly matching: number;
}

/** The result of a location, or its error. */
export interface Outcome<Failure> {
  readonly location: string;
  readonly result?: object;
  readonly error?: Failure;
}

const COLUMNS = [
  { name: "location", kind: "text" },
  { name: "verdict", kind: "text", isToned: true },
  { name: "loss", kind: "percent" },
  { name: "median", kind: "time" },
  { name: "hops", kind: "count" },
  { name: "mtu", kind: "bytes" },
] as const;

/** The table of a comparison, without the columns that no location fills. */
export function summaryTable({ summary, matching }: Summary): Table {
  const outcomes = summary.map((row) => ({ ...row, verdict: row.verdict ?? row.error }));
  const columns = COLUMNS.filter(({ name }) => outcomes.some((row) => row[name] !== null));
  const heading = `${summary.length} of ${matching} locations, chosen at random`;
  const rows = outcomes.map(({ verdict, ...row }) => {
    const shown = { ...row, verdict: verdict && inWords(verdict) };
    const cells = columns.map(({ name }) => shown[name]);
    return { cells, ...(verdict !== null && { tone: toneOf(verdict) }) };
  });
  return { columns, rows, ...(matching > summary.length && { heading }) };
}
