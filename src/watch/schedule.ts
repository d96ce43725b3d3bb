/** The file of watches: one line a watch, in the words of the command line. */
import { type Parameters, readTexts, type ValuesOf } from "../api/parameters.ts";
import type { Config } from "../config/settings.ts";
import { parseHostname } from "../dns/hostname.ts";
import { MAX_FLOW_LABEL } from "../tools/fields.ts";
import { probedPortOf } from "../tools/run.ts";
import type { Endpoint } from "../tools/services.ts";
import { parseTarget } from "../tools/target.ts";
import { reasonOf } from "../util/errors.ts";
import { quote } from "../util/text.ts";
import { spanMs } from "./endpoint.ts";
import { EVERY_SECONDS, WATCH_TOOLS } from "./result.ts";

export type WatchTool = (typeof WATCH_TOOLS)[number];

/** A line of the schedule. */
export interface Watch {
  /** Its line without `every`, with single spaces. */
  readonly name: string;
  readonly tool: WatchTool;
  /** The target or name; null for this machine. */
  readonly target: string | null;
  /** The locations that measure, as `from` names them; null for this service. */
  readonly from: string | null;
  readonly everyMs: number;
  readonly endpoint: Endpoint;
  /** The values of its endpoint's parameters; the flow label of a path comes from its name. */
  readonly values: ValuesOf<Parameters>;
}

/** The watches of a file, and the lines that are not valid, from 1. */
export interface Schedule {
  readonly watches: readonly Watch[];
  readonly wrong: readonly { readonly line: number; readonly text: string }[];
}

/** The rules for lines: the endpoint of each tool with its parameter `from`, and the ports that may be probed. */
export interface ScheduleRules {
  readonly endpointOf: (tool: WatchTool) => Endpoint;
  readonly config: Pick<Config, "probePorts">;
}

/** Watches of one file: twice as many as were measured; each takes some 20 kB of memory. */
const MAX_WATCHES = 10_000;

/** Wrong lines that are kept. */
const MAX_WRONG = 1_000;

/** Bytes of a line, and so of a name. */
const MAX_LINE = 1_000;

/** An error in a line of the schedule, and what to write instead. */
export class WatchError extends Error {
  override readonly name = "WatchError";
}

/** A number from 0 to 2^32 - 1 from the name of a watch, which decides when it runs, and its flow label. */
export const hashOf = (name: string): number =>
  new Bun.CryptoHasher("sha256").update(name).digest().readUInt32BE();

/** Reads a file of watches. Lines that are not valid are in `wrong`, and the others count. */
export function parseSchedule(text: string, rules: ScheduleRules): Schedule {
  const watches = new Map<string, Watch>();
  const wrong: { line: number; text: string }[] = [];
  for (const [at, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    try {
      const watch = parseWatch(line, rules);
      if (watches.has(watch.name)) throw new WatchError("it is listed twice");
      if (watches.size === MAX_WATCHES) throw new WatchError(`there are ${MAX_WATCHES} already`);
      watches.set(watch.name, watch);
    } catch (error) {
      if (wrong.length < MAX_WRONG) wrong.push({ line: at + 1, text: reasonOf(error) });
    }
  }
  return { watches: [...watches.values()], wrong };
}

/**
 * Reads one line, such as `mtr 2001:db8::80 every=1m rounds=10 from=ams,fra`.
 *
 * @throws WatchError, or the ApiError of a target or parameter that is not valid
 */
export function parseWatch(line: string, { endpointOf, config }: ScheduleRules): Watch {
  if (line.length > MAX_LINE) throw new WatchError(`it is longer than ${MAX_LINE} characters`);
  const words = line.replace(/\s#.*/, "").trim().split(/\s+/);
  const [first = "", ...others] = words;
  const tool = WATCH_TOOLS.find((each) => each === first);
  if (tool === undefined) {
    throw new WatchError(`${quote(first)} is not one of ${WATCH_TOOLS.join(", ")}`);
  }
  const endpoint = endpointOf(tool);
  const { parameters } = endpoint;
  const [subject = ""] = Object.keys(parameters);
  const texts: Record<string, string> = {};
  for (const word of others) {
    const [name = "", text] = /^([a-z]+)=(.*)$/i.exec(word)?.slice(1) ?? [subject, word];
    if (name !== "every" && !Object.hasOwn(parameters, name)) {
      throw new WatchError(`${quote(word)} is not a parameter of ${tool}`);
    }
    if (Object.hasOwn(texts, name)) throw new WatchError(`${name} is there twice`);
    texts[name] = text ?? "";
  }
  const { every = `${EVERY_SECONDS.default}s`, ...given } = texts;
  const everyMs = spanMs(every) ?? 0;
  if (everyMs < EVERY_SECONDS.minimum * 1000 || everyMs > EVERY_SECONDS.maximum * 1000) {
    throw new WatchError(`every is ${quote(every)}; it must be from 10s to 1d`);
  }
  const { [subject]: target = null, from = null } = given;
  if (target === null && parameters[subject]?.in === "path") {
    throw new WatchError(`${tool} needs a ${subject}`);
  }
  const name = words.filter((word) => !word.startsWith("every=")).join(" ");
  const label = "flowLabel" in parameters && {
    flowLabel: `${1 + (hashOf(name) % MAX_FLOW_LABEL)}`,
  };
  const values = readTexts(parameters, { ...label, ...given });
  requireTarget(tool, target ?? "", values);
  probedPortOf(tool === "check" ? { protocol: "tcp", ...values } : values, config);
  return { name, tool, target, from, everyMs, endpoint, values };
}

/** @throws WatchError, or an ApiError, for a target that no run of the tool accepts */
function requireTarget(tool: WatchTool, target: string, { type }: ValuesOf<Parameters>): void {
  if (tool === "here") return;
  if (tool !== "dns") parseTarget(target);
  else if (!parseHostname(target, type as "AAAA").ok)
    throw new WatchError(`${quote(target)} is not a name`);
}
