/** Reads the server-sent events of a response, each with its name and its data as text, without comments; HTML standard, section 9.2. */
export async function* readEvents(chunks: AsyncIterable<string>) {
  let rest = "";
  let last = "";
  for await (const chunk of chunks) {
    rest += chunk;
    // A long event in many chunks is searched once, not once for each chunk.
    const isEnd = `${last}${chunk}`.includes("\n\n");
    last = chunk.at(-1) ?? last;
    if (!isEnd) continue;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string) =>
        block
          .split("\n")
          .flatMap((line) =>
            line.startsWith(`${name}:`) ? line.slice(name.length + 1).replace(/^ /, "") : [],
          )
          .join("\n");
      if (field("data") !== "") yield { event: field("event"), data: field("data") };
    }
  }
}
