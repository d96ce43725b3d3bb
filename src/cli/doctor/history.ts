import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { attempt } from "../../util/errors.ts";
import { round } from "../../util/numbers.ts";
import { printable } from "../../util/text.ts";
import { type Finding, type Scene, trying } from "./finding.ts";

const MB = 1_000_000;

/** Checks that the history of watches is kept, and that there is room for it; no finding if nothing was watched. */
export function checkHistory({ config, status, setting }: Scene): readonly Finding[] {
  const { historyFile, historyMaxMb } = config;
  const files = ["", "-wal", "-shm"].flatMap(
    (end) => attempt(() => statSync(`${historyFile}${end}`)) ?? [],
  );
  const { ok, warning, problem } = trying(`see the history ${historyFile}`);
  if (status?.withoutHistory) {
    const advice =
      "let the service's user write there, and make room; what is measured meanwhile is lost";
    return [problem(`it is not kept: ${printable(status.withoutHistory)}`, advice)];
  }
  if (files.length === 0) return [];
  const size = files.reduce((sum, { size }) => sum + size, 0);
  const written = new Date(Math.max(...files.map(({ mtimeMs }) => mtimeMs))).toISOString();
  const { bavail, bsize } = statfsSync(dirname(historyFile));
  const free = bavail * bsize;
  const about = `${round(size / MB, 1)} of at most ${historyMaxMb} MB, last written ${written}; the disk has ${Math.floor(free / MB)} MB free`;
  const advice = `make room, or lower ${setting("SIXSCOPE_HISTORY_MAX_MB")}`;
  return [free + size < historyMaxMb * MB ? warning(about, advice) : ok(about)];
}
