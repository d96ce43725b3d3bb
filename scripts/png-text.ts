/** A comment in a PNG file: a chunk `tEXt` before the last one, PNG specification 11.3.4.3. */

const KEYWORD = "Comment\0";

/** The bytes of `IEND`, which every file ends with. */
const END_BYTES = 12;

/** Puts a comment of Latin-1 characters into a PNG file. */
export function withText(png: Uint8Array, text: string): Uint8Array {
  const data = Buffer.from(`tEXt${KEYWORD}${text}`, "latin1");
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length - 4);
  sum.writeUInt32BE(Bun.hash.crc32(data));
  const end = png.length - END_BYTES;
  return Buffer.concat([png.subarray(0, end), length, data, sum, png.subarray(end)]);
}

/** The comment in a PNG file; null without one. */
export function textIn(png: Uint8Array): string | null {
  const file = Buffer.from(png);
  const at = file.indexOf(`tEXt${KEYWORD}`);
  if (at === -1) return null;
  const start = at + 4 + KEYWORD.length;
  return file.toString("latin1", start, at + 4 + file.readUInt32BE(at - 4));
}
