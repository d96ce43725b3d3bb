/** Limits of the ICMPv6 module. */
export const LIMITS = {
  /**
   * How long an identifier and sequence stay taken behind the probe's timeout, in milliseconds: a
   * packet that comes later than that is not on the Internet any more.
   */
  quarantineMs: 10_000,
  /** Probes remembered at once, in flight or quarantined; about 60 MB. */
  maxProbes: 2 ** 18,
  /**
   * Packets that wait for the event loop, about 5 MB; behind them the kernel's buffer fills and then
   * drops, so that a flood does not grow the process.
   */
  maxQueuedPackets: 8192,
  /** Probes a second to one target /64 over all runs, and how many at once; what is above waits. */
  targetProbesPerSecond: 1000,
  targetBurst: 1000,
  /**
   * How long Linux keeps packets to a neighbour that it is looking for, in milliseconds (RFC 4861
   * section 10), and what each takes of the socket's room meanwhile, in bytes.
   */
  neighbourMs: 3000,
  queuedProbeBytes: 768,
  /** Which part of that room the probes to one /64 may take from runs that have heard nothing yet. */
  unheardShare: 0.5,
  /** Probes of one run: as many sequences as one identifier has. */
  maxProbesOfRun: 2 ** 16,
  /** Random places that are tried for the keys of a run: with all `maxProbes` taken by short runs, most places are free. */
  maxKeyTries: 64,
  /** How often a probe is handed to the kernel again that has no buffer for it. */
  maxSendRetries: 5,
  /** The wait before that, in milliseconds: a full queue of a slow link drains in this time. */
  sendRetryMs: 10,
  /** How often a silent hop is asked: once, and twice more. */
  maxTriesPerHop: 3,
  /** The least time between two of them in milliseconds: Linux sends one Time Exceeded in 100 ms to one address. */
  minRepeatMs: 100,
  /** How many hops behind the last one that answered are asked: routers hide in rows of five and more. */
  lookAhead: 16,
  /** Silent hops that are shown behind the last one that answered, where a trace ended without an answer. */
  gapLimit: 8,
  /** New hops asked at once, and the pause between two such groups in milliseconds: a near target answers meanwhile. */
  hopsAtOnce: 4,
  hopsPauseMs: 2,
  /** What Linux routers send by default: so many errors at once to one address, and then one per pause, with a tenth on top. */
  routerBurst: 6,
  routerPauseMs: 110,
  /** How long a hop waits for its turn at most, in milliseconds: the traces that may run at once, and some. */
  maxTurnMs: 10_000,
  /** After so many repeats in a row that nobody at a distance answered, hops there wait for no turn; how often those that wait look, in milliseconds. */
  maxVainRepeats: 8,
  turnCheckMs: 250,
  /** How long the answer of a router tells something about the traces that run beside it, in milliseconds. */
  knownMs: 10_000,
} as const;
