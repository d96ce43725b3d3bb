/** Server-sent events as a client reads them. */

/** An event whose data are JSON. */
export interface SentEvent {
  readonly event: string;
  readonly data: unknown;
}

/** The event in a block of a stream; null for a comment. Throws for one that is not as the HTML standard says. */
function parseEvent(block: string): SentEvent | null {
  if (block === ":") return null;
  const [, event = "", json = ""] = /^event: (\w+)\ndata: (.+)$/.exec(block) ?? [];
  if (event === "") throw new Error(`not an event: ${JSON.stringify(block)}`);
  return { event, data: JSON.parse(json) };
}

/** All events of a whole stream. */
export function parseEvents(text: string): SentEvent[] {
  const blocks = text.split("\n\n");
  if (blocks.pop() !== "") throw new Error("the stream ends within an event");
  return blocks.map(parseEvent).filter((event) => event !== null);
}

/** The events of a response, each as soon as it comes. */
export async function* readEvents(response: Response): AsyncGenerator<SentEvent> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf("\n\n") + 2;
    yield* parseEvents(text.slice(0, end < 2 ? 0 : end));
    if (end >= 2) text = text.slice(end);
  }
}
