/** A client's bucket in its window, as an instance knows it; counts are tokens. */
export interface Bucket {
  /** The Unix second when the window began. */
  start: number;
  /** The Unix second when this instance first met the client in the window. */
  readonly opened: number;
  /** Granted here. */
  used: number;
  /** Counted by Valkey for this instance, with those that are not used yet: its lease. */
  held: number;
  /** Counted for all other instances at the last answer. */
  others: number;
  /** The part of `used` that the last answer was for. */
  answered: number;
  /** The `tickOf` of the last answer. */
  asked: number;
  /** Tokens that requests wait for. */
  waiting: number;
}

/** How much a client may use at once, and how much its headers can promise. */
export type Rule = (bucket: Bucket, limit: number) => { left: number; promised: number };

/** A bucket as Valkey knows it. */
type Answer = Pick<Bucket, "start" | "held" | "others">;

/** A lease is used without asking in the tick of its answer and in the next one, which are as long in milliseconds. */
const TICK_MS = 500;

/** The part of a limit that is leased at once. */
const LEASED_PART = 1 / 10;

/** Requests in a row that can go to another instance before one comes here. */
const PROMISE_SLACK = 6;

/** Standard deviations by which others may have taken more than a client that goes anywhere at random suggests. */
const DEVIATIONS = 2;

/** A time in Unix milliseconds as a tick, modulo 2^32. */
export const tickOf = (nowMs: number) => Math.floor(nowMs / TICK_MS) >>> 0;

const isCurrent = ({ asked }: Bucket, tick: number) => (tick - asked) >>> 0 <= 1;

/**
 * The tokens that others have taken when `upTo` is used here. They are taken to go on as before: a client that is
 * spread over the instances uses as much elsewhere, and one that is not uses nothing there. What was seen is
 * a sample, so they are taken to take what it allows, at most as much each as this one. If Valkey has said
 * nothing yet in this window, the client is taken to be spread.
 */
function othersAt({ others, answered }: Bucket, upTo: number, instances: number): number {
  const most = others + DEVIATIONS * Math.sqrt(others);
  const each = answered > 0 ? Math.min(instances - 1, most / answered) : instances - 1;
  return others + Math.ceil(each * Math.max(0, upTo - answered));
}

/** The whole limit, less what others were known to take. */
export const counted: Rule = ({ used, others }, limit) => {
  const left = limit - others - used;
  return { left, promised: left };
};

/** As `counted`; the whole limit where Valkey has said nothing since a tick, because it must be told what is used. */
export function uncertain(since: number): Rule {
  return (bucket, limit) => {
    const isOld = bucket.asked > 0 && ((bucket.asked - since) | 0) < 0;
    return isOld ? { left: limit, promised: limit } : counted(bucket, limit);
  };
}

/** The lease; a request that waits for Valkey leaves none for those behind it, unless the answer has come. */
export function leased(instances: number, tick: number | "answered"): Rule {
  return (bucket, limit) => {
    const { used, held, answered, waiting } = bucket;
    const isUsable = tick === "answered" || isCurrent(bucket, tick);
    const left = held - used - (tick === "answered" ? 0 : waiting);
    // Since the answer, the others may have taken twice as much as is usual, and some more.
    const doubtful = used > answered ? 2 * (used - answered) + PROMISE_SLACK : 0;
    const promised = limit - used - othersAt(bucket, answered + doubtful, instances);
    return { left: isUsable ? left : 0, promised: Math.max(held - used, promised) };
  };
}

/** Without Valkey: the lease, and this instance's share of what was left, at least one request of a window. */
export function shared(instances: number): Rule {
  return (bucket, limit) => {
    const { used, held, others } = bucket;
    const isUnknown = held === 0 && others === 0;
    const rest = isUnknown ? limit : limit - held - othersAt(bucket, held + 1, instances);
    const share = Math.max(isUnknown ? 1 : 0, Math.floor(rest / instances));
    const left = held + share - used;
    return { left, promised: left };
  };
}

/**
 * The numbers that Valkey is told and asked: the limit, what is used and held here, what others have taken, the start
 * of the window, and the tokens that are needed and welcome beyond them. A client's first requests, and
 * those of a slow one, lease nothing beyond what they need.
 */
export function question(bucket: Bucket, limit: number, instances: number, tick: number) {
  const { used, held, start, waiting } = bucket;
  const most = isCurrent(bucket, tick) ? Math.floor(limit * LEASED_PART) - waiting : 0;
  const more = Math.max(0, Math.min(most, used >> 1));
  return [limit, used, held, othersAt(bucket, used, instances), start, waiting, more];
}

/** The counts that an answer changes, which may be late; `limit` bounds what is believed. */
export function learn({ used, waiting }: Bucket, answer: Answer, limit: number, tick: number) {
  const held = Math.min(answer.held, used + limit);
  return { ...answer, held, answered: Math.min(held, used + waiting), asked: tick };
}
