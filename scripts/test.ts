/**
 * Runs the tests in shards beside each other, because most tests wait most of the time:
 *
 *     bun run test                             all, after `bun run check`
 *     bun run test:quick                       without namespaces, browser, servers, build and searches by the hundred
 *     bun scripts/test.ts [OPTION OF `bun test`]...
 *
 * Each shard is a `bun test` in a namespace of its own. What it says of a file is printed when it is
 * done with the file; what failed is repeated at the end. A file that fails beside others runs once
 * more alone, since a busy machine can break what it does not break alone; if it passes, that is said.
 */
import { join } from "node:path";
import { LAB_VARIABLE, QUICK, TIMEOUT } from "../test/lab/run.ts";

/** Together they keep two cores busy. */
const SHARDS = 6;

/** How long the files take; `bun test --timings test/timings.json --update-timings` measures that. */
const TIMINGS = "--timings=test/timings.json";

/** Tests of the service as a whole, and hundreds of searches for paths. */
const NOT_QUICK =
  "--path-ignore-patterns=test/{e2e/**,page/**,scale/**,icmp/{false-links,paths}.test.ts}";

/** The lines that the runner prints before the first file. */
const GREETING = /^(bun test v|--shard=).*\n?/gm;

/** The beginning of its summary, after the last file. */
const SUMMARY = /^(\d+ tests failed:| *\d+ pass)$/m;

const given = Bun.argv.slice(2);
const isQuick = given[0] === "--quick";
const options = isQuick ? [NOT_QUICK, ...given.slice(1)] : [TIMINGS, ...given];
const environment = { ...process.env, ...(isQuick && { [LAB_VARIABLE]: QUICK }) };

/** More failing files than these are no matter of load. */
const MAX_AGAIN = 5;

const counts = { pass: 0, fail: 0, skip: 0 };
const failures: string[] = [];
/** The number of failed tests of each file. */
const failedFiles = new Map<string, number>();

await Promise.all(Array.from({ length: SHARDS }, (_, index) => runShard(index + 1)));
if (failures.length > 0) console.log(`\nFailures:\n\n${failures.join("\n\n")}`);
if (failedFiles.size <= MAX_AGAIN) {
  for (const [file, failed] of failedFiles) await runAgain(file, failed);
}
console.log(`\n ${counts.pass} pass\n ${counts.fail} fail\n ${counts.skip} skip`);
if (counts.fail > 0 || counts.pass === 0) process.exitCode = 1;

async function runShard(shard: number): Promise<void> {
  const command = [
    process.execPath,
    "test",
    "--no-orphans",
    TIMEOUT,
    `--shard=${shard}/${SHARDS}`,
    ...options,
  ];
  const child = Bun.spawn(["sh", "-c", 'exec "$@" 2>&1', "sh", ...command], {
    cwd: join(import.meta.dir, ".."),
    env: environment,
    stdin: "ignore",
    stdout: "pipe",
  });
  let said = "";
  let printed = 0;
  const print = (end: number) => {
    if (end <= printed) return;
    process.stdout.write(said.slice(printed, end).replaceAll(GREETING, ""));
    printed = end;
  };
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    said += text;
    print(said.lastIndexOf("\n\ntest/"));
  }
  const begin = said.search(SUMMARY);
  const end = begin < 0 ? said.length : begin;
  print(end);
  collect(said.slice(0, end), said.slice(end), await child.exited, shard);
}

/** Adds what a shard said to the counts and failures. */
function collect(results: string, summary: string, status: number, shard: number): void {
  const numbers = summary.matchAll(/^ *(\d+) (pass|fail|skip)$/gm);
  for (const [, number, kind] of numbers) counts[kind as keyof typeof counts] += Number(number);
  const files = results.split(/\n\n(?=test\/\S+:\n)/);
  for (const file of files) {
    const [name] = file.split("\n", 1);
    const tests = file.split(/^\((?:pass|skip|todo)\) .*\n/m);
    const failed = tests.filter((text) => /^(\(fail\)|# Unhandled error)/m.test(text));
    failures.push(...failed.map((text) => (text.startsWith("test/") ? text : `${name}\n${text}`)));
    if (name && failed.length > 0) failedFiles.set(name.replace(/:$/, ""), failed.length);
  }
  // A shard that crashes, is killed or exits in the middle must not pass with what it did until then.
  const isComplete = /^Ran \d+ tests? across/m.test(summary);
  if (isComplete && (status === 0 || / [1-9]\d* fail$/m.test(summary))) return;
  counts.fail++;
  const last = files.at(-1)?.split("\n", 1)[0];
  failures.push(`(fail) shard ${shard} ended with status ${status} in ${last}`);
}

/** Runs a file whose tests failed alone, and counts them as passed if they pass. */
async function runAgain(file: string, failed: number): Promise<void> {
  const command = [process.execPath, "test", "--no-orphans", TIMEOUT, file];
  const stdio = ["ignore", "ignore", "ignore"] as const;
  const cwd = join(import.meta.dir, "..");
  if ((await Bun.spawn(command, { cwd, env: environment, stdio: [...stdio] }).exited) !== 0) return;
  counts.fail -= failed;
  counts.pass += failed;
  console.log(`\n${file}: ${failed} failed beside other files and passed alone`);
}
