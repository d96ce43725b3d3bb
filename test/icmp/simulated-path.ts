/** A path without packets: what becomes of each size on it, at each time. */
import type { Fate, Line } from "../../src/tools/mtu/size-search.ts";
import { ECHO, UDP } from "../../src/tools/mtu/size-search.ts";

import type { FakeClock } from "../util/fake-clock.ts";

/** The router before a link. */
export interface SimulatedRouter {
  /** Sends no Time Exceeded. */
  readonly isSilent?: boolean;
  /** Sends no Packet Too Big. */
  readonly isMute?: boolean;
  /** The MTU that its Packet Too Big claims instead of the true one. */
  readonly claim?: number;
  /** Says Packet Too Big of every larger packet, and forwards it all the same. */
  readonly forges?: number;
  /** The least time between two of its Time Exceeded in milliseconds, after a burst of six. */
  readonly limitMs?: number;
}

export interface SimulatedPath {
  /** The MTU of each link at a time; link 0 is this machine's. */
  readonly links: (atMs: number) => readonly number[];
  /** One fewer than links. */
  readonly routers: readonly SimulatedRouter[];
  readonly backBytes?: number;
  /** The largest echo request that the target answers; 0 for none. */
  readonly echoBytes?: number;
  /** True if the target answers UDP. */
  readonly hasClosedPort?: boolean;
  /** The least time between two echo replies in milliseconds, after a burst of one. */
  readonly echoLimitMs?: number;
  /** The chance that a packet or its answer is lost. */
  readonly loss?: number;
  readonly rttMs?: number;
  /** True while packets of a line get nowhere. */
  readonly isOut?: (line: Line, atMs: number) => boolean;
}

/** Sends packets over a path, and counts them. */
export function simulate(path: SimulatedPath, clock: FakeClock, random: () => number) {
  const startMs = clock.nowMs();
  const sent: { readonly line: Line; readonly bytes: number }[] = [];
  const buckets = new Map<string, { tokens: number; atMs: number }>();
  const { rttMs = 20, loss = 0 } = path;

  /** Takes a token. */
  const isAllowed = (name: string, intervalMs: number | undefined, burst: number) => {
    if (intervalMs === undefined) return true;
    const nowMs = clock.nowMs();
    const { tokens, atMs } = buckets.get(name) ?? { tokens: burst, atMs: nowMs };
    const now = Math.min(burst, tokens + (nowMs - atMs) / intervalMs);
    buckets.set(name, { tokens: now >= 1 ? now - 1 : now, atMs: nowMs });
    return now >= 1;
  };

  const fateOf = (line: Line, bytes: number): Fate => {
    const links = path.links(clock.nowMs() - startMs);
    if (bytes > (links[0] as number)) return { kind: "refused" };
    const isOut = path.isOut?.(line, clock.nowMs() - startMs) ?? false;
    if (isOut || random() < loss / 2) return { kind: "lost" };
    const answered = (): Fate => ({ kind: random() < loss / 2 ? "lost" : "passed" });
    let forged: Fate | null = null;
    for (const [at, router] of path.routers.entries()) {
      if (line === at + 1) {
        const isHeard = !router.isSilent && isAllowed(`${at}`, router.limitMs, 6);
        const fate = isHeard ? answered() : ({ kind: "lost" } as const);
        return fate.kind === "passed" ? fate : (forged ?? fate);
      }
      const mtu = links[at + 1] as number;
      if (bytes > mtu) {
        if (router.isMute || answered().kind === "lost") return forged ?? { kind: "lost" };
        const claim = router.claim ?? mtu;
        return claim >= 1280 && claim < bytes
          ? { kind: "lost", hintBytes: claim }
          : { kind: "lost" };
      }
      const lie = router.forges;
      if (lie !== undefined && bytes > lie && answered().kind === "passed") {
        forged ??= { kind: "lost", hintBytes: lie };
      }
    }
    const none = forged ?? ({ kind: "lost" } as const);
    const { backBytes = Infinity, echoBytes = Infinity } = path;
    const isTaken =
      line === UDP
        ? path.hasClosedPort && Math.min(bytes, 1280) <= backBytes
        : bytes <= Math.min(backBytes, echoBytes) && isAllowed("echo", path.echoLimitMs, 1);
    if (!isTaken) return none;
    return answered().kind === "passed" ? { kind: "passed" } : none;
  };

  return {
    sent,
    async send(line: Line, bytes: number): Promise<Fate> {
      sent.push({ line, bytes });
      const fate = fateOf(line, bytes);
      const isAnswer = fate.kind !== "lost" || fate.hintBytes !== undefined;
      const delayMs = fate.kind === "refused" ? 0 : isAnswer ? rttMs : Math.max(200, 2 * rttMs);
      await new Promise<void>((resolve) => clock.after(delayMs, resolve));
      return fate;
    },
    /** The largest size that gets to a hop now, and comes back for `ECHO`. */
    truth(line: Line, atMs = clock.nowMs() - startMs): number {
      const there = Math.min(...path.links(atMs).slice(0, line >= ECHO ? undefined : line));
      const { backBytes = Infinity, echoBytes = Infinity } = path;
      return line === ECHO ? Math.min(there, backBytes, echoBytes) : there;
    },
  };
}
