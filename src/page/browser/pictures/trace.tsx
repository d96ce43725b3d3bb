import { scaleOf } from "../../../tools/numbers.ts";
import type { TraceDocument } from "../../../tools/trace/report.ts";
import { Paths } from "./paths.tsx";
import type { View } from "./picture.ts";

/** Beside each hop the share of its time, and the graph of the paths if there are several. */
export const traceView: View<TraceDocument> = {
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
    return <Paths paths={paths} graph={graph} linkOf={linkOf} />;
  },
};
