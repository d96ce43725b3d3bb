import type { ToolName } from "../../tools/reports.ts";
import { checkView } from "./pictures/check.tsx";
import { heatView } from "./pictures/heat.tsx";
import { hereView } from "./pictures/here.tsx";
import type { View } from "./pictures/picture.ts";
import { pingView } from "./pictures/ping.tsx";
import { traceView } from "./pictures/trace.tsx";
import { validateView } from "./pictures/validate.tsx";

/** The views of the tools that have one, by their names in `TOOLS`. */
const VIEWS: Partial<Record<ToolName, View>> = {
  check: checkView,
  here: hereView,
  validate: validateView,
  ping: pingView,
  trace: traceView,
  mtr: heatView,
};

/** The view of a tool, whose documents are those of its report. */
export function viewOf(tool: ToolName): View<object> {
  return (VIEWS[tool] ?? {}) as View<object>;
}
