/** The run of a check: each step begins as soon as what it needs is known. */
import { once } from "node:events";
import { formatIpv6 } from "../../addr/format.ts";
import { type Ipv6Address, tryParseIpv6 } from "../../addr/ipv6.ts";
import type { Call } from "../../api/endpoint.ts";
import { apiErrorOf } from "../../api/errors.ts";
import { readTexts } from "../../api/parameters.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { FairSlots } from "../../gate/fair-slots.ts";
import type { Caller } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { pause, systemClock } from "../../util/clock.ts";
import { newStamp } from "../../util/stamp.ts";
import { ENOUGH } from "../budget.ts";
import { dns } from "../dns/endpoint.ts";
import type { DnsResult } from "../dns/result.ts";
import { here } from "../here/endpoint.ts";
import type { HereResult, HereStep } from "../here/result.ts";
import { mtr } from "../mtr/endpoint.ts";
import type { MtrResult } from "../mtr/result.ts";
import { mtu } from "../mtu/endpoint.ts";
import type { MtuResult } from "../mtu/result.ts";
import { proberOf } from "../run.ts";
import type { Endpoint, Services } from "../services.ts";
import type { Target } from "../target.ts";
import { traceroute } from "../trace/endpoint.ts";
import type { Hop, TraceResult } from "../trace/result.ts";
import { isFailure } from "./findings.ts";
import {
  addressesIn,
  doubtsIn,
  judgeHere,
  judgeMtr,
  judgeMtu,
  judgeNames,
  judgePolicy,
  judgeTrace,
  judgeZone,
} from "./judge.ts";
import { type Attempt, byFamily, isIpv6, worked } from "./ledger.ts";
import { isHeard, tracedHops, type Way } from "./path.ts";
import { sendPairs } from "./probes.ts";
import { followRedirect } from "./redirect.ts";
import type { CheckPath, Ended, Seen, Step } from "./result.ts";
import { type Part, PLAIN_PORT, type Redirect, type Through, transact } from "./transaction.ts";
import { checkVerdict, compareFamilies, isWeb, MAX_ADDRESSES, mayBeHere } from "./verdict.ts";
import { stepOf, type View, viewsOf } from "./views.ts";

/** The longest time of a check in milliseconds; a step that has not ended by then is skipped. */
export const LONGEST_MS = 20_000;

/** When the rounds of mtr end, so that what they have found comes in time. */
const ROUNDS_MS = 16_000;

/** Transactions with each IPv6 address, and connections to the one of IPv4: ten find one of four broken backends in 188 of 200. */
const TRANSACTIONS = 10;

/** The connections over IPv4 on which a request follows, for comparison. */
const COMPARED = 3;

/** Milliseconds between two connections: SYNs go in between, and a port gets ten of both a second. */
const TRANSACTION_MS = 320;

/** One of so many transactions reads the body: three of ten do. */
const BODY_EVERY = 4;

/** How long the choice of a path waits for the first echo reply, in milliseconds. */
const HEARD_MS = 500;

/** Rounds of mtr. */
const ROUNDS = "20";

type Texts = Readonly<Record<string, string>>;

/** Asks resolvers for the name. */
type AskDns = (texts: Texts, onEvent?: Call["onEvent"]) => Promise<DnsResult>;

const OVER = "Not finished in time.";

/**
 * Makes all attempts and takes all steps, and returns the ledger, the steps that are no views of it, the way to one of the
 * addresses, and what is known of the machine that checks.
 *
 * @param target the name, or the one address
 * @param call its signal aborts when the caller has gone
 * @param caller for whom connections leave
 */
