/** The run of a check: each step begins as soon as what it needs is known. */
import { once } from "node:events";
import { formatIpv6 } from "../../addr/format.ts";
import { type Ipv6Address, tryParseIpv6 } from "../../addr/ipv6.ts";
import type { Call } from "../../api/endpoint.ts";
import { type ApiError, apiErrorOf } from "../../api/errors.ts";
import { readTexts } from "../../api/parameters.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { FairSlots } from "../../gate/fair-slots.ts";
import type { Caller } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { pause, systemClock } from "../../util/clock.ts";
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
import { FAILURES } from "./findings.ts";
import {
  addressesIn,
  judgeHere,
  judgeMtr,
  judgeMtu,
  judgeNames,
  judgePolicy,
  judgeTrace,
  judgeZone,
} from "./judge.ts";
import { type Attempt, isIpv6, worked } from "./ledger.ts";
import { tracedHops, type Way } from "./path.ts";
import { sendPairs } from "./probes.ts";
import { followRedirect } from "./redirect.ts";
import type { CheckPath, Seen, Step } from "./result.ts";
import { PLAIN_PORT, type Through, transact } from "./transaction.ts";
import { checkVerdict, compareFamilies, isWeb, MAX_ADDRESSES, mayBeHere } from "./verdict.ts";
import { stepOf, type View, viewsOf } from "./views.ts";

/** The longest time of a check in milliseconds; a step that has not ended by then is skipped. */
export const LONGEST_MS = 20_000;

/** When the rounds of mtr end, so that what they have found comes in time. */
const ROUNDS_MS = 16_000;

/** Transactions with each IPv6 address, and connections to the one of IPv4: ten find one of four broken backends in 188 of 200. */
const TRANSACTIONS = 10;

/** The connections over IPv4 that go on, for comparison. */
const COMPARED = 3;

/** Milliseconds between two connections: SYNs go in between, and a port gets ten of both a second. */
const TRANSACTION_MS = 320;

/** Every so many transactions, one reads the body: three of ten. */
const BODY_EVERY = 4;

/** How long the choice of a path waits for the first echo reply, in milliseconds. */
const HEARD_MS = 500;

/** Rounds of mtr. */
const ROUNDS = "20";

type Texts = Readonly<Record<string, string>>;

/** Asks a tool of the table. */
type Ask = (
  tool: Endpoint,
  texts: Texts,
  onEvent?: Call["onEvent"],
  signal?: AbortSignal,
) => Promise<object>;

/** Takes a step, which is left out if it sees null; false if it failed, so that those behind it are not taken. */
type Take = (
  name: Step["name"],
  ip: string | null,
  run: () => Promise<Seen | Pick<Step, "status" | "text"> | null>,
) => Promise<boolean>;

const OVER = "Not finished in time.";

/**
 * Makes all attempts and takes all steps, and returns the ledger, the steps that are no views of it, and what is known of
 * the machine that checks.
 *
 * @param target the name, or the one address
 * @param call its signal aborts when the caller has gone, or the time is over
 * @param caller for whom connections leave
 */
