/**
 * Tries the page in Debian's Firefox (`firefox-esr`), which the tests do not start: `bun scripts/firefox.ts [FOLDER]`. It
 * runs in its own network namespace, against the stage of the page's tests, and says for each place what is shown
 * otherwise than in Chromium, what the browser complains about, and whether a phone scrolls sideways. With a folder,
 * it puts a screenshot of each place there.
 */
import "../test/lab/enter.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../test/lab/port.ts";
import { findProgram } from "../test/lab/run.ts";
import { pageUrl, runAt, startStage } from "../test/page/stage.ts";

const PLACES = [
  "",
  "#/validate/2001:0:4136:e378:8000:63bf:3fff:fdd2",
  "#/dns/www.example.test",
  "#/ping/unreachable.example.test?count=2",
  "#/trace/told.example.test",
  "#/mtr/losing.example.test?rounds=3",
  "#/mtu/tunnel.example.test",
  "#/check/www.example.test",
  "docs",
] as const;

/** Numbers differ from run to run. */
const UNSTEADY = /\d+([.,:]\d+)*( ms)?/g;

/** The text that is shown; the browsers disagree whether the choices of a list and the words of a picture are. */
const SHOWN = `{
  const words = [...document.querySelectorAll("svg text")].map((one) => one.textContent);
  document.querySelectorAll("select, datalist, svg").forEach((one) => one.remove());
  [document.body.innerText, ...words].join("\\n");
}`;

/** Waits until the text has not changed for a second. */
const STEADY = `new Promise((done) => {
  let [before, since] = ["", 0];
  const look = () => {
    const text = document.body.innerText;
    if (text !== before) [before, since] = [text, performance.now()];
    if (text !== "" && performance.now() - since > 1000) done(); else setTimeout(look, 100);
  };
  look();
})`;

/** Runs the tool as a visitor does, with the key when it is asked for; the promise ends with the run, or says that it did not. */
const RUN = `new Promise((done) => {
  const shown = (selector) => [...document.querySelectorAll(selector)].find((one) => one.offsetParent);
  let presses = 0;
  const press = () => {
    presses++;
    [...document.querySelectorAll("button")].find((one) => /^(Check|Run)$/.test(one.textContent.trim()))?.click();
  };
  const until = performance.now() + 60_000;
  const look = () => {
    const key = shown("#key");
    if (presses === 0) press();
    else if (presses === 1 && key) {
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(key, KEY);
      key.dispatchEvent(new Event("input", { bubbles: true }));
      setTimeout(press, 100);
    }
    if (shown('#result[aria-busy="false"] .stamp, #result[aria-busy="false"] .problem')) done("");
    else if (performance.now() > until) done("the run does not end");
    else setTimeout(look, 500);
  };
  setTimeout(look, 500);
})`;

const [pictures] = Bun.argv.slice(2);
const program = findProgram("firefox-esr");
if (program === null) throw new Error("install firefox-esr");

await using stage = await startStage({ SIXSCOPE_RATE_ANONYMOUS: "1000" });
const browser = await startFirefox(program);
for (const place of PLACES) {
  const url = `${pageUrl(stage.service)}${place}`;
  const { lines, width } = await browser.show(url);
  const expected = await showInChromium(url);
  const faults = [
    ...browser.complaints.splice(0),
    ...(width > 320 ? [`${width} pixels wide on a phone of 320`] : []),
    ...expected.filter((line) => !lines.includes(line)).map((line) => `lacks: ${line}`),
  ];
  console.log(`${faults.length === 0 ? "ok" : "FAILED"}  ${place || "the first page"}`);
  for (const fault of faults) console.log(`        ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}
await browser.close();

function linesOf(text: string): string[] {
  return text.split(/\s*\n\s*/).map((line) => line.replaceAll(UNSTEADY, "#").trim());
}

async function showInChromium(url: string): Promise<string[]> {
  const context = await stage.browser.newContext();
  const page = await context.newPage();
  await page.setViewportSize({ width: 1280, height: 800 });
  await runAt(page, url, stage.service.key);
  await page.evaluate(STEADY);
  const lines = linesOf(String(await page.evaluate(SHOWN)));
  await context.close();
  return lines;
}

/** Starts Firefox, and speaks WebDriver BiDi with it. */
async function startFirefox(path: string) {
  const folder = mkdtempSync(join(tmpdir(), "firefox-"));
  const port = await freePort();
  const options = ["--headless", "--no-remote", "--profile", folder];
  const child = Bun.spawn([path, ...options, `--remote-debugging-port=${port}`], {
    env: { ...process.env, HOME: folder, MOZ_DISABLE_AUTO_SAFE_MODE: "1" },
    stdio: ["ignore", "ignore", "ignore"],
  });
  const socket = await openSocket(`ws://127.0.0.1:${port}/session`);
  const waiting = new Map<number, (answer: { result?: never; error?: string }) => void>();
  const complaints: string[] = [];
  socket.addEventListener("message", ({ data }) => {
    const { id, method, params, ...answer } = JSON.parse(String(data));
    if (method === "log.entryAdded" && params.level === "error") complaints.push(params.text);
    waiting.get(id)?.(answer);
  });
  let asked = 0;
  const ask = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const { promise, resolve } = Promise.withResolvers<{ result?: never; error?: string }>();
    waiting.set(++asked, resolve);
    socket.send(JSON.stringify({ id: asked, method, params }));
    const { result, error } = await promise;
    if (error) throw new Error(`${method}: ${error}`);
    return result ?? {};
  };
  await ask("session.new", { capabilities: {} });
  await ask("session.subscribe", { events: ["log.entryAdded"] });
  return {
    complaints,
    async show(url: string) {
      const { context } = await ask("browsingContext.create", { type: "tab" });
      const evaluate = async (expression: string) => {
        const target = { context };
        const { result } = await ask("script.evaluate", { expression, target, awaitPromise: true });
        return (result as { value?: unknown }).value;
      };
      const size = (width: number, height: number) =>
        ask("browsingContext.setViewport", { context, viewport: { width, height } });
      await size(1280, 800);
      await ask("browsingContext.navigate", { context, url, wait: "complete" });
      if (url.includes("#/")) {
        const fault = await evaluate(RUN.replace("KEY", JSON.stringify(stage.service.key)));
        if (fault !== "") complaints.push(String(fault));
      }
      await evaluate(STEADY);
      if (pictures) {
        const { data } = await ask("browsingContext.captureScreenshot", { context });
        const name = url.replace(/^.*?\/\/[^/]*\//, "").replaceAll(/\W+/g, "-");
        await Bun.write(join(pictures, `${name}.png`), Buffer.from(String(data), "base64"));
      }
      const lines = linesOf(String(await evaluate(SHOWN)));
      await size(320, 640);
      const width = Number(await evaluate("document.documentElement.scrollWidth"));
      await ask("browsingContext.close", { context });
      return { lines, width };
    },
    async close() {
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Tries until the browser listens. */
async function openSocket(url: string): Promise<WebSocket> {
  for (;;) {
    const socket = new WebSocket(url);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    socket.addEventListener("open", () => resolve(true));
    socket.addEventListener("error", () => resolve(false));
    if (await promise) return socket;
    await Bun.sleep(100);
  }
}
