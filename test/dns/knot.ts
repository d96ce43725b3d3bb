import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Endpoint, tryParseEndpoint } from "../../src/addr/endpoint.ts";

/** A running knotd on the loopback interface. */
export interface Knot {
  /** It serves UDP and TCP at this port of `::1`. */
  readonly endpoint: Endpoint;
  stop(): Promise<void>;
}

/** Milliseconds that knotd may take to start on a busy machine. */
const START_TIMEOUT_MS = 30_000;

/** Starts knotd with these zones: file texts by the zones' names. */
export async function startKnot(zones: Readonly<Record<string, string>>): Promise<Knot> {
  const folder = mkdtempSync(join(tmpdir(), "sixscope-knot-"));
  const port = await freePort();
  const sections = Object.entries(zones).map(([zone, text], index) => {
    writeFileSync(join(folder, `${index}.zone`), text);
    return `  - domain: "${zone}"\n    file: ${index}.zone\n`;
  });
  const config = `server:
    listen: ::1@${port}
    rundir: ${folder}
    udp-workers: 4
    tcp-workers: 1
    background-workers: 1
database:
    storage: ${folder}
log:
  - target: stderr
    any: error
template:
  - id: default
    storage: ${folder}
    zonefile-sync: -1
    zonefile-load: whole
    journal-content: none
    semantic-checks: off
zone:
${sections.join("")}`;
  writeFileSync(join(folder, "knot.conf"), config);
  const path = `${process.env["PATH"]}:/usr/sbin:/sbin`;
  const knotd = Bun.which("knotd", { PATH: path }) ?? "knotd";
  const child = Bun.spawn([knotd, "-c", join(folder, "knot.conf")], {
    stdout: "ignore",
    stderr: "pipe",
  });
  let errors = "";
  const reading = child.stderr.pipeTo(
    new WritableStream({
      write(bytes) {
        errors += new TextDecoder().decode(bytes);
      },
    }),
  );
  const stop = async () => {
    child.kill();
    await child.exited;
    await reading;
    rmSync(folder, { recursive: true });
  };
  const startMs = performance.now();
  while (child.exitCode === null && !(await accepts(port))) {
    if (performance.now() - startMs > START_TIMEOUT_MS) errors += "too slow";
    if (errors !== "") break;
    await Bun.sleep(20);
  }
  if (child.exitCode !== null || errors !== "") {
    await stop();
    throw new Error(`knotd does not start: ${errors}`);
  }
  return { endpoint: tryParseEndpoint("::1", port) as Endpoint, stop };
}

async function freePort(): Promise<number> {
  const socket = await Bun.udpSocket({ hostname: "::1" });
  const { port } = socket;
  socket.close();
  return port;
}

/** Whether somebody accepts connections at the port. knotd does so once its zones are loaded. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "::1", port });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
