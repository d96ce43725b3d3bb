/** The tries of an address: transactions and, over IPv6, the probes beside them. */
import { type Ipv6Address, tryParseIpv6 } from "../../addr/ipv6.ts";
import { apiErrorOf } from "../../api/errors.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { pause, systemClock } from "../../util/clock.ts";
import { proberOf } from "../run.ts";
import { isFailure } from "./findings.ts";
import { type Attempt, isIpv6, worked } from "./ledger.ts";
import { judgePolicy } from "./policy.ts";
import { sendPairs } from "./probes.ts";
import { followRedirect } from "./redirect.ts";
import { OVER, type RunningCheck } from "./running.ts";
import { isWeb, PLAIN_PORT } from "./service.ts";
import { type Part, type Redirect, type Through, transact } from "./transaction.ts";

/** Transactions with each IPv6 address, and connections to the IPv4 address: ten find one broken backend of four in 188 of 200 runs. */
const TRANSACTIONS = 10;

/** Connections over IPv4 that also send a request, for comparison. */
const COMPARED = 3;

/** Milliseconds between two connections: SYNs go in between, and a port gets ten a second of both together. */
const TRANSACTION_MS = 320;

/** One transaction in so many reads the body: three of ten do. */
const BODY_EVERY = 4;

/** Milliseconds that the choice of a path waits for the first echo reply. */
const HEARD_MS = 500;

/** True for the finding of a handshake with a server that does not speak TLS. */
const isNoTls = ({ finding }: Pick<Attempt, "finding">) =>
  finding === "not-tls" || finding === "tls-failed" || finding === "tls-silent";

function depthOf(ip: string, port: number, turn: number): Through["depth"] {
  if (!isWeb(port)) return turn === 1 ? "handshake" : "connect";
  if (!isIpv6(ip) && turn > COMPARED) return "connect";
  return turn % BODY_EVERY === 1 ? "body" : "request";
}

/** Begins the transactions with an address. The promises of each tell whether its stages work. */
function beginTransactions(check: RunningCheck, ip: string) {
  const { name, port, services, signal } = check;
  const service = { ip, port, name, isTls: port !== PLAIN_PORT };
  const through = { gate: services.gate, caller: check.caller, signal };
  const followed = new Map<string, ReturnType<typeof followRedirect>>();
  const follow = (redirect: Redirect) =>
    followed.getOrInsertComputed(redirect.to, () =>
      followRedirect(service, redirect, through, services),
    );
  let why = OVER;
  const begin = (turn: number) => {
    const connect = Promise.withResolvers<boolean>();
    const handshake = Promise.withResolvers<boolean>();
    let works = true;
    const tell = (part: Part) => {
      // Other ports may have another protocol.
      if (part.kind === "handshake" && !isWeb(port) && isNoTls(part)) {
        why = part.text ?? why;
        return;
      }
      check.add({ ip, turn, ...part, isOpen: isWeb(port) && part.isOpen === true });
      works = worked(part) && !isFailure(part.finding);
      if (part.kind === "connect") connect.resolve(works);
      if (part.kind === "handshake") handshake.resolve(works);
    };
    const make = async () => {
      try {
        await pause(systemClock, (turn - 1) * TRANSACTION_MS, signal);
        const depth = depthOf(ip, port, turn);
        await transact(service, { ...through, depth, ...(isIpv6(ip) && { follow }) }, tell);
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
  };
  const turns = Array.from({ length: TRANSACTIONS }, (_, at) => begin(at + 1));
  return { turns, isTls: service.isTls, why: () => why };
}

/**
 * Makes transactions with an address, and shows their steps.
 *
 * @param probed resolves when the probes beside them have ended, which the step `tcp` shows too
 * @returns whether the first transaction works, and when all have ended
 */
function useAddress(check: RunningCheck, ip: string, probed?: Promise<void> | null) {
  const { turns, isTls, why } = beginTransactions(check, ip);
  type Stage = keyof (typeof turns)[number];
  const all = (stage: Stage) => Promise.all(turns.map((turn) => turn[stage]));
  const some = (stage: Stage) => {
    const working = turns.map(async (turn) => (await turn[stage]) || Promise.reject());
    return Promise.any(working).catch(() => false);
  };
  const show = async () => {
    const shown = [check.show("tcp", ip, Promise.all([all("connect"), probed]))];
    if (isTls && (await some("connect"))) shown.push(check.show("tls", ip, all("handshake"), why));
    if (isWeb(check.port) && (await some(isTls ? "handshake" : "connect")))
      shown.push(check.show("http", ip, all("ended"), why));
    await Promise.all([...shown, all("ended")]);
  };
  return { first: turns[0]?.ended, shown: show() };
}

const judgeUse = async ({ services }: RunningCheck, ip: string) =>
  judgePolicy(ip, services, await isOwnAddress(ip));

/** Tries the first IPv4 address that may be connected to. */
export async function tryIpv4(check: RunningCheck, ips: readonly string[]): Promise<void> {
  for (const ip of ips) {
    if (!isFailure((await judgeUse(check, ip)).finding)) return useAddress(check, ip).shown;
  }
}

/** Tries an IPv6 address. `first` tells whether its first transaction works, null if it may not be used. */
export function tryIpv6(check: RunningCheck, ip: string) {
  const { port, services, caller, signal } = check;
  const prober = "unavailable" in services.icmp ? null : services.icmp;
  const first = Promise.withResolvers<boolean | null>();
  const run = async () => {
    if (!(await check.take("policy", ip, () => judgeUse(check, ip)))) return;
    const heard = Promise.withResolvers<void>();
    const target = tryParseIpv6(ip) as Ipv6Address;
    const wish = { target, timeoutMs: services.config.probeTimeoutMs, caller, signal };
    const probed =
      prober &&
      sendPairs(prober, port, wish, (probe, leftMs) => {
        check.add({ ip, ...probe }, leftMs);
        if (probe.kind === "echo") heard.resolve();
      });
    const used = useAddress(check, ip, probed);
    void used.first?.then(async (works) => {
      await Promise.race([heard.promise, pause(systemClock, HEARD_MS, signal)]);
      first.resolve(works);
    });
    // Without a prober, it throws why there is none.
    const noEcho = async () => proberOf(services, true) && null;
    const echoed = probed ? check.show("echo", ip, probed) : check.take("echo", ip, noEcho);
    await Promise.all([used.shown, echoed]);
  };
  return { ip, first: first.promise, ended: run().finally(() => first.resolve(null)) };
}
