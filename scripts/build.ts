/**
 * Compiles sixscope into one executable for this machine: `dist/sixscope`.
 *
 * The executable reads nothing from the folder it is started in, and runs no code made from text.
 */
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");

const result = await Bun.build({
  // A Worker's file is an entry point of its own.
  entrypoints: [join(ROOT, "src/main.ts"), join(ROOT, "src/icmp/receiver-worker.ts")],
  root: ROOT,
  compile: {
    outfile: join(ROOT, "dist/sixscope"),
    autoloadDotenv: false,
    autoloadBunfig: false,
    autoloadTsconfig: false,
    autoloadPackageJson: false,
    execArgv: ["--disallow-code-generation-from-strings=strict"],
  },
  format: "esm",
  minify: true,
  sourcemap: "linked",
  bytecode: true,
  throw: false,
});

for (const message of result.logs) console.error(message);
if (!result.success) process.exit(1);
for (const { path, size } of result.outputs) {
  console.log(`${path} ${(size / 1024 / 1024).toFixed(1)} MiB`);
}
