import { describe, expect, test } from "bun:test";
import { createLog, LineWriter } from "../../src/util/log.ts";

test("writes many lines at once and loses none", async () => {
  const writes: string[] = [];
  const writer = new LineWriter({ write: (bytes) => writes.push(String(bytes)), flush: () => {} });
  for (let line = 0; line < 1000; line++) writer.write(`${line}\n`);
  await writer.flush();
  expect(writes).toHaveLength(1);
  expect(writes[0]?.split("\n")).toHaveLength(1001);
});

test("drops and counts lines while the reader does not read, and continues when it reads again", async () => {
  const writes: string[] = [];
  const { promise: reads, resolve: readAgain } = Promise.withResolvers<void>();
  const { promise: written, resolve: onWrite } = Promise.withResolvers<void>();
  const write = (bytes: string | Uint8Array) => {
    writes.push(String(bytes));
    onWrite();
  };
  const writer = new LineWriter({ write, flush: () => reads });
  writer.write("first\n");
  await written;
  const line = `${"x".repeat(1023)}\n`;
  for (let count = 0; count < 3000; count++) writer.write(line);
  readAgain();
  await writer.flush();
  expect(writes[0]).toBe("first\n");
  expect(writes.join("")).toContain(`${3000 - 1024} lines were dropped`);
  expect(writes.join("").length).toBeLessThan(1_100_000);
});

test("survives a reader that has gone, even after dropped lines", async () => {
  let tries = 0;
  const writer = new LineWriter({
    write: () => {
      tries++;
      throw new Error("EPIPE");
    },
    flush: () => {},
  });
  writer.write("lost\n");
  await writer.flush();
  for (let count = 0; count < 3000; count++) writer.write(`${"x".repeat(1023)}\n`);
  await writer.flush();
  writer.write("lost as well\n");
  await writer.flush();
  expect(tries).toBe(3);
});

describe("a log line", () => {
  const fields = {
    text: 'he said "no" = x',
    path: "a\\b",
    empty: "",
    plain: "2001:db8::1",
    unicode: "äö",
    turned: "a\u202eb\nc",
    number: 1.5,
    yes: true,
    nothing: null,
    absent: undefined,
  };

  test.each([
    [
      "text",
      'level=warning logger=sixscope msg="in {braces}" text="he said \\"no\\" = x" path="a\\\\b" empty="" plain=2001:db8::1 unicode="äö" turned="a\ufffdb\\nc" number=1.5 yes=true nothing=null\n',
    ],
    [
      "json",
      '"level":"WARN","message":"in {braces}","logger":"sixscope","text":"he said \\"no\\" = x","path":"a\\\\b","empty":"","plain":"2001:db8::1","unicode":"äö","turned":"a\ufffdb\\nc","number":1.5,"yes":true,"nothing":null}\n',
    ],
  ] as const)(
    "as %s quotes what is not plain, and hides what would rearrange a terminal",
    (format, end) => {
      const lines: string[] = [];
      const log = createLog({
        level: "warn",
        format,
        priorities: true,
        write: (line) => lines.push(line),
      });
      log.info("not at this level");
      log.warn("in {braces}", fields);
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatch(/^<4>(time=|\{"@timestamp":")\d{4}-\d{2}-\d{2}T[\d:.]{12}Z/);
      expect(lines[0]).toEndWith(end);
    },
  );
});
