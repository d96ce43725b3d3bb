import { formatMs } from "../../../tools/numbers.ts";
import type { ChangeDetail } from "../../../watch/result.ts";
import { pathOf, type Side } from "../../../watch/same.ts";
import { TraceWay } from "../pictures/trace.tsx";
import { aligned } from "./aligned.ts";
import { timeText } from "./words.ts";

/** A row of a side; the row of a hop has its number, and its milliseconds if it answered. */
type Line = readonly [text: string, hop?: number, ms?: string | false];

/** Both sides of a change beside each other: the ways on one scale, the values that differ, and the hops. */
export function Sides({ before, after, diff }: ChangeDetail) {
  const sides = [before ?? {}, after ?? {}].map((side: Side) => ({ ...side, ...pathOf(side) }));
  const [old = [], now = []] = sides.map(({ hops }) => hops.map(lineOfHop));
  const hasHops = old.length > 0 && now.length > 0;
  const values = diff.filter(({ kind }) => kind !== "path" || !hasHops);
  const pairs = values.map((each) => [linesOf(each.before), linesOf(each.after)] as const);
  if (hasHops) pairs.push([old, now]);
  const rows = pairs.flatMap(([one, other]) => aligned<Line>(one, other, ([text]) => text));
  const cell = (line: Line | null, sign: string) => (
    <td>{line && [line[1], sign, line[0], line[2]].map((each) => <span>{each} </span>)}</td>
  );
  return (
    <table class="sides">
      <thead>
        <tr>
          {sides.map(({ ip, hops, reached, details }, at) => {
            const side = {
              label: at === 0 ? "Before" : "After",
              note: details?.startedAt ? timeText(details.startedAt) : "",
            };
            return (
              <th scope="col">
                {hasHops ? (
                  <TraceWay {...{ ...side, ip, hops, reached }} all={sides} lies />
                ) : (
                  `${side.label} ${side.note}`
                )}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>
        {rows.map(([one, other]) => {
          const isSame = one?.[0] === other?.[0];
          return (
            <tr class={isSame ? "soft" : ""}>
              {cell(one, isSame ? "" : "−")}
              {cell(other, isSame ? "" : "+")}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const lineOfHop = ({ hop, ip, hostname, rtt }: ReturnType<typeof pathOf>["hops"][number]): Line => [
  hostname ?? ip ?? "no reply",
  hop,
  rtt !== null && `${formatMs(rtt)} ms`,
];

/** A value as lines: one for each item of a list, or field of an object. */
const linesOf = (value: unknown): Line[] =>
  [value ?? []].flat().flatMap((item: unknown) => {
    if (typeof item !== "object" || item === null) return [[`${item}`]];
    return Object.entries(item).map((field): Line => [field.join(" ")]);
  });
