import type { ToolName } from "../../tools/reports.ts";
import type { Caller, PageTool } from "../caller.ts";

/** The caller and the tools, read from the page, where the service has written them. */
export const CALLER: Caller = JSON.parse(
  document.querySelector<HTMLMetaElement>("meta[name=caller]")?.content ?? "{}",
);

/** A tool by its name. */
export function toolOf(name: ToolName): PageTool {
  return CALLER.tools.find((tool) => tool.name === name) as PageTool;
}

/** The values of a tool's options that are not chosen. */
export function defaultsOf({ options }: PageTool): Record<string, string> {
  return Object.fromEntries(options.map((option) => [option.name, option.default]));
}
