/**
 * Makes what is shipped, in `dist`:
 *
 *     bun run build          the executable for this machine
 *     bun run build --all    executables, Debian packages and archives for all targets
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { compile, hostTarget } from "./build/compile.ts";
import { ROOT, readSource } from "./build/source.ts";

const DIST = join(ROOT, "dist");

await mkdir(DIST, { recursive: true });
const source = await readSource();
const outfile = join(DIST, "sixscope");
console.log(await compile(hostTarget(), source, outfile));
