import { checkView } from "../../tools/check/view.tsx";
import { mtrView } from "../../tools/mtr/view.tsx";
import { mtuView } from "../../tools/mtu/view.tsx";
import { pingView } from "../../tools/ping/view.tsx";
import type { ToolName } from "../../tools/reports.ts";
import { traceView } from "../../tools/trace/view.tsx";
import { validateView } from "../../tools/validate/view.tsx";
import type { View } from "../../tools/view.ts";

/** The views of the tools that have one, by their names in `TOOLS`. */
const VIEWS: Partial<Record<ToolName, View>> = {
  check: checkView,
  validate: validateView,
  ping: pingView,
  trace: traceView,
  mtr: mtrView,
  mtu: mtuView,
};

/** The view of a tool, whose documents are those of its report. */
export function viewOf(tool: ToolName): View<object> {
  return (VIEWS[tool] ?? {}) as View<object>;
}
