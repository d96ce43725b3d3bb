/** The run of a check: each step begins as soon as what it needs is known. */
import { once } from "node:events";
import { formatIpv6 } from "../../addr/format.ts";
import type { Call } from "../../api/endpoint.ts";
import { ApiError, apiErrorOf } from "../../api/errors.ts";
import { readTexts } from "../../api/parameters.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { FairSlots } from "../../gate/fair-slots.ts";
import type { Caller } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { ENOUGH } from "../budget.ts";
import { dns } from "../dns/endpoint.ts";
import type { DnsResult } from "../dns/result.ts";
import { here } from "../here/endpoint.ts";
import type { HereResult } from "../here/result.ts";
import { mtr } from "../mtr/endpoint.ts";
import type { MtrResult } from "../mtr/result.ts";
import { mtu } from "../mtu/endpoint.ts";
import type { MtuResult } from "../mtu/result.ts";
import { ping } from "../ping/endpoint.ts";
import type { PingResult } from "../ping/result.ts";
import type { Endpoint, Services } from "../services.ts";
import type { Target } from "../target.ts";
import { traceroute } from "../trace/endpoint.ts";
import type { TraceResult } from "../trace/result.ts";
import { judgeHttp, judgeTls, openTcp, type Service, withReach } from "./connect.ts";
import {
  addressesIn,
  judgeEcho,
  judgeHere,
  judgeMtr,
  judgeMtu,
  judgeNames,
  judgePolicy,
  judgePort,
  judgeTrace,
} from "./judge.ts";
import type { Step } from "./result.ts";
import {
  checkVerdict,
  compareFamilies,
  isWeb,
  MAX_ADDRESSES,
  mayBeHere,
  PLAIN_PORT,
  type Seen,
  stepOf,
} from "./verdict.ts";

/** The longest time of a check in milliseconds; a step that has not ended by then is skipped. */
export const LONGEST_MS = 20_000;

/** When the rounds of mtr end, so that what they have found comes in time. */
const ROUNDS_MS = 16_000;

/** Echo requests and SYNs to each address. */
const PROBES = "3";

/** Connections to each address. If all five over one family take longer than all over the other, chance is below 1 %. */
const CONNECTIONS = 5;

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
  run: () => Promise<Seen | null>,
) => Promise<boolean>;

/**
 * Takes all steps, and returns them in the order in which they ended, with the look at this machine that began with them.
 *
 * @param target the name, or the one address
 * @param call its signal aborts when the caller has gone, or the time is over
 * @param caller for whom connections leave
 */
