/** A text, deflated (RFC 1951), in the alphabet of URLs (RFC 4648 section 5) without padding. */
export async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * The text that `packed` was given.
 *
 * @param maxBytes of the text; what would grow beyond is not read
 * @throws Error if it is damaged, too long, or not UTF-8
 */
export async function unpacked(text: string, maxBytes: number): Promise<string> {
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let [found, read] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return found + decoder.decode();
    read += value.length;
    if (read > maxBytes) {
      await reader.cancel();
      throw new RangeError("the text is too long");
    }
    found += decoder.decode(value, { stream: true });
  }
}
