import { run } from "./cli/run.ts";

process.exit(await run(Bun.argv.slice(2), process.env));
