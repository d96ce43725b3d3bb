import { COOKIE_BYTES } from "../wire/packet.ts";
import type { SentProbe } from "./response.ts";

/** Probes whose memory is allocated, and freed, together. */
const CHUNK_PROBES = 1024;

const newChunk = <Request>() => ({
  keys: new Uint32Array(CHUNK_PROBES),
  sentMs: new Float64Array(CHUNK_PROBES),
  /** The end of each quarantine. */
  freeMs: new Float64Array(CHUNK_PROBES),
  /** 1 after a response. */
  responded: new Uint8Array(CHUNK_PROBES),
  cookies: new Uint8Array(COOKIE_BYTES * CHUNK_PROBES),
  requests: [] as Request[],
});

/**
 * Probes by their key, from their sending to the end of their quarantine: 37 bytes each and their entry in
 * a map, and no object if the probes of a run share one request.
 */
export class RememberedProbes<Request extends SentProbe["request"]> {
  /** The number of each probe by its key. It is not iterated: that takes a step for each deleted entry. */
  readonly numbers = new Map<number, number>();
  #chunks: ReturnType<typeof newChunk<Request>>[] = [];
  /** The number of the first probe in the first chunk. */
  #base = 0;
  /** The number of the oldest probe. */
  oldest = 0;

  /** Remembers a probe until `freeMs`, and returns its number. */
  add(key: number, cookie: Uint8Array, request: Request, sentMs: number, freeMs: number): number {
    const number = this.oldest + this.numbers.size;
    if ((number - this.#base) % CHUNK_PROBES === 0) this.#chunks.push(newChunk());
    const { chunk, at } = this.#locate(number);
    chunk.keys[at] = key;
    chunk.sentMs[at] = sentMs;
    chunk.freeMs[at] = freeMs;
    chunk.cookies.set(cookie, at * COOKIE_BYTES);
    chunk.requests.push(request);
    this.numbers.set(key, number);
    return number;
  }

  /** A copy of what is remembered of a probe; its number is in the order of sending. */
  get(key: number) {
    const number = this.numbers.get(key);
    if (number === undefined) return undefined;
    const { chunk, at } = this.#locate(number);
    const cookie = chunk.cookies.slice(at * COOKIE_BYTES, (at + 1) * COOKIE_BYTES);
    const request = chunk.requests[at] as Request;
    const hasResponse = chunk.responded[at] === 1;
    return { number, request, sentMs: chunk.sentMs[at] as number, cookie, hasResponse };
  }

  /** Notes that a probe has a response. */
  noteResponse(number: number): void {
    const { chunk, at } = this.#locate(number);
    chunk.responded[at] = 1;
  }

  /** Replaces the requests of those of these probes that are remembered. */
  replaceRequests(numbers: readonly number[], replace: (request: Request) => Request): void {
    for (const number of numbers) {
      if (number < this.oldest) continue;
      const { chunk, at } = this.#locate(number);
      chunk.requests[at] = replace(chunk.requests[at] as Request);
    }
  }

  /** Forgets the probes whose quarantine is over; a long one delays those behind it, which is safe. */
  forget(nowMs: number): void {
    while (this.numbers.size > 0) {
      const { chunk, at } = this.#locate(this.oldest);
      if ((chunk.freeMs[at] as number) > nowMs) return;
      this.numbers.delete(chunk.keys[at] as number);
      this.oldest++;
      if (at < CHUNK_PROBES - 1 && this.numbers.size > 0) continue;
      this.#chunks.shift();
      this.#base = this.oldest;
    }
  }

  #locate(number: number) {
    const behind = number - this.#base;
    const chunk = this.#chunks[Math.floor(behind / CHUNK_PROBES)];
    if (chunk === undefined) throw new RangeError(`probe ${number} is forgotten`);
    return { chunk, at: behind % CHUNK_PROBES };
  }
}
