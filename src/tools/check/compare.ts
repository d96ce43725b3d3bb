/** The comparison of the families. */
import { type Attempt, byFamily, byText, ofKind, worked } from "./ledger.ts";
import type { Seen } from "./result.ts";

/** Milliseconds from which slower connections over IPv6 are a finding: people notice a tenth of a second. */
const SLOWER_MS = 50;

/** Times that differ by fewer milliseconds count as equal: this process has other work between them. */
const SAME_MS = 5;

/** Standard errors within which 99 % of a normal distribution are. */
const Z = 2.58;

/**
 * By how many milliseconds connections over IPv6 take longer than over IPv4: the shift of Hodges and Lehmann, and its 99 %
 * interval by the rank sum of Mann and Whitney. Null if there are too few.
 */
export function slownessOf(six: readonly number[], four: readonly number[]) {
  const shifts = six.flatMap((a) => four.map((b) => a - b)).toSorted((a, b) => a - b);
  const pairs = shifts.length;
  const spread = Math.sqrt((pairs * (six.length + four.length + 1)) / 12);
  const outside = Math.floor(pairs / 2 - Z * spread);
  const [least, most] = [shifts[outside], shifts[pairs - 1 - outside]];
  if (outside < 0 || least === undefined || most === undefined) return null;
  return { least, most, shift: ((shifts[(pairs - 1) >> 1] ?? 0) + (shifts[pairs >> 1] ?? 0)) / 2 };
}

/** How much slower IPv6 connects than IPv4, negative if it is faster; null if that is not clear. */
export function speedOf(rows: readonly Attempt[]): { slowerMs: number; text: string } | null {
  const [six, four] = byFamily(ofKind(rows, "connect").filter(worked));
  const msOf = (opened: readonly Attempt[]) => opened.map(({ ms }) => ms);
  const addresses = [...Map.groupBy(six, ({ ip }) => ip).values()];
  const all = addresses.flatMap((opened) => slownessOf(msOf(opened), msOf(four)) ?? []);
  // Clients take the fastest address.
  const [slowness] = all.toSorted((a, b) => a.shift - b.shift);
  if (slowness === undefined) return null;
  const { least, most, shift } = slowness;
  const ms = Math.round(Math.abs(shift));
  if (-SAME_MS < least && most < SAME_MS) return { slowerMs: 0, text: "IPv4 connects as fast" };
  if (ms < SAME_MS || (least <= 0 && most >= 0)) return null;
  const [slowerMs, how] = shift > 0 ? [ms, "faster"] : [-ms, "slower"];
  return { slowerMs, text: `IPv4 connects ${ms} ms ${how}` };
}

/** The response with the worst HTTP status. */
const worstAnswer = (rows: readonly Attempt[]) =>
  rows
    .filter(({ httpStatus }) => httpStatus !== undefined)
    .toSorted((a, b) => (b.httpStatus ?? 0) - (a.httpStatus ?? 0) || byText(a.ip, b.ip))[0];

/** Compares the HTTP responses, certificates and times of the families; null unless both have answered. */
export function compareFamilies(rows: readonly Attempt[]): Seen | null {
  const families = byFamily(rows);
  if (!families.every((all) => ofKind(all, "connect").some(worked))) return null;
  // More requests go to IPv6, and a server may limit them.
  const turns = Math.max(...ofKind(families[1], "request").map(({ turn }) => turn));
  const [six, four] = families.map((all) => worstAnswer(all.filter(({ turn }) => turn <= turns)));
  // A redirect or a cache may differ. Users see an error that only one family has.
  if (six && four && (six.httpStatus ?? 0) >= 400 && (four.httpStatus ?? 0) < 400) {
    const text = `${six.ip} answers with status ${six.httpStatus}, and ${four.ip} with ${four.httpStatus}.`;
    return { finding: "http-differs", text };
  }
  const chains = families.map((all) => new Set(all.flatMap(({ chain = [] }) => chain)));
  const [own, other] = chains.filter(({ size }) => size > 0);
  const differs = own && other?.isDisjointFrom(own);
  const certificates = differs ? " Their chains of certificates differ." : "";
  const speed = speedOf(rows);
  const text = `${speed?.text ?? "Which of the families connects faster is not clear"}.${certificates}`;
  return (speed?.slowerMs ?? 0) < SLOWER_MS ? { text } : { finding: "slower", text };
}
