/**
 * Runs every test file in a process and a network namespace of its own, some at a time, because most
 * tests wait most of the time:
 *
 *     bun run test                             all, after `bun run check`
 *     bun run test:quick                       without namespaces, browser, servers, build and searches by the hundred
 *     bun scripts/test.ts [OPTION OF `bun test`]... [FOLDER OR FILE]...
 *
 * The output of a file is printed when it is done. Failures are printed again at the end.
 */
import { join } from "node:path";
import { Glob } from "bun";
import { entry } from "../test/lab/entrance.ts";
import { interfaceFile, patientProgram, sixscopeProgram } from "../test/lab/program.ts";
import { LAB_VARIABLE, labEnvironment, QUICK, TIMEOUT } from "../test/lab/run.ts";

const ROOT = join(import.meta.dir, "..");

/** Together they keep two cores busy. */
const FILES_AT_ONCE = 8;

/** Files and folders that take longest, which begin first so that none of them is left alone at the end. */
const SLOW = [
  "test/page/accessible",
  "test/page/page.",
  "test/here/networks",
  "test/page/errors",
  "test/page/path",
  "test/scale/valkey-failures",
  "test/tools/mtu/engine",
  "test/e2e/gate",
  "test/tools/check/faults",
  "test/watch/lab",
  "test/check/",
  "test/page/",
  "test/scale/",
  "test/icmp/tcp/",
  "test/e2e/",
  "test/cli/advice",
  "test/icmp/internet",
  "test/tools/check/",
  "test/watch/",
  "test/tools/trace/path-search",
  "test/cli/",
  "test/icmp/",
  "test/dns/dnssec/",
  "test/tools/",
];

/** Tests of the service as a whole, and hundreds of searches for paths. */
const NOT_QUICK = /^test\/(e2e|page|scale)\/|\/(false-links|path-search)\.test\.ts$/;

/** The line that the runner prints when it begins. */
const GREETING = /^bun test v.*\n+/;

const isQuick = Bun.argv[2] === "--quick";
const given = Bun.argv.slice(isQuick ? 3 : 2);
const options = given.filter((argument) => argument.startsWith("-"));
const places = given.filter((argument) => !argument.startsWith("-"));

const rank = (file: string) => {
  const at = SLOW.findIndex((folder) => file.startsWith(folder));
  return at < 0 ? SLOW.length : at;
};
const files = [...new Glob("test/**/*.test.ts").scanSync(ROOT)]
  .filter((file) => !isQuick || !NOT_QUICK.test(file))
  .filter((file) => places.length === 0 || places.some((place) => file.startsWith(place)))
  .sort((a, b) => rank(a) - rank(b));

// So that what is made for all files goes with this process.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));
// Made once for all files, which find the folder in their environment.
const isScaled = files.some((file) => file.startsWith("test/scale/"));
await Promise.all([sixscopeProgram(), interfaceFile(), ...(isScaled ? [patientProgram()] : [])]);

const [before, mark] = isQuick ? [[], QUICK] : entry();

const counts = { pass: 0, fail: 0, skip: 0 };
const failures: string[] = [];

const queue = files[Symbol.iterator]();
const work = async () => {
  for (const file of queue) await runFile(file);
};
await Promise.all(Array.from({ length: FILES_AT_ONCE }, work));
if (failures.length > 0) console.log(`\nFailures:\n\n${failures.join("\n\n")}`);
console.log(`\n ${counts.pass} pass\n ${counts.fail} fail\n ${counts.skip} skip`);
if (counts.fail > 0 || counts.pass === 0) process.exitCode = 1;

async function runFile(file: string): Promise<void> {
  const runner = [process.execPath, "test", "--no-orphans", TIMEOUT, ...options, `./${file}`];
  const child = Bun.spawn(["sh", "-c", 'exec "$@" 2>&1', "sh", ...before, ...runner], {
    cwd: ROOT,
    env: { ...labEnvironment, [LAB_VARIABLE]: mark },
    stdin: "ignore",
    stdout: "pipe",
  });
  const output = (await new Response(child.stdout).text()).replace(GREETING, "");
  const status = await child.exited;
  const end = output.search(/^ *\d+ pass$/m);
  const [results, summary] = end < 0 ? [output, ""] : [output.slice(0, end), output.slice(end)];
  process.stdout.write(`\n${results.trim()}\n`);
  for (const [, number, kind] of summary.matchAll(/^ *(\d+) (pass|fail|skip)$/gm)) {
    counts[kind as keyof typeof counts] += Number(number);
  }
  const failed = results
    .split(/^\((?:pass|skip|todo)\) .*\n/m)
    .filter((text) => /^(\(fail\)|# Unhandled error)/m.test(text));
  failures.push(...failed.map((text) => (text.startsWith(file) ? text : `${file}:\n${text}`)));
  // A process that crashes, is killed or exits in the middle must not pass with what it did until then.
  const isComplete = /^Ran \d+ tests? across/m.test(summary);
  if (isComplete && (status === 0 || / [1-9]\d* fail$/m.test(summary))) return;
  counts.fail++;
  failures.push(`(fail) ${file} ended with status ${status}:\n${results.slice(-2000)}`);
}