export async function hear(
  target: Target,
  port: number,
  call: Call,
  services: Services,
  caller: Caller,
) {
  const stamp = newStamp();
  using limit = abortedBy(call.signal, LONGEST_MS);
  const { signal } = limit;
  const name = "name" in target ? target.name : null;
  const startMs = performance.now();
  const rows: Attempt[] = [];
  const steps: Step[] = [];
  const addRow = (row: Omit<Attempt, "atMs">, leftMs = performance.now() - row.ms) =>
    rows.push({ ...row, atMs: leftMs - startMs });
  const enough = new AbortController();
  void pause(systemClock, ROUNDS_MS, signal).then(() => enough.abort(ENOUGH));
  /** Asks a tool of the table, within the slot of the check. */
  const ask = async <Result>(tool: Endpoint, texts: Texts, more: Partial<Call> = {}) => {
    const values = readTexts(tool.parameters, texts);
    const own = { signal, enough: enough.signal, onEvent: undefined, allowSeconds() {} };
    const within = { ...services, probeSlots: new FairSlots(1) };
    return (await tool.handle(values, { ...call, ...own, ...more }, within)) as Result;
  };
  const begin = (name: Step["name"], ip: string | null) =>
    call.onEvent?.("begin", { name, ...(ip !== null && { ip }) });
  /** Takes a step, and leaves it out if `run` returns null. Returns false if the step failed. */
  const take = async (name: Step["name"], ip: string | null, run: () => Promise<Ended | null>) => {
    const beganMs = performance.now();
    begin(name, ip);
    const seen = await run().catch((error: unknown): Seen => {
      return { status: "skipped", text: signal.aborted ? OVER : apiErrorOf(error).message };
    });
    if (seen === null) return true;
    const step = stepOf(name, ip, seen, performance.now() - beganMs);
    steps.push(step);
    call.onEvent?.("step", step);
    return step.status !== "fail";
  };
  /** Shows a view of the ledger once its attempts have ended. */
  const show = async (name: View, ip: string, ended: Promise<unknown>, why = () => OVER) => {
    begin(name, ip);
    await ended;
    const view = viewsOf(rows.filter((row) => row.ip === ip)).find((each) => each.name === name);
    const step = view ?? stepOf(name, ip, { status: "skipped", text: why() }, 0);
    if (!view) steps.push(step);
    call.onEvent?.("step", step);
  };
  const isIpv6Heard = () => byFamily(rows)[0].some(worked);
  const judgeUse = async (ip: string) => judgePolicy(ip, services, await isOwnAddress(ip));
  const isAllowed = async (ip: string) => !isFailure((await judgeUse(ip)).finding);

  /**
   * Makes transactions with an address, and shows their steps. Returns whether the first of them worked, and when all
   * have ended.
   */
  const use = (ip: string, probed?: Promise<void> | null) => {
    const isOfIpv6 = isIpv6(ip);
    const service = { ip, port, name, isTls: port !== PLAIN_PORT };
    const through = { gate: services.gate, caller, signal };
    let why = OVER;
    const followed = new Map<string, ReturnType<typeof followRedirect>>();
    const follow = (redirect: Redirect) =>
      followed.getOrInsertComputed(redirect.to, () =>
        followRedirect(service, redirect, through, services),
      );
    const depthOf = (turn: number): Through["depth"] => {
      if (!isWeb(port)) return turn === 1 ? "handshake" : "connect";
      if (!isOfIpv6 && turn > COMPARED) return "connect";
      return turn % BODY_EVERY === 1 ? "body" : "request";
    };
    const turns = Array.from({ length: TRANSACTIONS }, (_, at) => {
      const turn = at + 1;
      const connect = Promise.withResolvers<boolean>();
      const handshake = Promise.withResolvers<boolean>();
      let works = true;
      const tell = (part: Part) => {
        // Another protocol may be at home on other ports.
        if (part.kind === "handshake" && !isWeb(port) && isNoTls(part)) {
          why = part.text ?? why;
          return;
        }
        addRow({ ip, turn, ...part, isOpen: isWeb(port) && part.isOpen === true });
        works = worked(part) && !isFailure(part.finding);
        if (part.kind === "connect") connect.resolve(works);
        if (part.kind === "handshake") handshake.resolve(works);
      };
      const make = async () => {
        try {
          await pause(systemClock, at * TRANSACTION_MS, signal);
          const about = { ...through, depth: depthOf(turn), ...(isOfIpv6 && { follow }) };
          await transact(service, about, tell);
          return works;
        } catch (error) {
          if (!signal.aborted) why = apiErrorOf(error).message;
          return false;
        } finally {
          connect.resolve(false);
          handshake.resolve(false);
        }
      };
      return { connect: connect.promise, handshake: handshake.promise, ended: make() };
    });
    type Stage = keyof (typeof turns)[number];
    const all = (stage: Stage) => Promise.all(turns.map((turn) => turn[stage]));
    const some = (stage: Stage) => {
      const working = turns.map(async (turn) => (await turn[stage]) || Promise.reject());
      return Promise.any(working).catch(() => false);
    };
    const shown = async () => {
      const steps = [show("tcp", ip, Promise.all([all("connect"), probed]))];
      if (service.isTls && (await some("connect")))
        steps.push(show("tls", ip, all("handshake"), () => why));
      if (isWeb(port) && (await some(service.isTls ? "handshake" : "connect")))
        steps.push(show("http", ip, all("ended"), () => why));
      await Promise.all([...steps, all("ended")]);
    };
    return { first: turns[0]?.ended, shown: shown() };
  };

  const prober = "unavailable" in services.icmp ? null : services.icmp;
  const { probeTimeoutMs: timeoutMs } = services.config;
  /** Tries an IPv6 address; whether its first transaction works, null if it may not be used, and when all has ended. */
  const useIpv6 = (ip: string) => {
    const first = Promise.withResolvers<boolean | null>();
    const run = async () => {
      if (!(await take("policy", ip, () => judgeUse(ip)))) return;
      const target = tryParseIpv6(ip) as Ipv6Address;
      const heard = Promise.withResolvers<void>();
      const probed =
        prober &&
        sendPairs(prober, port, { target, timeoutMs, caller, signal }, (probe, leftMs) => {
          addRow({ ip, ...probe }, leftMs);
          if (probe.kind === "echo") heard.resolve();
        });
      const used = use(ip, probed);
      void used.first?.then(async (works) => {
        await Promise.race([heard.promise, pause(systemClock, HEARD_MS, signal)]);
        first.resolve(works);
      });
      // Without a prober, it throws why there is none.
      const noEcho = async () => proberOf(services, true) && null;
      const echoed = probed ? show("echo", ip, probed) : take("echo", ip, noEcho);
      await Promise.all([used.shown, echoed]);
    };
    return { ip, first: first.promise, ended: run().finally(() => first.resolve(null)) };
  };
  const measurePath = async (ip: string): Promise<Way> => {
    const heard = rows.filter((row) => row.ip === ip && worked(row)).map(({ kind }) => kind);
    const [isOpen, isSilent] = [heard.includes("connect"), !heard.includes("echo")];
    const overTcp = { target: ip, protocol: "tcp", port: `${port}` };
    // A port gets few SYNs, so the rounds send them only where echo requests are not answered and the port is open. The
    // trace goes over TCP there too, and where the port alone is silent.
    const mtrTexts = { ...(isOpen && isSilent ? overTcp : { target: ip }), rounds: ROUNDS };
    const traceTexts = isOpen === isSilent ? overTcp : { target: ip };
    const way: Way = { ip };
    const found: Hop[] = [];
    const showHop: Call["onEvent"] = (event, data) => {
      if (event !== "hop") return;
      const hop = data as Hop;
      const isNew = found[hop.hop - 1]?.ip == null;
      found[hop.hop - 1] = hop;
      // A network decides how often a hop changes.
      if (!isNew) return;
      const known = tracedHops(found.filter((each) => each !== undefined));
      call.onEvent?.("path", { ip, reached: hop.ip === ip, hops: known } satisfies CheckPath);
    };
    await Promise.all([
      take("mtu", ip, async () => {
        way.mtu = await ask<MtuResult>(mtu, { target: ip });
        return judgeMtu(way.mtu);
      }),
      take("mtr", ip, async () => {
        way.mtr = await ask<MtrResult>(mtr, mtrTexts);
        return judgeMtr(way.mtr, isOpen && isSilent);
      }),
      take("trace", ip, async () => {
        way.trace = await ask<TraceResult>(traceroute, traceTexts, { onEvent: showHop });
        return judgeTrace(way.trace);
      }),
    ]);
    return way;
  };
  const addresses = new Set<string>();
  const uses: ReturnType<typeof useIpv6>[] = [];
  const find = (ip: string) => {
    if (uses.length < MAX_ADDRESSES && !addresses.has(ip)) uses.push(useIpv6(ip));
    addresses.add(ip);
  };
  /** Measures the way to one of the addresses; undefined if none may be used. */
  const measureOne = async (known?: Promise<unknown>) => {
    await known;
    // Other resolvers may have added some meanwhile.
    let works: (boolean | null)[] = [];
    while (works.length < uses.length) works = await Promise.all(uses.map(({ first }) => first));
    // The path to an address that does not work explains more.
    const chosen = uses[works.indexOf(false)] ?? uses[works.indexOf(true)];
    return chosen && measurePath(chosen.ip);
  };
  const useIpv4 = async (ips: readonly string[]) => {
    for (const ip of ips) if (await isAllowed(ip)) return use(ip).shown;
    return undefined;
  };

  const looking = abortedBy(signal);
  const near = { here: null as HereResult | null, steps: [] as readonly HereStep[] };
  const look = async () => {
    const onEvent: Call["onEvent"] = (event, data) => {
      if (event === "step") near.steps = [...near.steps, data as HereStep];
    };
    near.here = await ask<HereResult>(here, {}, { onEvent, signal: looking.signal });
    near.steps = near.here.steps;
    return judgeHere(near.here);
  };
  const isOver = once(looking.signal, "abort").then(() => null);
  const askDns: AskDns = (texts, onEvent) =>
    ask<DnsResult>(dns, { hostname: target.text, ...texts }, { onEvent });
  const names = name === null ? null : lookUp(askDns, find);
  const named = names && take("names", null, () => names.judged);
  const looked = services.look && take("here", null, () => Promise.race([look(), isOver]));
  if ("address" in target) find(formatIpv6(target.address));
  const checkAll = async () => {
    const overIpv4 = names?.ipv4.then(useIpv4);
    const [way] = await Promise.all([measureOne(names?.known), named, overIpv4]);
    await Promise.all(uses.map(({ ended }) => ended));
    return way;
  };
  const checked = checkAll();
  const judgeServers = async () => {
    const [answer] = await Promise.all([askDns({ type: "AAAA", resolver: "zone" }), checked]);
    return judgeZone(answer, isIpv6Heard());
  };
  const [way] = await Promise.all([checked, names && take("zone", null, judgeServers)]);
  const compared = compareFamilies(rows);
  if (compared) await take("compare", null, async () => compared);
  const doubted = (await names?.doubted) ?? [];
  const hearing = { steps, rows, addresses: addresses.size, doubted };
  // A look takes some seconds, and a clear answer does not wait for it.
  if (!mayBeHere(checkVerdict(target.text, port, hearing))) looking.abort();
  await looked;
  // What ended because the client went away was not silent.
  call.signal.throwIfAborted();
  const isPathHeard = isIpv6Heard() || rows.some(({ at }) => at !== undefined) || isHeard(way);
  return { ...hearing, stamp, way, near: { ...near, isPathHeard } };
}

