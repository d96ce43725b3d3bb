/** The words of a look at this machine, without the schemas, so that the page can have them. */

import codes from "./codes.json" with { type: "json" };

type Code = keyof typeof codes;

/** What a code means to others. */
interface CodeRow {
  /** A warning where IPv6 works, and something is to be mended. */
  readonly status: "ok" | "warn" | "fail";
  /** What such a failure does to a check of a name; absent if nothing can be sent. */
  readonly explains?: "names" | "unanswered" | "large" | "all";
  /** What is at fault, if not this machine. */
  readonly fault?: "dns" | "path";
}

/** `works`, and what can be wrong, the nearest cause first. */
export const CODE_TABLE = codes as Readonly<Record<Code, CodeRow>>;

/** The codes of the verdict. */
export const CODES = Object.keys(codes) as Code[];

/** The codes that are no failures, beside `works`. */
export const WARNINGS = CODES.filter((code) => CODE_TABLE[code].status === "warn");

/** What can be wrong on this machine and its links. */
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
