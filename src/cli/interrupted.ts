import type { MtrResult, MtrRound } from "../tools/mtr/endpoint.ts";
import { type MtrDocument, mtrReport } from "../tools/mtr/report.ts";
import { type PingResult, pingVerdict } from "../tools/ping/endpoint.ts";
import { reporterOf, type ToolName } from "../tools/reports.ts";

/** The document of an mtr after an event, with the verdict so far. */
export function draftOf(target: string, known: MtrRound | undefined): MtrDocument {
  const draft = mtrReport.draft?.(target, known ? [known] : []) as MtrDocument;
  const { verdict } = known ?? {};
  const reached = verdict && ["no-loss", "loss", "unclear"].includes(verdict.code);
  return verdict
    ? { ...draft, details: { verdict, reached } as Partial<MtrResult["details"]> }
    : draft;
}

/** The document of a tool that was interrupted: of a ping and an mtr with its verdict so far. */
export function interruptedDocument(
  name: ToolName,
  subject: string,
  events: readonly object[],
): object | undefined {
  const draft = reporterOf(name).draft?.(subject, events as never[]);
  if (name === "mtr") return draftOf(subject, events.at(-1) as MtrRound | undefined);
  if (name !== "ping" || events.length === 0) return draft;
  const ping = draft as PingResult;
  const verdict = pingVerdict(ping.results.length, ping.details.lost);
  return { ...ping, details: { ...ping.details, verdict } };
}
