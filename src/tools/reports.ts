import { checkReport } from "./check/report.ts";
import { dnsReport } from "./dns/report.ts";
import { hereReport } from "./here/report.ts";
import { mtrReport } from "./mtr/report.ts";
import { mtuReport } from "./mtu/report.ts";
import { myIpReport } from "./my-ip/report.ts";
import { pingReport } from "./ping/report.ts";
import type { Reporter } from "./report.ts";
import { traceReport } from "./trace/report.ts";
import { validateReport } from "./validate/report.ts";

/** The report of each tool, by its name in `TOOLS`. */
const REPORTS = {
  "my-ip": myIpReport,
  check: checkReport,
  here: hereReport,
  validate: validateReport,
  dns: dnsReport,
  ping: pingReport,
  trace: traceReport,
  mtr: mtrReport,
  mtu: mtuReport,
} as const;

export type ToolName = keyof typeof REPORTS;

/** The sentences for the event `waiting`, by what a run waits for. */
const WAITS: Readonly<Record<string, string>> = {
  slot: "Waiting for a probe slot.",
  target: "Waiting for its turn at the port or network of the target.",
};

/** The sentence for an event that says what a run waits for; undefined for one that is a part of its result. */
export function waitText(event: string, data: object): string | undefined {
  return event === "waiting" ? (WAITS[(data as { for: string }).for] ?? "") : undefined;
}

/** The reporter of a tool, whose documents and parts are those of its endpoint. */
export function reporterOf(tool: ToolName): Reporter<object, object> {
  return REPORTS[tool] as unknown as Reporter<object, object>;
}
