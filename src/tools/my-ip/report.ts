import type { Reporter } from "../report.ts";

/** The address alone, for scripts; `--json` has the network. */
export const myIpReport: Reporter<{ readonly ip: string }> = {
  report: ({ ip }) => ({ title: ip, verdict: null, facts: [], tables: [], isAnswered: true }),
};
