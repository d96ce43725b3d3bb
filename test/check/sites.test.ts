/** Checks of sites whose truth is known: real servers, resolvers and routers. */
import { afterAll, beforeAll, expect } from "bun:test";
import { availableParallelism, loadavg } from "node:os";
import type { CheckResult } from "../../src/tools/check/result.ts";
import { mapValues } from "../../src/util/objects.ts";
import { labMissing, programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { type Stage, startStage } from "../tools/check/stage.ts";
import { type KnownSite, SITES } from "./sites.ts";
import { mistakesIn } from "./truth.ts";

const missing =
  tunMissing ??
  labMissing ??
  ["nginx", "unbound", "knotd", "tayga", "nft", "openssl", "dnssec-signzone"]
    .map(programMissing)
    .find(Boolean) ??
  null;

let stage: Stage;
/** The result of each check, which all begin at once. */
const results = new Map<string, Promise<CheckResult>>();

/** Checks at a time: more would disturb each other's times on two cores. */
const AT_ONCE = 6;

/** How often a check is made while the machine is busy: a server without a turn for seconds is silent, in truth. */
const MAX_TRIES = 4;

/** True if far more wants a turn than there are processors. */
const isBusy = () => (loadavg()[0] ?? 0) > 3 * availableParallelism();

/** True if the machine had no time for all of a check. */
const isCut = ({ steps }: CheckResult) =>
  steps.some(({ text }) => text.includes("Not finished in time."));

async function check(name: string, { resolvers = "well" }: KnownSite): Promise<CheckResult> {
  const { url, key } = await stage.service(resolvers);
  const response = await fetch(`${url}/check/${stage.nameOf(name)}`, {
    headers: { "X-API-Key": key },
  });
  return (await response.json()) as CheckResult;
}

/** What is wrong with a result, by the truth about its site. */
function mistakesOf(name: string, { says, never, truth }: KnownSite, { details }: CheckResult) {
  const { verdict } = details;
  const [headline = ""] = verdict.text.replaceAll(`${name}.`, "").split(/\.(?: |$)/);
  return [
    ...mistakesIn(verdict, truth, stage.routers),
    ...(says && !says.test(verdict.text) ? [`does not say ${says}`] : []),
    ...(never?.test(headline) ? [`says ${never}`] : []),
  ];
}

beforeAll(async () => {
  if (missing !== null) return;
  stage = await startStage(mapValues(SITES, ({ site }) => site));
  const waiting = Object.entries(SITES).map(([name, site]) => {
    const { promise, resolve, reject } = Promise.withResolvers<CheckResult>();
    results.set(name, promise);
    return () => check(name, site).then(resolve, reject);
  });
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
  };
  // The service has loaded all that it needs, and the resolvers know the zone.
  await check("healthy", SITES["healthy"] as KnownSite);
  for (let at = 0; at < AT_ONCE; at++) void work();
});

afterAll(async () => {
  if (missing === null) await stage[Symbol.asyncDispose]();
});

testWith(missing).each(Object.entries(SITES))("%s", async (name, known) => {
  let result = await (results.get(name) as Promise<CheckResult>);
  let mistakes = mistakesOf(name, known, result);
  for (
    let tries = 1;
    mistakes.length > 0 && (isBusy() || isCut(result)) && !known.isOnce && tries < MAX_TRIES;
    tries++
  ) {
    result = await check(name, known);
    mistakes = mistakesOf(name, known, result);
  }
  const { verdict } = result.details;
  // On a machine without time for a check, this is the truth.
  if (verdict.code === "unknown" && isCut(result)) return;
  expect({ mistakes, verdict }).toEqual({ mistakes: [], verdict });
});
