/** No code, parameter or path of the API is in what people read. */
import { describe, expect, test } from "bun:test";
import type { z } from "zod";
import { ERROR_CATALOGUE, ERRORS, type ErrorCode, type ErrorKind } from "../../src/api/errors.ts";
import { alone, readTexts } from "../../src/api/parameters.ts";
import { inCommandWords } from "../../src/cli/tool.ts";
import { errorName } from "../../src/icmp/wire/icmp-error.ts";
import { servedEndpoint } from "../../src/server/endpoints.ts";
import { viewsOf } from "../../src/tools/check/views.ts";
import { pingVerdict } from "../../src/tools/ping/verdict.ts";
import { errorText } from "../../src/tools/report.ts";
import { plainText, tableLines } from "../../src/tools/report-text.ts";
import { summaryRow, summaryTable } from "../../src/tools/summary.ts";
import { TOOLS } from "../../src/tools/table.ts";
import { traceVerdict } from "../../src/tools/trace/verdict.ts";

const ROUTER = "2001:db8::1";

/** The codes of the verdicts of every tool that has one. */
const VERDICTS = TOOLS.flatMap(({ endpoint }) => {
  const { details } = (endpoint.response() as z.ZodObject).shape as { details?: z.ZodObject };
  const verdict = details?.shape?.["verdict"] as z.ZodObject | undefined;
  return verdict ? ((verdict.shape["code"] as z.ZodEnum).options as string[]) : [];
});

/** Every ICMPv6 error that has a name. */
const ICMP = [1, 2, 3, 4].flatMap((type) =>
  Array.from({ length: 12 }, (_, code) => [type, code, errorName(type, code)] as const),
);

const isCode = (text: string) =>
  [...VERDICTS, ...ICMP.map(([, , name]) => name)]
    .filter((code) => code.includes("-"))
    .find((code) => new RegExp(`(?<![\\w-])${code}(?![\\w-])`).test(text));

/** What looks like a constant, a parameter or a path of the API; settings are what operators write. */
const MACHINE = /\b(?!SIXSCOPE_|CAP_)[A-Z]+_[A-Z_]+\b|\b[a-z]+[A-Z]\w*: |GET \/api/;

function expectWords(text: string) {
  expect([text, isCode(text), MACHINE.exec(text)?.[0]]).toEqual([text, undefined, undefined]);
}

test("the verdicts and errors of several locations", () => {
  const codes = [...VERDICTS, ...Object.keys(ERROR_CATALOGUE)];
  expect(codes.length).toBeGreaterThan(100);
  const rows = codes.map((code) =>
    code in ERROR_CATALOGUE
      ? summaryRow("ams", {}, code)
      : summaryRow("ams", { details: { verdict: { code } } }),
  );
  expectWords(plainText(tableLines(summaryTable({ summary: rows, matching: rows.length }))));
});

test.each(ICMP)("the error of type %d and code %d, %s", (type, code, name) => {
  const error = { type, code, name, from: ROUTER, fromTarget: false };
  const lost = { seq: 1, reason: name, type, code, from: ROUTER, rtt: 1 } as never;
  const end = { reason: "unreachable", error } as const;
  const attempts = (["connect", "syn"] as const).map((kind) => {
    return { kind, ip: "2001:db8::80", turn: 1, atMs: 0, ms: 1, reason: name, at: ROUTER };
  });
  expectWords(errorText(error));
  expectWords(pingVerdict(0, [lost]).text);
  expectWords(traceVerdict([], end, null).text);
  for (const { text } of viewsOf(attempts)) expectWords(text);
});

describe("an error at the command line", () => {
  const apart: readonly ErrorCode[] = ["NOT_FOUND", "UNAUTHORIZED", "HTTPS_REQUIRED"];

  test.each(Object.entries(ERROR_CATALOGUE).filter(([code]) => !apart.includes(code as ErrorCode)))(
    "%s",
    (code, { example }) => {
      const { message } = ERRORS[code as ErrorCode] as ErrorKind;
      const { parameters } = servedEndpoint(TOOLS.find(({ name }) => name === "ping") as never);
      expectWords(inCommandWords(message(example.details as never, example.note), parameters));
    },
  );

  test.each(TOOLS.map((tool) => [tool.name, servedEndpoint(tool).parameters] as const))(
    "about each parameter of %s",
    (_, parameters) => {
      for (const [name, parameter] of Object.entries(alone(parameters))) {
        if (!parameter.bounds) continue;
        let message = "";
        try {
          readTexts({ [name]: parameter }, { [name]: "~" });
        } catch (error) {
          message = (error as Error).message;
        }
        expect(message).toStartWith(`${name}: `);
        const said = inCommandWords(message, parameters);
        expectWords(said);
        const long = parameter.option?.flags.match(/--[\w-]+/)?.[0] ?? parameter.label ?? name;
        expect(said).toStartWith(`${long}: `);
      }
    },
  );
});
