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
      const lines = block.split("\n");
      const field = (name: string) => {
        const own = lines.filter((line) => line.startsWith(`${name}:`));
        return own.map((line) => line.slice(name.length + 1).replace(/^ /, "")).join("\n");
      };
      const data = field("data");
      if (data !== "") yield { event: field("event"), data };
    }
  }
}
