/** A fleet without time and without a network: instances, a Valkey that can fail, and a client. */
import { createRateLimiter } from "../../src/limits/token-bucket.ts";
import { createLog } from "../../src/util/log.ts";
import { type Client, createConnection } from "../../src/valkey/connection.ts";
import { createSharedLimiter } from "../../src/valkey/limiter.ts";
import { createValkey } from "../../src/valkey/valkey.ts";
import { VirtualClock } from "../icmp/fake.ts";

const LOG = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

/** Unix time when the virtual clock is at 0. */
const EPOCH_MS = 1_800_000_000_000;

interface Bucket {
  start: number;
  taken: number;
  unnamed: number;
  readonly own: Map<string, number>;
}

/** As `take.lua` for one bucket; `test/scale/valkey-scripts.test.ts` compares the two. */
export function takeFrom(
  buckets: Map<string, Bucket>,
  key: string,
  [name, ...numbers]: readonly (string | number)[],
  [window, parts, now]: readonly [number, number, number],
): number[] {
  const [limit = 0, used = 0, held = 0, others = 0, start = 0, needed = 0, more = 0] =
    numbers.map(Number);
  const isActive = (from: number) => now >= from && now < from + window;
  let bucket = buckets.get(key);
  if (bucket === undefined || !isActive(bucket.start)) {
    bucket = { start: isActive(start) ? start : now, taken: 0, unnamed: 0, own: new Map() };
    buckets.set(key, bucket);
  }
  let own = bucket.own.get(String(name)) ?? 0;
  const unknown = Math.max(used, held) - own;
  if (unknown > 0) {
    own += unknown;
    bucket.taken += Math.max(0, unknown - bucket.unnamed);
    bucket.unnamed = Math.max(0, bucket.unnamed - unknown);
    const missing = Math.max(0, own + others - bucket.taken);
    bucket.taken += missing;
    bucket.unnamed += missing;
  }
  const left = Math.max(0, limit - bucket.taken);
  const share = Math.max(0, Math.min(more, Math.floor((left - needed) / parts)));
  const extra = bucket.taken > own ? share : more;
  const granted = Math.max(0, Math.min(left, used + needed + extra - own));
  const theirs = bucket.taken - own;
  bucket.taken += granted;
  bucket.own.set(String(name), own + granted);
  return [bucket.start, own + granted, theirs];
}

/** A fleet of instances that share a Valkey; `seed` decides delays. */
export class Fleet {
  readonly clock = new VirtualClock();
  readonly random: (bound: number) => number;
  /** Calls that reached Valkey, without the beats. */
  calls = 0;
  instances: Instance[] = [];
  #buckets = new Map<string, Bucket>();
  #members = new Map<string, number>();
  #isFrozen = false;
  #isDead = false;
  #waiting: (() => void)[] = [];
  #snapshot: [Map<string, Bucket>, Map<string, number>] = [new Map(), new Map()];
  /** Fails all calls under way, at each death. */
  #abort = new AbortController();

  constructor(seed: number) {
    let state = (seed * 2654435761 + 1) % 0x7fffffff;
    this.random = (bound) => {
      state = (state * 48271) % 0x7fffffff;
      return Math.floor((state / 0x7fffffff) * bound);
    };
  }

  /** Starts an instance, and waits until it has spoken to Valkey or given up. */
  async start(limit: number): Promise<Instance> {
    const instance = new Instance(this, limit);
    const started = instance.valkey.start(async () => {});
    this.instances.push(instance);
    let isDone = false;
    void started.then(() => {
      isDone = true;
    });
    while (!isDone) await this.step();
    return instance;
  }

  /** Until each instance counts all of them. */
  async settle(): Promise<void> {
    const all = this.instances.length;
    while (this.instances.some(({ valkey }) => !valkey.isUp || valkey.instances !== all))
      await this.step();
  }

  /** One timer, and all that follows from it. */
  async step(): Promise<void> {
    this.clock.fire();
    await settled();
  }

  async pass(ms: number): Promise<void> {
    const until = this.clock.nowMs() + ms;
    let isOver = false;
    this.clock.after(until - this.clock.nowMs(), () => {
      isOver = true;
    });
    while (!isOver) await this.step();
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const action of this.#waiting.splice(0)) action();
  }

