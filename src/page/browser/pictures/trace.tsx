import { scaleOf } from "../../../tools/numbers.ts";
import type { TraceDocument } from "../../../tools/trace/report.ts";
import { plural } from "../../../util/text.ts";
import { Who } from "./parts.tsx";
import { Paths } from "./paths.tsx";
import type { View } from "./picture.ts";

/** Beside each hop the share of its time, and the graph of the paths if there are several. */
export const traceView: View<TraceDocument> = {
  figure: ({ hops, details: { loop } }) =>
    loop === undefined ? null : (
      <figure class="loop">
        <ol>
          {hops.slice(loop.from - 1, loop.to).map((hop) => (
            <li>
              <span class="position">{hop.hop}</span> <Who host={hop} notes={[]} />
            </li>
          ))}
        </ol>
        <figcaption>{`From hop ${loop.to} back to hop ${loop.from}: ${plural(loop.repeats, "answer")} of hops behind repeat these.`}</figcaption>
      </figure>
    ),
  beside({ hops }, { all }) {
    const scale = scaleOf(all.flatMap(({ hops }) => hops.map(({ rtt }) => rtt)));
    return {
      heading: `From 0 to ${scale} ms`,
      rows: hops.map(({ rtt }) =>
        rtt === null ? null : (
          <svg class="bar" aria-hidden="true">
            <rect class="track" width="100%" height="100%" rx="3" />
            <rect class="fill" width={`${(rtt / scale) * 100}%`} height="100%" rx="3" />
          </svg>
        ),
      ),
    };
  },
  insteadOfTables({ details: { paths = [], graph, location } }, { linkTo }) {
    if (graph === undefined || paths.length < 2) return null;
    const linkOf = (flowLabel: number) =>
      linkTo({ flowLabel: String(flowLabel), ...(location !== undefined && { from: location }) });
    // Another search has other paths to choose from.
    return <Paths key={paths[0]?.flowLabel} paths={paths} graph={graph} linkOf={linkOf} />;
  },
};
