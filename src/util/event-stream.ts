/** Reads the server-sent events of a response, each with its name and its data as text, without comments; HTML standard, section 9.2. */
export async function* readEvents(chunks: AsyncIterable<string>) {
  let rest = "";
  for await (const chunk of chunks) {
    const blocks = (rest + chunk).split("\n\n");
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
