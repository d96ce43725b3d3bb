/** The frame of the tests on the stage. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { CALLER, freshPage, headersOf, type Stage, startStage, visitor } from "./stage.ts";

/** A visitor with a page; a test can open others. */
export interface Visit {
  readonly stage: Stage;
  readonly context: BrowserContext;
  readonly page: Page;
  /** The output of the browsers' consoles, and the other hosts that they contacted. */
  readonly complaints: string[];
}

/** Different settings of the service, further programs that the tests need, and the address of each visitor. */
interface Frame {
  readonly settings?: Readonly<Record<string, string>>;
  readonly programs?: readonly string[];
  readonly addressOf?: (visits: number) => string;
}

/**
 * Starts the stage for the tests of a file. Before each test a visitor comes; after it, none may have complained:
 * the policy is kept, and no other host is asked.
 *
 * @param begin gets the visitor before each test
 * @returns makes a test, or skips it where a program is missing
 */
export function testOnStage(begin: (visit: Visit) => void, frame: Frame = {}) {
  const { settings = { SIXSCOPE_RATE_ANONYMOUS: "1000" }, programs = [] } = frame;
  const { addressOf = () => CALLER } = frame;
  const found = ["chromium", "knotd", ...programs].map(programMissing);
  const missing = tunMissing ?? found.find((reason) => reason !== null) ?? null;
  const complaints: string[] = [];
  let stage: Stage;
  let context: BrowserContext | undefined;
  let visits = 0;

  beforeAll(async () => {
    if (missing === null) stage = await startStage(settings);
  });

  afterAll(async () => {
    if (missing === null) await stage[Symbol.asyncDispose]();
  });

  beforeEach(async () => {
    if (missing !== null) return;
    context ??= await visitor(stage, CALLER, complaints);
    await context.setExtraHTTPHeaders(headersOf(addressOf(visits++)));
    begin({ stage, context, page: await freshPage(context), complaints });
  });

  afterEach(async () => {
    if (missing !== null) return;
    for (const other of stage.browser.contexts()) if (other !== context) await other.close();
    expect(complaints.splice(0)).toEqual([]);
  });

  return testWith(missing);
}
