/** Random numbers from 0 to below 1. */
export type Random = () => number;

/** A whole number from 0 to below `end`. */
export function below(random: Random, end: number): number {
  return Math.floor(random() * end);
}

/** One of several values. */
export function pick<T>(random: Random, values: readonly T[]): T {
  return values[below(random, values.length)] as T;
}

/** That number of random bytes. */
export function randomBytes(random: Random, length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, () => below(random, 256));
}
