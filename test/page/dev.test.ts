/** `bun run dev` on a copy of the source, and a browser that sees what changes in it. */
import { expect } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { scripts } from "../../package.json";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { freePort } from "../lab/port.ts";
import { startBrowser } from "./stage.ts";

const ROOT = join(import.meta.dir, "../..");

const SOURCE = "src/page/browser/main.tsx";

const browserTest = testWith(labMissing, programMissing("chromium"));

browserTest("each view shows the page as it is in the source now", async () => {
  await using stack = new AsyncDisposableStack();
  const copy = mkdtempSync(join(tmpdir(), "sixscope-dev-"));
  stack.defer(() => rmSync(copy, { recursive: true }));
  for (const name of ["src", "package.json", "tsconfig.json"]) {
    cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const port = await freePort();
  // Without the installation before it, which would go through the link.
  const [, command = ""] = scripts.dev.split(" && ");
  const child = Bun.spawn(["sh", "-c", command], {
    cwd: copy,
    env: {
      PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
      SIXSCOPE_LISTEN: `127.0.0.1:${port}`,
    },
    stderr: "ignore",
  });
  stack.defer(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  const browser = await startBrowser();
  stack.defer(() => browser.close());
  const page = await browser.newPage();
  for await (const chunk of child.stdout) if (String(chunk) !== "") break;
  const url = `http://127.0.0.1:${port}/`;
  await page.goto(`${url}#/ping/www.example.test`);
  const source = await Bun.file(join(copy, SOURCE)).text();
  const write = (text: string) => Bun.write(join(copy, SOURCE), text);
  const title = (name: string) => page.getByText(name, { exact: true }).waitFor();
  await title("sixscope");
  await write(source.replace(/^ +sixscope$/m, "another"));
  await page.reload();
  await title("another");
  expect(await page.inputValue("#subject")).toBe("www.example.test");
  // A source that does not compile is an error until it is repaired.
  await write(`${source}}`);
  expect((await page.reload())?.status()).toBe(500);
  await write(source);
  await page.reload();
  await title("sixscope");
});
