/** A network that answers as dearly as it can, and a client that does not read. */
import { expect } from "bun:test";
import { connect } from "node:net";
import { residentMiB } from "../../scripts/measure.ts";
import { formatSocketAddress } from "../../src/addr/socket-address.ts";
import { startHostileServer } from "../dns/hostile-server.ts";
import { readEvents } from "../lab/events.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { startInternet } from "../lab/internet.ts";
import { testWith, tunMissing } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { startService } from "../lab/service.ts";

const tunTest = testWith(tunMissing);

const TARGET = "2a00:1450:ff::1";

/** 63 routers; each can answer every probe from another address. */
const chain = (isMany: boolean) => ({
  to: TARGET,
  routers: Array.from({ length: 63 }, (_, at) => ({ address: `2a00:1450:${at + 1}::1`, isMany })),
});

/** A response to a PTR query whose name has 255 octets, written with four characters each. */
function longName(query: Uint8Array): Uint8Array {
  const label = (length: number) => [length, ...Array(length).fill(7)];
  const name = [...label(63), ...label(63), ...label(63), ...label(61), 0];
  const question = query.subarray(12, query.indexOf(0, 12) + 5);
  const head = [0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
  const answer = [0xc0, 12, 0, 12, 0, 1, 0, 0, 0, 9, 0, name.length, ...name];
  return Uint8Array.from([...query.subarray(0, 2), ...head, ...question, ...answer]);
}

interface Document {
  readonly rounds: number;
  readonly hops: readonly { hostname: string | null; addresses: readonly object[] }[];
  readonly details: { readonly verdict: object; readonly cutShort?: object };
}

tunTest(
  "a new address with a long name for every probe ends an mtr early, in little memory",
  async () => {
    await using _ = await startInternet({ destinations: [chain(true)] });
    const server = await startHostileServer({ udp: ({ query, reply }) => reply(longName(query)) });
    await using service = await startService({
      SIXSCOPE_RESOLVER_A: formatSocketAddress(server.endpoint),
    });
    const path = `/mtr/${TARGET}?rounds=100&maxHops=64&intervalMs=100`;
    const ask = (accept: string) =>
      fetch(service.url + path, { headers: { "X-API-Key": service.key, Accept: accept } });
    await (
      await fetch(`${service.url}/ping/${TARGET}`, { headers: { "X-API-Key": service.key } })
    ).text();
    const idle = residentMiB(service.pid);
    const events = await Array.fromAsync(readEvents(await ask("text/event-stream")));
    expect(residentMiB(service.pid, "VmHWM") - idle).toBeLessThan(40);
    const answer = (await (await ask("application/json")).json()) as Document;
    for (const document of [answer, events.at(-1)?.data as Document]) {
      const { rounds, hops, details } = document;
      expect(rounds).toBeLessThan(20);
      expect(hops.flatMap(({ addresses }) => addresses).length).toBeLessThanOrEqual(1024);
      // On a busy machine its work may be too much before there are as many addresses.
      expect(details.cutShort).toEqual({
        code: expect.stringMatching(/^(addresses|work)$/),
        text: expect.stringMatching(/1024|ms of work/),
      });
      expect(details.verdict).toMatchObject({ text: expect.stringContaining("met its budget") });
      const names = hops.map(({ hostname }) => hostname ?? "");
      expect(Math.max(...names.map(({ length }) => length))).toBe(253);
    }
    const { stdout } = await sixscopeHere(
      ["mtr", TARGET, "-c", "100", "-i", "0.1", "-m", "64", "-n"],
      { SIXSCOPE_SERVER: new URL(service.url).origin, SIXSCOPE_KEY: service.key },
    );
    const cutShort = /^Cut short +.*/m.exec(stdout)?.[0];
    expect(cutShort).toMatch(/ (More than 1024|The caller's runs took) /);
    await server.stop();
  },
);

tunTest(
  "a client that does not read its events ends its run, and holds little memory",
  async () => {
    await using _ = await startInternet({ destinations: [chain(false)] });
    // Else the kernel takes megabytes for a client, as much as the whole run says.
    const least = "4096 4096 4096";
    await run(["sysctl", "-qw", `net.ipv4.tcp_wmem=${least}`, `net.ipv4.tcp_rmem=${least}`]);
    await using service = await startService({ SIXSCOPE_MAX_PROBES: "1" });
    const { hostname, port } = new URL(service.url);
    const socket = connect(Number(port), hostname);
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.pause();
    const before = residentMiB(service.pid);
    socket.write(
      `GET /api/v1/mtr/${TARGET}?rounds=100&maxHops=64&intervalMs=1000 HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nX-API-Key: ${service.key}\r\n\r\n`,
    );
    await service.says("route=/api/v1/mtr/:target status=499 ");
    expect(residentMiB(service.pid) - before).toBeLessThan(40);
    const other = await fetch(`${service.url}/ping/::1?count=1`, {
      headers: { "X-API-Key": service.key },
    });
    expect(other.status).toBe(200);
    socket.destroy();
  },
);
