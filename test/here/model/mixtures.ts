/** Which of several faults a verdict must name, and which ones a machine can have together. */
import { FAR_FAULTS, FAULTS_ELSEWHERE } from "./far-faults.ts";
import type { Fault } from "./fault.ts";
import { pick, type Random } from "./healthy.ts";
import type { Simulated } from "./machine.ts";
import { NEAR_FAULTS } from "./near-faults.ts";

const FAULTS = [...NEAR_FAULTS, ...FAR_FAULTS];
/** All faults, the nearest cause first, and those of other interfaces at the end. */
export const ALL_FAULTS = [...FAULTS, ...FAULTS_ELSEWHERE];
/** Their codes. */
export const CODES = [...new Set(FAULTS.map(({ code }) => code))];
const OF_LINK: readonly Fault["code"][] = ["kernel-without-ipv6", "disabled", "link-down"];

/** The fault that a verdict must name: the nearest that breaks something, else the nearest; undefined for none. */
export function nearest(machine: Simulated, faults: readonly Fault[]): Fault | undefined {
  const rankOf = ({ code }: Fault) => FAULTS.findIndex((each) => each.code === code);
  const there = faults
    .filter(({ isThere = () => true }) => isThere(machine))
    .toSorted((a, b) => rankOf(a) - rankOf(b));
  return there.find(({ breaks = () => true }) => breaks(machine)) ?? there[0];
}

/** True if a machine can have all of these. */
export const areTogether = (machine: Simulated, faults: readonly Fault[]) =>
  faults.every(({ suits }) => suits?.(machine) ?? true) &&
  new Set(faults.flatMap(({ parts }) => parts)).size ===
    faults.reduce((sum, { parts }) => sum + parts.length, 0);

/** Some faults that one machine can have together; each code is as likely. */
export function chooseFaults(machine: Simulated, count: number, random: Random): Fault[] {
  const chosen: Fault[] = [];
  // Most have a link, without which nothing else is looked at.
  const codes = random() < 0.1 ? CODES : CODES.filter((code) => !OF_LINK.includes(code));
  for (let tries = 0; tries < 20 && chosen.length < count; tries++) {
    const code = pick(codes, random);
    const fault = pick(
      ALL_FAULTS.filter((each) => each.code === code),
      random,
    );
    if (areTogether(machine, [...chosen, fault])) chosen.push(fault);
  }
  return chosen;
}
