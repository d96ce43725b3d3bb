/** Which requests get events, what a stream sends, and what it leaves behind. */
import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { ApiError } from "../../src/api/errors.ts";
import { COMMENT_INTERVAL_MS, streamEvents } from "../../src/http/event-stream.ts";
import { prefers, type RequestInfo } from "../../src/http/request.ts";

test.each<[string | null, boolean]>([
  [null, false],
  ["", false],
  ["*/*", false],
  ["text/*", false],
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false],
  ["application/json", false],
  ["text/event-stream", true],
  ["Text/Event-Stream", true],
  ["text/event-stream, */*", true],
  ["text/event-stream;q=0.5", true],
  ["text/event-stream;q=0", false],
  ["text/event-stream;q=0.5, */*;q=0.1", true],
  ["text/event-stream;q=0.5, */*", false],
  ["text/event-stream;q=0.5, application/*", false],
  ["text/event-stream, application/json;q=0.9", true],
  ["application/json;q=0.5, text/event-stream;q=0.6, */*", true],
  ["application/json;q=0.6, text/event-stream;q=0.5", false],
  // As generated clients send what the OpenAPI document lists.
  ["application/json, text/event-stream", false],
  ["text/event-stream, application/json", false],
])("Accept: %p gets events: %p", (accept, expected) => {
  expect(prefers(accept, "text/event-stream", "application/json")).toBe(expected);
});

