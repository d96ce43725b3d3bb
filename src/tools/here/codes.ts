/** The words of a look at this machine. This file imports no schemas, so the page can load it. */

import codes from "./codes.json" with { type: "json" };

type Code = keyof typeof codes;

/** The meaning of a code for other tools. */
interface CodeRow {
  /** A warning if IPv6 works, and something needs to be mended. */
  readonly status: "ok" | "warn" | "fail";
  /** The failures of a check that it explains; absent if nothing can be sent. */
  readonly explains?: "names" | "unanswered" | "large" | "all";
  /** What is at fault, if not this machine. */
  readonly fault?: "dns" | "path";
}

/** `works`, and all that can be wrong, the nearest cause first. */
export const CODE_TABLE = codes as Readonly<Record<Code, CodeRow>>;

/** The codes of the verdict. */
export const CODES = Object.keys(codes) as Code[];

/** The codes of warnings. */
export const WARNINGS = CODES.filter((code) => CODE_TABLE[code].status === "warn");

/** Something that can be wrong on this machine and its links. */
export type Finding = Exclude<Code, "works">;

/** The steps in their order. */
export const STEPS = [
  "kernel",
  "link",
  "address",
  "routers",
  "route",
  "gateway",
  "firewall",
  "source",
  "resolvers",
  "beyond",
] as const;
