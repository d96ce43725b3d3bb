/**
 * A second parser for IPv6 text, written for reading rather than speed and sharing nothing with
 * src/addr: the fast one must agree with it. RFC 4291 section 2.2.
 */
export function slowParseIpv6(text: string): number[] | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [left, right] = halves.map(slowParseGroups);
  if (left === undefined || left === null || right === null) return null;
  if (right === undefined) return left.length === 8 ? left : null;
  if (/\./.test(halves[0] ?? "")) return null;
  const zeros = 8 - left.length - right.length;
  return zeros >= 1 ? [...left, ...Array<number>(zeros).fill(0), ...right] : null;
}

/** The groups of one side of `::`, null if one of them is malformed. */
function slowParseGroups(side: string): number[] | null {
  if (side === "") return [];
  const groups: number[] = [];
  const parts = side.split(":");
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
      continue;
    }
    const octets = slowParseIpv4(part);
    if (octets === null || index !== parts.length - 1) return null;
    const [a, b, c, d] = octets as [number, number, number, number];
    groups.push(a * 256 + b, c * 256 + d);
  }
  return groups;
}

/** Four decimals without leading zeros, each at most 255. */
export function slowParseIpv4(text: string): number[] | null {
  const octets = text.split(".");
  const good = octets.every((octet) => /^(0|[1-9][0-9]{0,2})$/.test(octet) && Number(octet) <= 255);
  return good && octets.length === 4 ? octets.map(Number) : null;
}