export async function takeSteps(
  target: Target,
  port: number,
  call: Call,
  services: Services,
  caller: Caller,
) {
  const { signal } = call;
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
  const take: Take = async (name, ip, run) => {
    const startMs = performance.now();
    call.onEvent?.("begin", { name, ...(ip !== null && { ip }) });
    const seen = await run().catch((error: unknown): Seen | null => {
      const over = "It had not ended when the check was over.";
      return { status: "skipped", text: signal.aborted ? over : apiErrorOf(error).message };
    });
    if (seen === null) return true;
    const step = stepOf(name, ip, seen, performance.now() - startMs);
    steps.push(step);
    call.onEvent?.("step", step);
    // Behind a handshake that is not known, a response says nothing.
    return step.status !== "fail" && (step.status !== "skipped" || !isWeb(port));
  };
  const { ipv6, ipv4, ended } =
    "name" in target
      ? lookUp(target.text, take, ask)
      : { ipv6: [formatIpv6(target.address)], ipv4: [], ended: true };
  const mayUse = async (ip: string) => judgePolicy(ip, services, await isOwnAddress(ip));
  const isAllowed = async (ip: string) =>
    stepOf("policy", ip, await mayUse(ip), 0).status !== "fail";
  const firstAllowed = async (ips: readonly string[]) => {
    for (const ip of ips) if (await isAllowed(ip)) return ip;
    return undefined;
  };

  /** Opens connections, probes the port, and talks as a browser does; false if that failed. */
  const use = async (ip: string, probePort?: () => Promise<Seen | null>): Promise<boolean> => {
    const service: Service = { ip, port, name: "name" in target ? target.name : null };
    const through = { gate: services.gate, caller, signal };
    const within = (judge: typeof judgeTls | typeof judgeHttp) => () =>
      withReach(service, through, (reach) => judge(service, reach, services));
    const open = async () => {
      const [probed, opened] = await Promise.all([
        probePort?.(),
        withReach(service, through, (reach) => openTcp(service, CONNECTIONS, reach)),
      ]);
      if (opened.finding) return probed?.finding ? probed : opened;
      if (!probed?.finding) return { ...opened, ...(probed && { text: probed.text }) };
      // A connection proves more than probes, which some firewalls drop.
      const text = `${opened.text} Bare SYNs, as probes are, were not answered so.`;
      return { ...opened, status: "warn", text } as const;
    };
    if (!(await take("tcp", ip, open))) return false;
    if (port !== PLAIN_PORT && !(await take("tls", ip, within(judgeTls)))) return false;
    return !isWeb(port) || (await take("http", ip, within(judgeHttp)));
  };
  const useIpv6 = async (ip: string): Promise<boolean> => {
    if (!(await take("policy", ip, () => mayUse(ip)))) return false;
    const to = { target: ip, count: PROBES };
    const echoed = ask(ping, to) as Promise<PingResult>;
    const isAlive = echoed.then(({ stats }) => stats.received > 0).catch(() => false);
    const probePort = async (): Promise<Seen | null> => {
      const overTcp = { ...to, protocol: "tcp", port: `${port}` };
      const probed = await ask(ping, overTcp).catch(apiErrorOf);
      if (!(probed instanceof ApiError)) return judgePort(probed as PingResult, await isAlive);
      if (probed.code === "ICMP_UNAVAILABLE") return null;
      if (probed.code !== "NETWORK_UNREACHABLE") throw probed;
      return { finding: "not-sent", text: probed.message };
    };
    const [, works] = await Promise.all([
      take("echo", ip, async () => judgeEcho(await echoed)),
      use(ip, probePort),
    ]);
    return works;
  };
  const useIpv4 = async () => {
    const ip = await firstAllowed(await ipv4);
    if (ip !== undefined) await use(ip);
  };
  const checkPath = async (ip: string) => {
    const found = (name: Step["name"]) =>
      steps.find((step) => step.name === name && step.ip === ip);
    const isOpen = found("tcp")?.status === "ok";
    const isSilent = found("echo")?.finding === "no-echo";
    const overTcp = { target: ip, protocol: "tcp", port: `${port}` };
    // Loss of what clients send; and the way of what is answered, or of what alone is not.
    const mtrTexts = { ...(isOpen ? overTcp : { target: ip }), rounds: ROUNDS };
    const traceTexts = isOpen === isSilent ? overTcp : { target: ip };
    await Promise.all([
      take("mtu", ip, async () => judgeMtu((await ask(mtu, { target: ip })) as MtuResult)),
      take("mtr", ip, async () => judgeMtr((await ask(mtr, mtrTexts)) as MtrResult, isOpen)),
      take("trace", ip, async () => {
        const traced = (await ask(traceroute, traceTexts)) as TraceResult;
        const { source } = traced.details;
        isPathHeard ||= traced.hops.some((hop) => hop.ip !== null && hop.ip !== source);
        return judgeTrace(traced);
      }),
    ]);
  };
  const checkIpv6 = async () => {
    const ips = (await ipv6).slice(0, MAX_ADDRESSES);
    const { promise: chosen, resolve: choose } = Promise.withResolvers<string | undefined>();
    const all = ips.map(async (ip) => {
      // The path to an address that does not work explains more.
      if (!(await useIpv6(ip)) && (await isAllowed(ip))) choose(ip);
    });
    const path = chosen.then(async (ip) => {
      if (ip !== undefined) await checkPath(ip);
    });
    await Promise.all(all);
    choose(await firstAllowed(ips));
    await path;
  };

  let isPathHeard = false;
  let seen: HereResult | null = null;
  const looking = abortedBy(signal);
  const look = async () => {
    seen = (await ask(here, {}, undefined, looking.signal)) as HereResult;
    return judgeHere(seen);
  };
  const isOver = once(looking.signal, "abort").then(() => null);
  const looked = services.look && take("here", null, () => Promise.race([look(), isOver]));
  try {
    await Promise.all([ended, checkIpv6(), useIpv4()]);
    const compared = compareFamilies(steps);
    if (compared) await take("compare", null, async () => compared);
    // A look takes some seconds, and a clear answer does not wait for it.
    if (!mayBeHere(checkVerdict(target.text, port, steps))) looking.abort();
    await looked;
    return { steps, near: { here: seen as HereResult | null, isPathHeard } };
  } finally {
    clearTimeout(timer);
    looking.abort();
  }
}

/**
 * Asks all resolvers for the addresses of a name, and one for the proof of those of IPv6. Each list comes as soon as
 * one resolver has it.
 */
function lookUp(hostname: string, take: Take, ask: Ask) {
  const answer = (texts: Texts, onEvent?: Call["onEvent"]) =>
    ask(dns, { hostname, ...texts }, onEvent).catch(apiErrorOf) as Promise<DnsResult | ApiError>;
  const find = (type: "AAAA" | "A") => {
    const { promise: ips, resolve } = Promise.withResolvers<readonly string[]>();
    const tell = (reply: Pick<DnsResult, "records">) => {
      const found = addressesIn(reply, type);
      if (found.length > 0) resolve(found);
    };
    const answered = answer({ type, resolver: "all" }, (_, reply) => tell(reply as DnsResult));
    return { ips, answered: answered.finally(() => resolve([])) };
  };
  const [six, four] = [find("AAAA"), find("A")];
  const proof = answer({ type: "AAAA", dnssec: "yes" });
  const ended = take("names", null, async () =>
    // Together, because each of them fails if the client goes away.
    judgeNames(...(await Promise.all([six.answered, four.answered, proof]))),
  );
  return { ipv6: six.ips, ipv4: four.ips, ended };
}
