import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./port.ts";
import { labEnvironment } from "./run.ts";

/** One series of an answer, with its labels and its value. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [seconds: number, value: string];
}

/** A running Prometheus. */
export interface Prometheus extends AsyncDisposable {
  /** Evaluates an expression now. */
  query(expression: string): Promise<readonly Sample[]>;
}

/**
 * Starts a real `prometheus` on a free port.
 *
 * @param files its configuration `prometheus.yml`, and what that names, by their names
 */
export async function startPrometheus(
  files: Readonly<Record<string, string>>,
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "prometheus-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const port = await freePort();
  const child = Bun.spawn(
    [
      "prometheus",
      `--config.file=${join(folder, "prometheus.yml")}`,
      `--storage.tsdb.path=${join(folder, "data")}`,
      `--web.listen-address=[::1]:${port}`,
    ],
    { env: labEnvironment, stdout: "ignore", stderr: Bun.file(join(folder, "log")) },
  );
  const url = `http://[::1]:${port}`;
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) {
      throw new Error(`prometheus ended: ${await Bun.file(join(folder, "log")).text()}`);
    }
    await Bun.sleep(50);
  }
  return {
    async query(expression) {
      const body = new URLSearchParams({ query: expression });
      const response = await fetch(`${url}/api/v1/query`, { method: "POST", body });
      const answer = (await response.json()) as {
        readonly error?: string;
        readonly data?: { readonly result: readonly Sample[] };
      };
      if (answer.data === undefined) throw new Error(`${expression}: ${answer.error}`);
      return answer.data.result;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
