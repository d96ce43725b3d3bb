/**
 * Measures the time from exec to the first answer, the memory and the file size of the executable,
 * beside a Hono hello-world that is compiled the same way: `bun run bench start`. Rounds of both are
 * interleaved, and the table shows the median. Private memory belongs to the process alone; the rest of
 * the idle memory is pages of the executable, which the kernel can drop and read again. Loaded memory is
 * the peak during some seconds of requests.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compile, hostTarget } from "./build/compile.ts";
import { readSource } from "./build/source.ts";
import { median, residentMiB } from "./measure.ts";

const ROUNDS = 31;
const SETTLE_MS = 1000;
const LOAD_MS = 3000;
const CONNECTIONS = 64;
const PORT = 18_080;

/** The benchmark sends many requests, and no query must leave this machine. */
const SETTINGS = {
  SIXSCOPE_LISTEN: `127.0.0.1:${PORT}`,
  SIXSCOPE_RATE_ANONYMOUS: "10000000",
  SIXSCOPE_RESOLVER_A: "127.0.0.1",
  SIXSCOPE_RESOLVER_B: "127.0.0.1",
  SIXSCOPE_RESOLVER_C: "127.0.0.1",
  SIXSCOPE_LOG_LEVEL: "error",
};

interface Program {
  readonly name: string;
  readonly file: string;
  readonly url: string;
}

const folder = await mkdtemp(join(tmpdir(), "sixscope-bench-"));
const base = `http://127.0.0.1:${PORT}`;
const programs: readonly Program[] = [
  { name: "sixscope", file: join(folder, "ours"), url: `${base}/api/v1/validate?address=::1` },
  { name: "Hono hello-world", file: join(folder, "hello"), url: `${base}/` },
];

function start({ file }: Program) {
  return Bun.spawn([file], {
    cwd: folder,
    env: { ...SETTINGS, PORT: `${PORT}` },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

/** Sends requests until one is answered. */
async function firstAnswer({ url }: Program): Promise<void> {
  for (;;) {
    const response = await fetch(url, { keepalive: false }).catch(() => null);
    if (response !== null) {
      await response.text();
      return;
    }
    // Without a pause, this loop would take the processor from the program that starts.
    await Bun.sleep(1);
  }
}

async function startMs(program: Program): Promise<number> {
  const begin = performance.now();
  const child = start(program);
  await firstAnswer(program);
  const elapsed = performance.now() - begin;
  child.kill("SIGKILL");
  await child.exited;
  return elapsed;
}

/** Resident mebibytes: idle, the private part of that, and the peak under load. */
async function memory(
  program: Program,
): Promise<{ idle: number; privately: number; loaded: number }> {
  const child = start(program);
  await firstAnswer(program);
  await Bun.sleep(SETTLE_MS);
  const idle = residentMiB(child.pid);
  const privately = residentMiB(child.pid, "RssAnon");
  const end = performance.now() + LOAD_MS;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < end) await (await fetch(program.url)).text();
    }),
  );
  const loaded = residentMiB(child.pid, "VmHWM");
  child.kill("SIGKILL");
  await child.exited;
  return { idle, privately, loaded };
}

try {
  const [ours, hello] = programs.map(({ file }) => file) as [string, string];
  const source = await readSource();
  await compile(hostTarget(), source, ours);
  await compile(hostTarget(), source, hello, "scripts/hello-world.ts");
  const times = new Map(programs.map((program) => [program, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [program, taken] of times) taken.push(await startMs(program));
  }
  console.log(
    "program             first answer  least       idle    private     loaded        file",
  );
  for (const [program, taken] of times) {
    const { idle, privately, loaded } = await memory(program);
    const columns = [
      program.name.padEnd(18),
      `${median(taken).toFixed(1)} ms`.padStart(13),
      `${Math.min(...taken).toFixed(1)}`.padStart(6),
      `${idle.toFixed(1)} MiB`.padStart(9),
      `${privately.toFixed(1)} MiB`.padStart(9),
      `${loaded.toFixed(1)} MiB`.padStart(9),
      `${(Bun.file(program.file).size / 1024 / 1024).toFixed(1)} MiB`.padStart(10),
    ];
    console.log(columns.join("  "));
  }
} finally {
  await rm(folder, { recursive: true });
}
