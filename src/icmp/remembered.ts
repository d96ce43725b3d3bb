import { COOKIE_BYTES } from "./packet.ts";
import type { SentProbe } from "./response.ts";

/** A copy of what is remembered of a probe. */
export interface RememberedProbe<Request extends SentProbe["request"]> extends SentProbe {
  /** In the order of sending. */
  readonly number: number;
  readonly request: Request;
  readonly hasResponse: boolean;
}

/** Probes whose memory is allocated, and freed, together. */
const CHUNK_PROBES = 1024;
/** The numbers of a probe: key, time of sending, end of the quarantine, and 1 after a response. */
const COLUMNS = 4;

const newChunk = <Request>() => ({
  numbers: new Float64Array(COLUMNS * CHUNK_PROBES),
  cookies: new Uint8Array(COOKIE_BYTES * CHUNK_PROBES),
  requests: [] as Request[],
});

/**
 * Probes by their key, from their sending to the end of their quarantine: 48 bytes each and their entry in
 * a map, and no object if the probes of a run share one request.
 */
export class RememberedProbes<Request extends SentProbe["request"]> {
  /** The number of each probe by its key. It is not iterated: that takes a step for each deleted entry. */
  readonly numbers = new Map<number, number>();
  #chunks: ReturnType<typeof newChunk<Request>>[] = [];
  /** The numbers of the first probe in the first chunk, and of the oldest probe. */
  #base = 0;
  #oldest = 0;

  /** Remembers a probe until `freeMs`, and returns its number. */
  add(key: number, cookie: Uint8Array, request: Request, sentMs: number, freeMs: number): number {
    const number = this.#oldest + this.numbers.size;
    if ((number - this.#base) % CHUNK_PROBES === 0) this.#chunks.push(newChunk());
    const { chunk, at } = this.#locate(number);
    chunk.numbers.set([key, sentMs, freeMs, 0], at * COLUMNS);
    chunk.cookies.set(cookie, at * COOKIE_BYTES);
    chunk.requests.push(request);
    this.numbers.set(key, number);
    return number;
  }

  get(key: number): RememberedProbe<Request> | undefined {
    const number = this.numbers.get(key);
    if (number === undefined) return undefined;
    const { chunk, at } = this.#locate(number);
    const [, sentMs = 0, , responses] = chunk.numbers.subarray(at * COLUMNS);
    const cookie = chunk.cookies.slice(at * COOKIE_BYTES, (at + 1) * COOKIE_BYTES);
    const request = chunk.requests[at] as Request;
    return { number, request, sentMs, cookie, hasResponse: responses === 1 };
  }

  /** Notes that a probe has a response. */
  noteResponse(number: number): void {
    const { chunk, at } = this.#locate(number);
    chunk.numbers[at * COLUMNS + COLUMNS - 1] = 1;
  }

  /** Replaces the request of each probe. */
  replaceRequests(replace: (request: Request) => Request): void {
    for (const chunk of this.#chunks) chunk.requests = chunk.requests.map(replace);
  }

  /** Forgets the probes whose quarantine is over; a long one delays those behind it, which is safe. */
  forget(nowMs: number): void {
    while (this.numbers.size > 0) {
      const { chunk, at } = this.#locate(this.#oldest);
      const [key = 0, , freeMs = 0] = chunk.numbers.subarray(at * COLUMNS);
      if (freeMs > nowMs) return;
      this.numbers.delete(key);
      this.#oldest++;
      if (at < CHUNK_PROBES - 1 && this.numbers.size > 0) continue;
      this.#chunks.shift();
      this.#base = this.#oldest;
    }
  }

  #locate(number: number) {
    const behind = number - this.#base;
    const chunk = this.#chunks[Math.floor(behind / CHUNK_PROBES)];
    if (chunk === undefined) throw new RangeError(`probe ${number} is forgotten`);
    return { chunk, at: behind % CHUNK_PROBES };
  }
}
