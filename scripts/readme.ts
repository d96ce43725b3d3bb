/** Takes the picture of the README, `docs/images/page-check.png`, and prints its example of a check: `bun scripts/readme.ts`. */
import "../test/lab/enter.ts";
import { join } from "node:path";
import { runAt, startBrowser } from "../test/page/stage.ts";
import { startBrokenSite } from "../test/tools/check/broken-site.ts";
import { ROOT } from "./build/source.ts";

await using site = await startBrokenSite();
console.log(await site.check());
await using browser = await startBrowser();
const page = await browser.newPage({ viewport: { width: 1280, height: 740 } });
await runAt(page, `${site.url}#/check/${site.name}`, site.key);
await page.screenshot({ path: join(ROOT, "docs/images/page-check.png") });
process.exit(0);
