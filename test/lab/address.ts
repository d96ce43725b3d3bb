/** A prefix: the first `bits` bits of `address`. */
export type Prefix = { readonly address: Uint8Array; readonly bits: number };

/**
 * The 16 bytes of an IPv6 address in text (hexadecimal groups only, no embedded IPv4).
 *
 * @throws Error when it is none
 */
export function addressBytes(text: string): Uint8Array {
  const halves = text.split("::");
  const groups = halves.map((half) => (half === "" ? [] : half.split(":")));
  const [head = [], tail = []] = groups;
  const missing = 8 - head.length - tail.length;
  const all = [...head, ...Array.from({ length: Math.max(missing, 0) }, () => "0"), ...tail];
  const wellFormed = halves.length === 1 ? missing === 0 : halves.length === 2 && missing > 0;
  if (!wellFormed || !all.every((group) => /^[0-9a-f]{1,4}$/i.test(group))) {
    throw new Error(`"${text}" is not an IPv6 address`);
  }
  return Uint8Array.from(
    all.flatMap((group) => {
      const value = Number.parseInt(group, 16);
      return [value >>> 8, value & 0xff];
    }),
  );
}

/** The text of RFC 5952 for 16 bytes. */
export function addressText(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) =>
    (((bytes[2 * index] ?? 0) << 8) | (bytes[2 * index + 1] ?? 0)).toString(16),
  ).join(":");
  // The longest run of zero groups, the first of equals, becomes "::" where it is two or longer.
  const runs = [...groups.matchAll(/(?<![0-9a-f])0(?::0)+(?![0-9a-f])/g)];
  const longest = runs.reduce((best, [run]) => (run.length > best.length ? run : best), "");
  if (longest === "") return groups;
  const at = runs.find(([run]) => run === longest)?.index ?? 0;
  const before = groups.slice(0, at).replace(/:$/, "");
  const after = groups.slice(at + longest.length).replace(/^:/, "");
  return `${before}::${after}`;
}

/** Reads `address/bits`, or a lone address as a prefix of 128 bits. */
export function parsePrefix(text: string): Prefix {
  const [address = "", bits = "128"] = text.split("/");
  return { address: addressBytes(address), bits: Number(bits) };
}

/** True if an address of 16 bytes is in a prefix. */
export function isInPrefix(address: Uint8Array, { address: base, bits }: Prefix): boolean {
  for (let index = 0; index * 8 < bits; index++) {
    const mask = 0xff & (0xff00 >> Math.min(8, bits - index * 8));
    if ((((address[index] ?? 0) ^ (base[index] ?? 0)) & mask) !== 0) return false;
  }
  return true;
}
