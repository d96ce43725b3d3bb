/** Runs one of the benchmarks beside this file: `bun run bench dns` runs scripts/bench-dns.ts. */
import { Glob } from "bun";

const names = [...new Glob("bench-*.ts").scanSync(import.meta.dir)]
  .map((file) => file.slice("bench-".length, -".ts".length))
  .sort();
const [name = ""] = Bun.argv.slice(2);

if (names.includes(name)) {
  await import(`./bench-${name}.ts`);
} else {
  console.error(`usage: bun run bench ${names.join("|")}`);
  process.exitCode = 2;
}
