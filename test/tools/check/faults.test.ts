/** Faults of real servers, resolvers and routers, and the verdict on each. */
import { afterAll, beforeAll, expect } from "bun:test";
import type { CheckResult } from "../../../src/tools/check/result.ts";
import { KNOWN, mistakesIn, type Truth } from "../../check/truth.ts";
import { labMissing, programMissing, testWith, tunMissing } from "../../lab/lab.ts";
import { FAULTS, type Fault, MORE } from "./faults.ts";
import { type Stage, startStage } from "./stage.ts";

const missing =
  tunMissing ??
  labMissing ??
  ["nginx", "unbound", "knotd", "tayga", "nft", "openssl", "dnssec-signzone", "setpriv"]
    .map(programMissing)
    .find(Boolean) ??
  null;

let stage: Stage;
/** The result of each check, which all begin at once. */
const results = new Map<string, Promise<CheckResult>>();

/** Checks at a time: more would disturb each other's times on two cores. */
const AT_ONCE = 8;

/** Checks of a name until one had its time. */
const MOST_TRIES = 5;

async function check(name: string, { port = 443, resolvers = "well", literal }: Fault) {
  const { url, key } = await stage.service(resolvers);
  const target = literal === undefined ? stage.nameOf(name) : stage.ipsOf(name)[literal];
  const response = await fetch(`${url}/check/${target}?port=${port}`, {
    headers: { "X-API-Key": key },
  });
  return (await response.json()) as CheckResult;
}

/** True if a busy machine had the time for all of a check, for the proof of its addresses too. */
const isWhole = ({ steps, details }: CheckResult) =>
  steps.every(({ text }) => !text.includes("Not finished in time.")) &&
  !steps.some(({ text }) => text.includes("SERVFAIL") && !text.includes("DNSSEC")) &&
  details.attempts.every(({ kind, made }) => kind !== "connect" || made === TRANSACTIONS);

/** Checks until the machine had the time for all of it: what it had none for is not known, and says so. */
async function checkWhole(name: string, fault: Fault): Promise<CheckResult> {
  let result = await check(name, fault);
  for (let tries = 1; tries < MOST_TRIES && !isWhole(result); tries++) {
    await stage.renew(name);
    result = await check(name, fault);
  }
  return result;
}

/** Transactions with each address. */
const TRANSACTIONS = 10;

type Row = Fault & { readonly site?: string };

const ALL: Readonly<Record<string, Row>> = { ...FAULTS, ...MORE };

beforeAll(async () => {
  if (missing !== null) return;
  stage = await startStage(FAULTS);
  const waiting = Object.entries(ALL).map(([name, fault]) => {
    const { promise, resolve, reject } = Promise.withResolvers<CheckResult>();
    results.set(name, promise);
    const { after = [] } = fault;
    const before = () => Promise.all(after.map((each) => results.get(each)));
    return () =>
      before()
        .then(() => checkWhole(fault.site ?? name, fault))
        .then(resolve, reject);
  });
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await next();
  };
  for (let at = 0; at < AT_ONCE; at++) void work();
});

afterAll(async () => {
  if (missing === null) await stage[Symbol.asyncDispose]();
});

testWith(missing).each(Object.entries(ALL))(
  "%s",
  async (name, { code, says, never = [], evidence, fault, steps = {} }) => {
    const result = await (results.get(name) as Promise<CheckResult>);
    const { verdict } = result.details;
    const end = verdict.text.search(/\.( |$)/);
    const [first, rest] = [verdict.text.slice(0, end), verdict.text.slice(end + 1)];
    // With all that it says, if it is another one.
    const isExpected = code.split(" or ").includes(verdict.code);
    // On a machine without time for a check, nobody may be blamed.
    if (!isExpected && verdict.fault === "unknown" && !isWhole(result)) return;
    expect({ ...verdict, isExpected }).toMatchObject({ isExpected: true });
    for (const words of never) expect(first).not.toMatch(words);
    // What a busy machine had no time for is not among what was heard.
    for (const words of isWhole(result) ? says : []) expect(first).toMatch(words);
    if (evidence && isWhole(result)) expect(rest).toMatch(evidence);
    if (fault !== undefined) expect(verdict.fault).toBe(fault);
    expect(verdict.fault === null).toBe(verdict.code === "works");
    expect(mistakesIn(verdict, KNOWN[name] as Truth, stage.routers)).toEqual([]);
    for (const [step, words] of isWhole(result) ? Object.entries(steps) : []) {
      expect(result.steps.find((each) => each.name === step)?.text).toMatch(words);
    }
  },
);
