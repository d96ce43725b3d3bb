/**
 * The Internet checksum of bytes: the one's complement of the one's complement sum of their 16-bit
 * words, an odd byte padded with 0; RFC 1071. It is 0 over bytes that hold their own right checksum.
 */
export function internetChecksum(bytes: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) {
    sum += ((bytes[at] as number) << 8) | (bytes[at + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return ~sum & 0xffff;
}
