/** A text, deflated (RFC 1951), as base64url (RFC 4648 section 5) without padding. */
export async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}

/**
 * The text that `packed` got.
 *
 * @param maxBytes of the text; a longer one is not read to its end
 * @throws Error if it is damaged or too long
 */
export async function unpacked(text: string, maxBytes: number): Promise<string> {
  const bytes = Uint8Array.fromBase64(text, { alphabet: "base64url" });
  let read = 0;
  const bounded = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      read += chunk.length;
      if (read > maxBytes) throw new RangeError("the text is too long");
      controller.enqueue(chunk);
    },
  });
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(inflated.pipeThrough(bounded)).text();
}