export async function hear(
  target: Target,
  port: number,
  call: Call,
  services: Services,
  caller: Caller,
) {
  const { signal } = call;
  const name = "name" in target ? target.name : null;
  const startMs = performance.now();
  const rows: Attempt[] = [];
  const steps: Step[] = [];
  const enough = new AbortController();
  const timer = setTimeout(() => enough.abort(ENOUGH), ROUNDS_MS);
  const ask: Ask = async (tool, texts, onEvent, within = signal) =>
    (await tool.handle(
      readTexts(tool.parameters, texts),
      { ...call, signal: within, enough: enough.signal, onEvent, allowSeconds() {} },
      // Within the slot of the check.
      { ...services, probeSlots: new FairSlots(1) },
    )) as object;
  const begin = (name: Step["name"], ip: string | null) =>
    call.onEvent?.("begin", { name, ...(ip !== null && { ip }) });
  const take: Take = async (name, ip, run) => {
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
    const step =
      viewsOf(rows.filter((row) => row.ip === ip)).find((view) => view.name === name) ??
      stepOf(name, ip, { status: "skipped", text: why() }, 0);
    if (step.status === "skipped") steps.push(step);
    call.onEvent?.("step", step);
  };
  const isIpv6Heard = () => rows.some((row) => isIpv6(row.ip) && worked(row));
  const addresses = new Set<string>();
  const mayUse = async (ip: string) => judgePolicy(ip, services, await isOwnAddress(ip));
  const isAllowed = async (ip: string) =>
    stepOf("policy", ip, await mayUse(ip), 0).status !== "fail";

  /**
   * Makes transactions with an address, and shows their steps. Returns whether the first of them worked, and when all
   * have ended.
   */
  const use = (ip: string, probed?: Promise<unknown>) => {
    const isOfIpv6 = isIpv6(ip);
    const service = { ip, port, name, isTls: port !== PLAIN_PORT };
    const through = { gate: services.gate, caller, signal };
    let why = OVER;
    const followed = new Map<string, ReturnType<typeof followRedirect>>();
    const follow = (to: string) =>
      followed.getOrInsertComputed(to, () => followRedirect(service, to, through, services));
    const depthOf = (turn: number): Through["depth"] => {
      if (!isWeb(port)) return turn === 1 ? "handshake" : "connect";
      if (!isOfIpv6) return turn <= COMPARED ? "request" : "connect";
      return turn % BODY_EVERY === 1 ? "body" : "request";
    };
    const turns = Array.from({ length: TRANSACTIONS }, (_, at) => {
      const turn = at + 1;
      const [opened, secured] = [
        Promise.withResolvers<boolean>(),
        Promise.withResolvers<boolean>(),
      ];
      const make = async () => {
        await pause(systemClock, at * TRANSACTION_MS, signal);
        let works = true;
        await transact(
          service,
          {
            ...{ ...through, depth: depthOf(turn) },
            ...(isOfIpv6 && { follow }),
          },
          (part) => {
            // Another protocol may be at home on other ports.
            if (part.kind === "handshake" && !isWeb(port) && isNoTls(part)) {
              why = part.text ?? why;
              return;
            }
            rows.push({ ip, turn, atMs: performance.now() - startMs - part.ms, ...part });
            works = worked(part) && !(part.finding && FAILURES.includes(part.finding));
            if (part.kind === "connect") opened.resolve(works);
            if (part.kind === "handshake") secured.resolve(works);
          },
        );
        return works;
      };
      const ended = make().catch((error: unknown) => {
        if (!signal.aborted) why = apiErrorOf(error).message;
        return false;
      });
      void ended.finally(() => {
        opened.resolve(false);
        secured.resolve(false);
      });
      return { opened: opened.promise, secured: secured.promise, ended };
    });
    const some = (parts: readonly Promise<boolean>[]) =>
      Promise.any(parts.map(async (part) => (await part) || Promise.reject())).catch(() => false);
    const [opened, secured, ended] = (["opened", "secured", "ended"] as const).map((part) =>
      turns.map((turn) => turn[part]),
    ) as [Promise<boolean>[], Promise<boolean>[], Promise<boolean>[]];
    const shown = async () => {
      const steps = [show("tcp", ip, Promise.all([...opened, probed]))];
      if (service.isTls && (await some(opened)))
        steps.push(show("tls", ip, Promise.all(secured), () => why));
      if (isWeb(port) && (await some(service.isTls ? secured : opened)))
        steps.push(show("http", ip, Promise.all(ended), () => why));
      await Promise.all([...steps, ...ended]);
    };
    return { first: turns[0]?.ended, shown: shown() };
  };

  const prober = "unavailable" in services.icmp ? null : services.icmp;
  /** Tries an IPv6 address; whether it may be used, and its first transaction works, and when all has ended. */
  const useIpv6 = (ip: string) => {
    const first = Promise.withResolvers<{ ip: string; isAllowed: boolean; works: boolean }>();
    const run = async () => {
      const isAllowed = await take("policy", ip, () => mayUse(ip));
      if (!isAllowed) return;
      const heard = Promise.withResolvers<void>();
      const about = {
        target: tryParseIpv6(ip) as Ipv6Address,
        port,
        timeoutMs: services.config.probeTimeoutMs,
      };
      const probed = prober
        ? sendPairs(prober, { ...about, caller, signal }, (probe) => {
            rows.push({ ip, atMs: performance.now() - startMs - probe.ms, ...probe });
            if (probe.kind === "echo") heard.resolve();
          })
        : undefined;
      const used = use(ip, probed);
      void used.first?.then(async (works) => {
        await Promise.race([heard.promise, pause(systemClock, HEARD_MS, signal)]);
        first.resolve({ ip, isAllowed, works });
      });
      await Promise.all([
        used.shown,
        probed
          ? show("echo", ip, probed)
          : take("echo", ip, async () => {
              proberOf(services, true);
              return null;
            }),
      ]);
    };
    const ended = run().finally(() => first.resolve({ ip, isAllowed: false, works: false }));
    return { first: first.promise, ended };
  };
  const checkPath = async (ip: string) => {
    const at = rows.filter((row) => row.ip === ip && worked(row));
    const isOpen = at.some(({ kind }) => kind === "connect");
    const isSilent = !at.some(({ kind }) => kind === "echo");
    const overTcp = { target: ip, protocol: "tcp", port: `${port}` };
    // SYNs, of which a port gets few, only where echo requests say nothing; and the way of what alone is not answered.
    const mtrTexts = { ...(isOpen && isSilent ? overTcp : { target: ip }), rounds: ROUNDS };
    const traceTexts = isOpen === isSilent ? overTcp : { target: ip };
    const hear = ({
      hops,
      details: { source },
    }: Pick<TraceResult | MtrResult, "hops" | "details">) => {
      isPathHeard ||= hops.some((hop) => hop.ip !== null && hop.ip !== source);
    };
    way = { ip };
    const own = way;
    const found: Hop[] = [];
    const showHop: Call["onEvent"] = (event, data) => {
      if (event !== "hop") return;
      const hop = data as Hop;
      const isNew = found[hop.hop - 1]?.ip == null;
      found[hop.hop - 1] = hop;
      // A network decides how often a hop changes.
      if (!isNew) return;
      const known = tracedHops(found.filter((each) => each !== undefined));
      const path: CheckPath = { ip, reached: hop.ip === ip, hops: known };
      call.onEvent?.("path", path);
    };
    await Promise.all([
      take("mtu", ip, async () => {
        own.mtu = (await ask(mtu, { target: ip })) as MtuResult;
        return judgeMtu(own.mtu);
      }),
      take("mtr", ip, async () => {
        own.mtr = (await ask(mtr, mtrTexts)) as MtrResult;
        hear(own.mtr);
        return judgeMtr(own.mtr, isOpen && isSilent);
      }),
      take("trace", ip, async () => {
        own.trace = (await ask(traceroute, traceTexts, showHop)) as TraceResult;
        hear(own.trace);
        return judgeTrace(own.trace);
      }),
    ]);
  };
  const uses: ReturnType<typeof useIpv6>[] = [];
  const find = (ip: string) => {
    if (addresses.has(ip)) return;
    addresses.add(ip);
    if (uses.length < MAX_ADDRESSES) uses.push(useIpv6(ip));
  };
  const checkIpv6 = async (known?: Promise<unknown>, ended?: Promise<unknown>) => {
    await known;
    const path = async () => {
      // Other resolvers may have added some meanwhile.
      let firsts: Awaited<(typeof uses)[number]["first"]>[] = [];
      while (firsts.length < uses.length)
        firsts = await Promise.all(uses.map(({ first }) => first));
      const allowed = firsts.filter(({ isAllowed }) => isAllowed);
      // The path to an address that does not work explains more.
      const chosen = allowed.find(({ works }) => !works) ?? allowed[0];
      if (chosen) await checkPath(chosen.ip);
    };
    await Promise.all([path(), ended]);
    await Promise.all(uses.map((each) => each.ended));
  };
  const useIpv4 = async (ips: readonly string[]) => {
    for (const ip of ips) if (await isAllowed(ip)) return use(ip).shown;
    return undefined;
  };

  let isPathHeard = false;
  let way: Way | null = null;
  let seen: HereResult | null = null;
  const looking = abortedBy(signal);
  /** As they ended; in the result they have their order. */
  let nearSteps: readonly HereStep[] = [];
  const noteStep: Call["onEvent"] = (event, data) => {
    if (event === "step") nearSteps = [...nearSteps, data as HereStep];
  };
  const look = async () => {
    seen = (await ask(here, {}, noteStep, looking.signal)) as HereResult;
    nearSteps = seen.steps;
    return judgeHere(seen);
  };
  const isOver = once(looking.signal, "abort").then(() => null);
  try {
    const names = name === null ? null : lookUp(target.text, take, ask, find);
    const looked = services.look && take("here", null, () => Promise.race([look(), isOver]));
    if ("address" in target) find(formatIpv6(target.address));
    const checked = Promise.all([checkIpv6(names?.known, names?.ended), names?.ipv4.then(useIpv4)]);
    const zone = { hostname: target.text, type: "AAAA", resolver: "zone" };
    const judged =
      names &&
      take("zone", null, async () => {
        const [answer] = await Promise.all([ask(dns, zone) as Promise<DnsResult>, checked]);
        return judgeZone(answer, isIpv6Heard());
      });
    await Promise.all([checked, judged]);
    const compared = compareFamilies(rows);
    if (compared) await take("compare", null, async () => compared);
    const hearing = { steps, rows, addresses: addresses.size };
    // A look takes some seconds, and a clear answer does not wait for it.
    if (!mayBeHere(checkVerdict(target.text, port, hearing))) looking.abort();
    await looked;
    isPathHeard ||= isIpv6Heard() || rows.some(({ at }) => at !== undefined);
    return {
      ...hearing,
      way: way as Way | null,
      near: { here: seen as HereResult | null, isPathHeard },
      nearSteps,
    };
  } finally {
    clearTimeout(timer);
    looking.abort();
  }
}

