/**
 * Shows what one Valkey server and one NATS server carry for a fleet, which bound is met first, and what
 * cutting the fleet changes: `bun scripts/simulate-fleet.ts`. It measures what a check and a message cost
 * the servers that are installed here, and simulates fleets of up to a thousand instances with that.
 */
import "../test/lab/enter.ts";
import { readFileSync } from "node:fs";
import { connect } from "@nats-io/transport-node";
import { ANNOUNCE_MS } from "../src/locations/directory.ts";
import { SUBJECTS } from "../src/locations/protocol.ts";
import { createConnection } from "../src/valkey/connection.ts";
import { TAKE } from "../src/valkey/limiter.ts";
import { BEAT_MS, GIVE_UP_MS } from "../src/valkey/valkey.ts";
import { programMissing } from "../test/lab/lab.ts";
import { startNats } from "../test/lab/nats.ts";
import { ValkeyServer, valkeyMissing } from "../test/lab/valkey.ts";
import { skip } from "./skip.ts";

/** Requests per second that each instance gets from clients. */
const REQUESTS_PER_SECOND = 50;
/** Milliseconds to a Valkey and back, in the same region and from another continent. */
const NEAR_MS = 0.5;
const FAR_MS = 80;
/** Calls that are given up, above which limits are no longer counted together. */
const TOLERATED = 0.001;
/** A server that is busier than this has a queue that grows with every burst. */
const MOST_BUSY = 0.9;
/** Connections to a Valkey while it is measured: a call costs more with them than with few. */
const CONNECTIONS = 200;
/** Seconds that are simulated: a queue of an overloaded server grows all the time. */
const HORIZON_SECONDS = 60;
/** The part of all requests that the busiest client sends; a hash cannot cut it. */
const BUSIEST_CLIENT = 0.02;

const missing = valkeyMissing ?? programMissing("nats-server");
if (missing !== null) skip({ reason: missing, canBeInstalled: true });

/** CPU microseconds that a process has used. */
function cpuMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

/** CPU microseconds of Valkey for the check of a request: two buckets, those of an address and its /64. */
async function measureCheck(): Promise<number> {
  const [calls, atOnce] = [40_000, CONNECTIONS];
  await using server = await ValkeyServer.start();
  const connections = Array.from({ length: CONNECTIONS }, () => createConnection(server.url));
  await Promise.all(
    connections.map((each) => each.run(TAKE, ["a"], [60, 2, "one", 100, 0, 0, 0, 0, 1, 0], 10_000)),
  );
  const before = cpuMicros(server.pid);
  for (let done = 0; done < calls; done += atOnce) {
    const check = (_: unknown, at: number) =>
      connections[at]?.run(
        TAKE,
        [`limit:${done + at}`, `limit:64:${at}`],
        [60, 2, "one", 100, 0, 0, 0, 0, 1, 0, "one", 1e9, 0, 0, 0, 0, 1, 0],
        10_000,
      );
    await Promise.all(Array.from({ length: atOnce }, check));
  }
  const micros = (cpuMicros(server.pid) - before) / calls;
  for (const connection of connections) connection.close();
  return micros;
}

/** CPU microseconds of the server for each message that it delivers, to one subscriber or to fifty. */
async function measureMessage(subscribers: number, bytes: number): Promise<number> {
  const messages = Math.ceil(100_000 / subscribers);
  await using server = await startNats();
  const open = () => connect({ servers: server.url });
  const [publisher, ...listeners] = await Promise.all(
    Array.from({ length: 1 + subscribers }, open),
  );
  let delivered = 0;
  const subject = SUBJECTS.here("ams");
  const callback = () => {
    delivered += 1;
  };
  for (const listener of listeners) listener.subscribe(subject, { callback });
  await Promise.all(listeners.map((listener) => listener.flush()));
  const data = new Uint8Array(bytes);
  const before = cpuMicros(server.pid);
  for (let message = 0; message < messages; message++) {
    publisher?.publish(subject, data);
    if (message % 100 === 0) await publisher?.flush();
  }
  while (delivered < messages * subscribers) await Bun.sleep(5);
  const micros = (cpuMicros(server.pid) - before) / delivered;
  await Promise.all([publisher, ...listeners].map((each) => each?.close()));
  return micros;
}

let seed = 17;

/** A number from 0 to 1; the numbers of each run are the same. */
function random(): number {
  seed = (seed + 0x6d2b79f5) | 0;
  let value = Math.imul(seed ^ (seed >>> 15), seed | 1);
  value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
  return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
}

/** How callers fare that share a Valkey. */
interface Outcome {
  readonly busy: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly givenUp: number;
}

/** Simulates a Valkey with one thread, which does call after call while they come at random. */
function simulateValkey(perSecond: number, checkMicros: number, roundTripMs: number): Outcome {
  const calls = Math.max(200_000, Math.min(5_000_000, Math.ceil(perSecond * HORIZON_SECONDS)));
  const took = new Float64Array(calls);
  let nowMs = 0;
  let freeAtMs = 0;
  for (let call = 0; call < calls; call++) {
    nowMs += (-Math.log(1 - random()) * 1000) / perSecond;
    freeAtMs = Math.max(freeAtMs, nowMs) + checkMicros / 1000;
    took[call] = freeAtMs - nowMs + roundTripMs;
  }
  took.sort();
  const at = (part: number) => took[Math.floor(calls * part)] ?? 0;
  const late = took.findIndex((ms) => ms > GIVE_UP_MS);
  return {
    busy: (perSecond * checkMicros) / 1e6,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    givenUp: late < 0 ? 0 : 1 - late / calls,
  };
}