describe("a stream", () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  /** The messages of what went wrong. */
  const explained: string[] = [];
  beforeEach(() => void explained.splice(0));

  type Handle = Parameters<typeof streamEvents>[1];

  let info: RequestInfo;

  /** The body and the status of a stream; what was thrown before it. */
  async function start(handle: Handle) {
    const explain = ({ message }: Error) => {
      explained.push(message);
      return new ApiError("INTERNAL_ERROR", { requestId: "1" });
    };
    info = { request: new Request("http://localhost/"), headers: {} } as RequestInfo;
    return { response: await streamEvents(info, handle, explain), status: () => info.ended };
  }

  test("has the events in order, and then the result", async () => {
    const { response, status } = await start(async (onEvent) => {
      onEvent("hop", { hop: 2 });
      onEvent("hop", { hop: 1 });
      return '{"hops":[]}';
    });
    expect(await response.text()).toBe(
      'event: hop\ndata: {"hop":2}\n\nevent: hop\ndata: {"hop":1}\n\nevent: result\ndata: {"hops":[]}\n\n',
    );
    expect(await status()).toBe(200);
  });

  test("begins with the first event, before the result", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { response } = await start(async (onEvent) => {
      onEvent("hop", { hop: 1 });
      return await promise;
    });
    const reader = response.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(new TextDecoder().decode(value)).toBe('event: hop\ndata: {"hop":1}\n\n');
    resolve("{}");
  });

  test("that fails before its first event is not one", async () => {
    const early = start(async () => {
      throw new Error("early");
    });
    expect(early).rejects.toThrow("early");
    await early.catch(() => {});
    // Or its rejection would be nobody's, and the request not logged.
    expect(info.ended).toBeUndefined();
    expect(jest.getTimerCount()).toBe(0);
  });

  test("that fails later ends with the error", async () => {
    const { response, status } = await start(async (onEvent) => {
      onEvent("hop", { hop: 1 });
      throw new Error("late");
    });
    const [first, last, end] = (await response.text()).split("\n\n");
    expect(first).toStartWith("event: hop\n");
    expect(last).toStartWith('event: error\ndata: {"error":{"code":"INTERNAL_ERROR",');
    expect(end).toBe("");
    expect(await status()).toBe(500);
  });

  test("that is quiet has a comment at least every 10 s", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const { response } = await start(async (onEvent) => {
      onEvent("hop", { hop: 1 });
      return await promise;
    });
    const text = response.text();
    for (let passed = 0; passed < 30; passed += 10) {
      jest.advanceTimersByTime(10_000);
      await Promise.resolve();
    }
    resolve("{}");
    const comments = (await text).split("\n\n").filter((block) => block === ":");
    expect(comments.length).toBeGreaterThanOrEqual(3);
    expect(jest.getTimerCount()).toBe(0);
  });

  describe("whose client", () => {
    const kilobyte = (number: number) => ({ number, text: "x".repeat(1000) });
    const inTime = async (ms: number) => {
      for (let turn = 0; turn < 20; turn++) await null;
      jest.advanceTimersByTime(ms);
      for (let turn = 0; turn < 20; turn++) await null;
    };

    test("reads a little now and then goes on", async () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const { response, status } = await start(async (onEvent) => {
        for (let number = 1; number <= 100; number++) onEvent("hop", kilobyte(number));
        return await promise;
      });
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (let number = 1; number <= 30; number++) {
        await inTime(COMMENT_INTERVAL_MS);
        expect((await reader.read()).done).toBe(false);
        await inTime(0);
      }
      resolve("{}");
      let end = "";
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        end += new TextDecoder().decode(read.value);
      }
      expect(end).toEndWith("event: result\ndata: {}\n\n");
      expect(await status()).toBe(200);
    });

    test("does not read ends the run, and its stream ends without a result", async () => {
      const { response, status } = await start(async (onEvent, signal) => {
        for (let number = 1; number <= 100; number++) onEvent("hop", kilobyte(number));
        const { promise, reject } = Promise.withResolvers<string>();
        signal.addEventListener("abort", () => reject(signal.reason));
        return await promise;
      });
      await inTime(COMMENT_INTERVAL_MS);
      await inTime(COMMENT_INTERVAL_MS);
      expect(await status()).toBe(499);
      expect(explained).toEqual([]);
      expect(await response.text()).not.toMatch(/event: (result|error)/);
      expect(jest.getTimerCount()).toBe(0);
    });

    test("reads slowly misses events, and has the whole result", async () => {
      let charged = 0;
      const mayTell = (bytes: number) => {
        charged += bytes;
        return true;
      };
      const { response, status } = await start(async (onEvent) => {
        for (let number = 1; number <= 1000; number++) onEvent("hop", kilobyte(number), mayTell);
        return JSON.stringify({ all: "y".repeat(500_000) });
      });
      const events = (await response.text()).split("\n\n");
      const hops = events.filter((each) => each.startsWith("event: hop"));
      expect(hops.length).toBeGreaterThan(50);
      expect(hops.length).toBeLessThan(70);
      expect(charged).toBeLessThan(70_000);
      expect(events.at(-2)).toHaveLength(500_000 + 30);
      expect(await status()).toBe(200);
    });

    test("has had as much as the run may tell gets no more", async () => {
      const { response } = await start(async (onEvent) => {
        onEvent("hop", { hop: 1 }, (bytes) => bytes === 9);
        onEvent("hop", { hop: 22 }, (bytes) => bytes === 9);
        return "{}";
      });
      expect(await response.text()).toBe(
        'event: hop\ndata: {"hop":1}\n\nevent: result\ndata: {}\n\n',
      );
    });
  });
});

test("streams that have ended leave no signals and timers", async () => {
  using server = Bun.serve({
    hostname: "::1",
    port: 0,
    fetch: (request) =>
      streamEvents(
        { request, headers: {} } as RequestInfo,
        async (onEvent) => {
          onEvent("hop", {});
          return "{}";
        },
        () => new ApiError("INTERNAL_ERROR", { requestId: "1" }),
      ),
  });
  const kept = async () => {
    for (let count = 0; count < 100; count++) await (await fetch(server.url)).text();
    for (let turn = 0; turn < 3; turn++) {
      await Bun.sleep(1);
      Bun.gc(true);
    }
    const { AbortSignal: signals = 0, Timeout: timers = 0 } = heapStats().objectTypeCounts;
    return signals + timers;
  };
  const first = await kept();
  expect(await kept()).toBeLessThan(first + 50);
});