  /** Remembers what Valkey has, for `revive`. */
  save(): void {
    this.#snapshot = structuredClone([this.#buckets, this.#members]);
  }

  kill(): void {
    this.#isDead = true;
    this.#waiting = [];
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  /** Starts Valkey again, with the data of the last `save` or as it was. */
  revive(data: "lost" | "older" | "kept"): void {
    this.#isDead = false;
    this.#isFrozen = false;
    if (data === "lost") [this.#buckets, this.#members] = [new Map(), new Map()];
    if (data === "older") [this.#buckets, this.#members] = structuredClone(this.#snapshot);
  }

  /** A connection of an instance. */
  connect(): Client {
    let isClosed = false;
    const send = ((_: string, [, ...call]: string[]) =>
      new Promise((resolve, reject) => {
        const lost = () => reject(new Error("Connection closed"));
        if (this.#isDead || isClosed) return lost();
        this.#abort.signal.addEventListener("abort", lost);
        const arrive = () => {
          if (this.#isDead) return;
          // Also if the connection is closed meanwhile, as a real one does.
          if (this.#isFrozen) return void this.#waiting.push(arrive);
          const reply = this.#run(call);
          this.clock.after(0.2 + this.random(10) / 10, () => isClosed || resolve(reply));
        };
        this.clock.after(0.2 + this.random(10) / 10, arrive);
      })) as Client["send"];
    return {
      send,
      close: () => {
        isClosed = true;
      },
    };
  }

  #run([count = "0", ...rest]: string[]): unknown {
    const keys = rest.slice(0, Number(count));
    const args = rest.slice(Number(count));
    const nowMs = EPOCH_MS + this.clock.nowMs();
    const [id = ""] = args;
    if (keys[0] !== "instances") {
      this.calls += 1;
      const now = Math.floor(nowMs / 1000);
      const [window, parts] = args.map(Number) as [number, number];
      const each = (key: string, at: number) =>
        takeFrom(this.#buckets, key, args.slice(2 + 8 * at, 10 + 8 * at), [window, parts, now]);
      return [now, ...keys.flatMap(each)];
    }
    if (keys[1] === "keys:changes") {
      this.#members.set(id, nowMs);
      for (const [other, seenMs] of this.#members)
        if (seenMs <= nowMs - Number(args[1])) this.#members.delete(other);
      return [Math.floor(nowMs), this.#members.size, null];
    }
    this.#members.delete(id);
    for (const [at, key] of keys.slice(1).entries()) {
      const [name = "", held, used] = args.slice(1 + 3 * at);
      const bucket = this.#buckets.get(key);
      if (bucket?.own.get(name) !== Number(held)) continue;
      bucket.taken += Number(used) - Number(held);
      bucket.own.set(name, Number(used));
    }
    return 1;
  }
}

/** An instance of a fleet, until it is killed. */
export class Instance {
  readonly valkey;
  readonly limiter;
  isAlive = true;
  readonly #fleet: Fleet;

  constructor(fleet: Fleet, limit: number) {
    this.#fleet = fleet;
    const clock = {
      nowMs: () => fleet.clock.nowMs(),
      after: (ms: number, action: () => void) =>
        fleet.clock.after(ms, () => {
          if (this.isAlive) action();
        }),
    };
    this.valkey = createValkey({ url: "", prefix: "" }, LOG, clock, () =>
      createConnection("", clock, fleet.connect()),
    );
    this.limiter = createSharedLimiter(
      createRateLimiter({ anonymous: limit, prefix: 0 }, this.valkey.nowMs),
      this.valkey,
    );
  }

  /** Ends at once. */
  kill(): void {
    this.isAlive = false;
    this.#fleet.instances = this.#fleet.instances.filter((each) => each !== this);
  }

  /** Ends as the service does. */
  async stop(): Promise<void> {
    let isDone = false;
    void this.valkey.leave(this.limiter.unused()).then(() => {
      isDone = true;
    });
    await settled();
    while (!isDone) await this.#fleet.step();
    this.kill();
  }
}

const settled = () => new Promise<void>((resolve) => void setImmediate(resolve));