/** Calls for each request of a client of 50 requests a second, which is served from leases; test/scale/leases.test.ts. */
const CALLS_WITH_LEASES = 0.2;

/**
 * Checks and beats of instances in a second.
 *
 * @param leased the part of the requests that come from fast clients; each other request is a call
 */
const callsOf = (instances: number, leased = 0) =>
  instances * (REQUESTS_PER_SECOND * (1 - leased * (1 - CALLS_WITH_LEASES)) + 1000 / BEAT_MS);

/** The most instances that a Valkey carries. */
function mostInstances(checkMicros: number, leased: number): number {
  let [fits, fails] = [1, 1_000_000];
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    const perSecond = callsOf(middle, leased);
    const isBusy = (perSecond * checkMicros) / 1e6 > MOST_BUSY;
    const { givenUp } = isBusy ? { givenUp: 1 } : simulateValkey(perSecond, checkMicros, NEAR_MS);
    if (givenUp <= TOLERATED) fits = middle;
    else fails = middle;
  }
  return fits;
}

const percent = (part: number) => `${(part * 100).toFixed(1)} %`;
const count = (value: number) => Math.round(value).toLocaleString("en");
const rowOf = ({ busy, p50Ms, p99Ms, givenUp }: Outcome) => ({
  busy: percent(busy),
  "p50 ms": p50Ms.toFixed(1),
  "p99 ms": p99Ms.toFixed(1),
  "given up": percent(givenUp),
});

const checkMicros = await measureCheck();
const announcement = JSON.stringify({ id: "00000000" });
/** The description of an agent, which each service that calls the roll gets. */
const DESCRIPTION_BYTES = 160;
/** A round of an mtr over 15 hops with names. */
const ROUND_BYTES = 5_000;
/** Services that connect in a second, as in a rolling restart of a thousand in ten minutes. */
const ROLL_CALLS = 1.6;
const fanOutMicros = await measureMessage(50, announcement.length);
const messageMicros = await measureMessage(1, ROUND_BYTES);
console.log(`a check costs Valkey ${checkMicros.toFixed(1)} µs of CPU`);
console.log(
  `a message costs NATS ${messageMicros.toFixed(1)} µs, or ${fanOutMicros.toFixed(1)} µs for each of fifty subscribers`,
);

console.log(`\nOne engine, ${REQUESTS_PER_SECOND} requests a second for each instance:`);
console.table(
  Object.fromEntries(
    [1, 10, 100, 300, 1000].map((instances) => [
      `${instances} instances`,
      {
        "calls/s": count(callsOf(instances)),
        ...rowOf(simulateValkey(callsOf(instances), checkMicros, NEAR_MS)),
      },
    ]),
  ),
);
for (const leased of [0, 0.5, 0.9]) {
  const most = mostInstances(checkMicros, leased);
  const busy = percent((callsOf(most, leased) * checkMicros) / 1e6);
  const fast = `${percent(leased)} of the requests are those of clients of 50 a second`;
  console.log(`It carries ${count(most)} instances, ${busy} busy. There, ${fast}.`);
}

console.log("\nA thousand instances, cut:");
const all = callsOf(1000);
const beats = all - 1000 * REQUESTS_PER_SECOND;
/** Every Valkey has its part of the clients, and the busiest client; every instance beats in each Valkey. */
const byHash = (valkeys: number) =>
  (1000 * REQUESTS_PER_SECOND * (1 - BUSIEST_CLIENT)) / valkeys +
  1000 * REQUESTS_PER_SECOND * BUSIEST_CLIENT +
  beats;
console.table({
  "one Valkey": rowOf(simulateValkey(all, checkMicros, NEAR_MS)),
  "one Valkey, far away": rowOf(simulateValkey(all / 5, checkMicros, FAR_MS)),
  "by key hash, 2 Valkeys": rowOf(simulateValkey(byHash(2), checkMicros, NEAR_MS)),
  "by key hash, 8 Valkeys": rowOf(simulateValkey(byHash(8), checkMicros, NEAR_MS)),
  "by region, 5 Valkeys": rowOf(simulateValkey(all / 5, checkMicros, NEAR_MS)),
});

console.log("\nOne NATS server:");
const MESSAGES_PER_ASK = 12;
const bytesOf = (instances: number, locations: number, asks: number) =>
  ((instances * locations * 1000) / ANNOUNCE_MS) * announcement.length +
  Math.min(1, instances / 1000) * ROLL_CALLS * locations * DESCRIPTION_BYTES +
  asks * MESSAGES_PER_ASK * ROUND_BYTES;
console.table(
  Object.fromEntries(
    (
      [
        [3, 10],
        [30, 100],
        [300, 100],
        [1000, 1000],
      ] as const
    ).map(([instances, locations]) => {
      const announced = (instances * locations * 1000) / ANNOUNCE_MS;
      const asks = instances * REQUESTS_PER_SECOND * 0.1;
      const rolls = Math.min(1, instances / 1000) * ROLL_CALLS * locations;
      const micros = announced * fanOutMicros + (rolls + asks * MESSAGES_PER_ASK) * messageMicros;
      return [
        `${instances} instances, ${locations} locations`,
        {
          "announcements/s": count(announced),
          "questions/s": count(asks),
          "MB/s": (bytesOf(instances, locations, asks) / 1e6).toFixed(1),
          cores: (micros / 1e6).toFixed(2),
        },
      ];
    }),
  ),
);