/** Findings of a handshake with what does not speak TLS. */
const isNoTls = ({ finding }: Pick<Attempt, "finding">) =>
  finding === "not-tls" || finding === "tls-failed" || finding === "tls-silent";

/**
 * Asks all resolvers for the addresses of a name, and one for the proof of those of IPv6.
 *
 * @param find gets each IPv6 address as soon as a resolver has it
 */
function lookUp(hostname: string, take: Take, ask: Ask, find: (ip: string) => void) {
  const answer = (texts: Texts, onEvent?: Call["onEvent"]) =>
    ask(dns, { hostname, ...texts }, onEvent).catch(apiErrorOf) as Promise<DnsResult | ApiError>;
  const first = (type: "AAAA" | "A", tellAll: (ips: readonly string[]) => void) => {
    const { promise: ips, resolve } = Promise.withResolvers<readonly string[]>();
    const tell = (reply: Pick<DnsResult, "records">) => {
      const found = addressesIn(reply, type);
      if (found.length === 0) return;
      tellAll(found);
      resolve(found);
    };
    const answered = answer({ type, resolver: "all" }, (_, reply) => tell(reply as DnsResult));
    return { ips, answered: answered.finally(() => resolve([])) };
  };
  const six = first("AAAA", (ips) => ips.forEach(find));
  const four = first("A", () => {});
  const proof = answer({ type: "AAAA", dnssec: "yes" });
  const ended = take("names", null, async () =>
    // Together, because each of them fails if the client goes away.
    judgeNames(...(await Promise.all([six.answered, four.answered, proof]))),
  );
  return { known: six.ips, ipv4: four.ips, ended };
}
