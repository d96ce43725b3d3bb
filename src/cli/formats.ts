import { atlasMtr, atlasPing, atlasTrace, type Run } from "./atlas.ts";
import {
  type Head,
  mtrJson,
  mtrReport,
  mtrRows,
  pingRows,
  type Row,
  traceRows,
} from "./mtr-formats.ts";

/** Makes a text for other programs from a document of the API. */
export type Format = (result: unknown, run: Run) => string;

/** The formats of other programs by name. */
export type Formats = Readonly<Record<"mtr-report" | "mtr-json" | "atlas", Format>>;

/** The formats for the result of a ping. */
export const PING_FORMATS = formatsOf(pingRows, atlasPing);

/** The formats for the result of a trace. */
export const TRACE_FORMATS = formatsOf(traceRows, atlasTrace);

/** The formats for the result of `mtr`. */
export const MTR_FORMATS = formatsOf(mtrRows, atlasMtr);

function formatsOf<Result extends Head>(
  rowsOf: (result: Result) => readonly Row[],
  atlasOf: (result: Result, run: Run) => object,
): Formats {
  return {
    "mtr-report": (data, { startMs }) => {
      const result = data as Result;
      return mtrReport(result, rowsOf(result), startMs);
    },
    "mtr-json": (data) => JSON.stringify(mtrJson(data as Head, rowsOf(data as Result)), null, 4),
    atlas: (data, run) => JSON.stringify(atlasOf(data as Result, run)),
  };
}
