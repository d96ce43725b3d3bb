import { NOUNS } from "../../tools/check/findings.ts";
import type { CheckResult } from "../../tools/check/result.ts";
import { hopText } from "../../tools/report.ts";
import { shareText, utcText } from "../../util/text.ts";

/** `::1: 10 of 10 connections`: the counts at an address. */
function triedText(attempts: CheckResult["details"]["attempts"], ip: string): string {
  const counts = attempts
    .filter((row) => row.ip === ip)
    .map(({ kind, made, worked }) => shareText(worked, made, NOUNS[kind]));
  return `${ip}: ${counts.join(", ")}`;
}

/** A text to send: a sentence, and below it the lines that are not empty, each behind its name. */
export const textToSend = (sentence: string, lines: Readonly<Record<string, string>>) =>
  [
    sentence,
    ...Object.entries(lines).flatMap(([name, text]) => (text ? `${name.padEnd(7)}${text}` : [])),
  ].join("\n");

/** An answer to send to the one who can mend the fault: the sentence, where, what was tried, when, and a link. */
export function forwardText({ details }: CheckResult, link: string): string {
  const { verdict, attempts, path, startedAt, version, location } = details;
  const ips = [...new Set(attempts.map(({ ip }) => ip))];
  const { headline, evidence, fault, at } = verdict;
  const addresses = at ?? ips.filter((ip) => ip.includes(":")).join(", ");
  const there = path?.brokenAfter ? `behind ${hopText(path.hops, path.brokenAfter)}` : addresses;
  const when = [utcText(startedAt), `sixscope ${version}`, location && `from ${location}`];
  const text = textToSend([headline, evidence].filter(Boolean).join(" "), {
    Where: fault === "here" ? "on the side of the machine that measured" : there,
    Tried: ips.map((ip) => triedText(attempts, ip)).join("; "),
    When: when.filter(Boolean).join(", "),
    Link: link,
  });
  return `${text}\n`;
}
