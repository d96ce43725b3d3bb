/** The run of a check: each step begins as soon as what it needs is known. */
import { once } from "node:events";
import { formatIpv6 } from "../../addr/format.ts";
import type { Call } from "../../api/endpoint.ts";
import type { Caller } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { newStamp } from "../../util/stamp.ts";
import { here } from "../here/endpoint.ts";
import type { HereResult, HereStep } from "../here/result.ts";
import type { Services } from "../services.ts";
import type { Target } from "../target.ts";
import { compareFamilies } from "./compare.ts";
import { judgeHere } from "./judge.ts";
import { askZoneServers, lookUp } from "./names.ts";
import { isHeard, measurePath } from "./path.ts";
import type { Ended } from "./result.ts";
import { beginCheck, type RunningCheck } from "./running.ts";
import { MAX_ADDRESSES } from "./service.ts";
import { tryIpv4, tryIpv6 } from "./tries.ts";
import { checkVerdict, mayBeHere } from "./verdict.ts";

/** Tries each IPv6 address that is found, up to `MAX_ADDRESSES`, and measures the way to one of them. */
function createAddresses(check: RunningCheck) {
  const found = new Set<string>();
  const tries: ReturnType<typeof tryIpv6>[] = [];
  return {
    count: () => found.size,
    add(ip: string) {
      if (tries.length < MAX_ADDRESSES && !found.has(ip)) tries.push(tryIpv6(check, ip));
      found.add(ip);
    },
    ended: () => Promise.all(tries.map(({ ended }) => ended)),
    /** Measures the way to one of the addresses; undefined if none may be used. */
    async measureOne(known?: Promise<unknown>) {
      await known;
      // Other resolvers may add addresses meanwhile.
      let works: (boolean | null)[] = [];
      while (works.length < tries.length)
        works = await Promise.all(tries.map(({ first }) => first));
      // The path to an address that does not work explains more.
      const chosen = tries[works.indexOf(false)] ?? tries[works.indexOf(true)];
      return chosen && measurePath(check, chosen.ip);
    },
  };
}

/** Looks at the machine that checks, until `stop` is called: a look takes some seconds. */
function lookHere(check: RunningCheck) {
  const looking = abortedBy(check.signal);
  const near = { here: null as HereResult | null, steps: [] as readonly HereStep[] };
  const look = async (): Promise<Ended> => {
    const onEvent: Call["onEvent"] = (event, data) => {
      if (event === "step") near.steps = [...near.steps, data as HereStep];
    };
    near.here = await check.ask<HereResult>(here, {}, { onEvent, signal: looking.signal });
    near.steps = near.here.steps;
    return judgeHere(near.here);
  };
  const isOver = once(looking.signal, "abort").then(() => null);
  const { look: isWanted } = check.services;
  const ended = isWanted && check.take("here", null, () => Promise.race([look(), isOver]));
  return { near, ended, stop: () => looking.abort() };
}

/**
 * Makes all attempts and takes all steps. Returns the ledger, the steps that are not views of it, the way to one of the
 * addresses, and the look at the machine that checks.
 *
 * @param target a name, or one address
 * @param call its signal aborts when the caller has gone
 * @param caller the client that connections are for
 */
export async function runCheck(
  target: Target,
  port: number,
  call: Call,
  services: Services,
  caller: Caller,
) {
  const stamp = newStamp();
  using check = beginCheck(target, port, call, services, caller);
  const { rows, steps } = check;
  const addresses = createAddresses(check);
  const names = check.name === null ? null : lookUp(check, addresses.add);
  const named = names && check.take("names", null, () => names.judged);
  const looked = lookHere(check);
  if ("address" in target) addresses.add(formatIpv6(target.address));
  const tryAll = async () => {
    const overIpv4 = names?.ipv4.then((ips) => tryIpv4(check, ips));
    const [way] = await Promise.all([addresses.measureOne(names?.known), named, overIpv4]);
    await addresses.ended();
    return way;
  };
  const tried = tryAll();
  const zone = names && check.take("zone", null, () => askZoneServers(check, tried));
  const [way] = await Promise.all([tried, zone]);
  const compared = compareFamilies(rows);
  if (compared) await check.take("compare", null, async () => compared);
  const doubted = (await names?.doubted) ?? [];
  const hearing = { steps, rows, addresses: addresses.count(), doubted };
  // A verdict that the look cannot change does not wait for it.
  if (!mayBeHere(checkVerdict(target.text, port, hearing))) looked.stop();
  await looked.ended;
  // Attempts that ended because the client went away were not silent.
  call.signal.throwIfAborted();
  const isPathHeard =
    check.isIpv6Heard() || rows.some(({ at }) => at !== undefined) || isHeard(way);
  return { ...hearing, stamp, way, near: { ...looked.near, isPathHeard } };
}
