import type { CheckResult } from "../../tools/check/result.ts";
import { hopText } from "../../tools/report.ts";
import { plural } from "../../util/text.ts";

/** The nouns of what was tried, in the order of a transaction. */
const NOUNS = {
  connect: "connection",
  handshake: "TLS handshake",
  request: "HTTP request",
  syn: "SYN",
  echo: "echo request",
} as const;

/** `10 of 10 connections`, of one address. */
function triedText(attempts: CheckResult["details"]["attempts"], ip: string): string {
  const counts = attempts
    .filter((row) => row.ip === ip)
    .map(({ kind, made, worked }) => `${worked} of ${plural(made, NOUNS[kind])}`);
  return `${ip}: ${counts.join(", ")}`;
}

/** An answer for whoever can mend the fault: the sentence, then where, what was tried, when, and a link to it. */
export function forwardText({ details }: CheckResult, link: string): string {
  const { verdict, attempts, path, startedAt, version, location } = details;
  const after = path?.brokenAfter;
  const at = after === undefined ? undefined : path?.hops[after - 1];
  const where = at
    ? `behind ${hopText(path?.hops ?? [], at.hop)}`
    : (verdict.at ??
      [...new Set(attempts.map(({ ip }) => ip))].filter((ip) => ip.includes(":")).join(", "));
  const tried = [...new Set(attempts.map(({ ip }) => ip))].map((ip) => triedText(attempts, ip));
  const when = `${startedAt.slice(0, 19).replace("T", " ")} UTC, sixscope ${version}${location ? `, from ${location}` : ""}`;
  const lines = [
    ["Where", where],
    ["Tried", tried.join("; ")],
    ["When", when],
    ["Link", link],
  ].filter(([, text]) => text);
  return [
    verdict.headline,
    ...lines.map(([name = "", text]) => `${name.padEnd(7)}${text}`),
    "",
  ].join("\n");
}