/** Findings of a handshake with what does not speak TLS. */
const isNoTls = ({ finding }: Pick<Attempt, "finding">) =>
  finding === "not-tls" || finding === "tls-failed" || finding === "tls-silent";

/**
 * Asks all resolvers for the addresses of a name, and one for the proof of those of IPv6.
 *
 * @param find gets each IPv6 address as soon as a resolver has it
 * @returns promises: that an IPv6 address is known, or none will be; the addresses of IPv4; and what was found
 */
function lookUp(askDns: AskDns, find: (ip: string) => void) {
  const first = (type: "AAAA" | "A", tellAll?: (ips: readonly string[]) => void) => {
    const { promise: ips, resolve } = Promise.withResolvers<readonly string[]>();
    const tell: Call["onEvent"] = (_, reply) => {
      const found = addressesIn(reply as DnsResult, type);
      tellAll?.(found);
      if (found.length > 0) resolve(found);
    };
    const answer = askDns({ type, resolver: "all" }, tell).catch(apiErrorOf);
    return { ips, answer: answer.finally(() => resolve([])) };
  };
  const six = first("AAAA", (ips) => ips.forEach(find));
  const four = first("A");
  const proof = askDns({ type: "AAAA", dnssec: "yes" }).catch(apiErrorOf);
  // Together, because each of them fails if the client goes away.
  const answers = Promise.all([six.answer, four.answer, proof]);
  return {
    ...{ known: six.ips, ipv4: four.ips, judged: answers.then((all) => judgeNames(...all)) },
    doubted: six.answer.then(doubtsIn),
  };
}
