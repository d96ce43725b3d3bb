import { run } from "./run.ts";

/**
 * The address that the system's traceroute prints for each hop, in order; `*` where none answered
 * within three seconds. It waits them for all: left alone it gives a hop up by how fast others were.
 */
export async function trace(target: string): Promise<string[]> {
  const output = await run(["traceroute", "-6", "-I", "-n", "-q", "1", "-w", "3,0,0", target]);
  const lines = output.trim().split("\n").slice(1);
  return lines.map((line) => line.trim().split(/\s+/)[1] ?? "");
}

/** The output of the system's ping about one target. */
export type PingSummary = {
  readonly received: number;
  readonly duplicates: number;
  /** Round-trip times in milliseconds, in order of arrival. */
  readonly rttsMs: readonly number[];
};

/** Pings with the system's own tool, 20 ms apart; losing packets is not a failure. */
export async function ping(
  target: string,
  count: number,
  ...options: string[]
): Promise<PingSummary> {
  const command = ["ping", "-6", "-n", "-i", "0.02", "-W", "1", "-c", `${count}`];
  const output = await run([
    "sh",
    "-c",
    '"$@" || test $? = 1',
    "sh",
    ...command,
    ...options,
    target,
  ]);
  return {
    received: Number(output.match(/(\d+) received/)?.[1]),
    duplicates: Number(output.match(/\+(\d+) duplicates/)?.[1] ?? 0),
    rttsMs: [...output.matchAll(/time=([\d.]+) ms/g)].map(([, rtt]) => Number(rtt)),
  };
}
