import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { formatIp } from "../../src/addr/ip.ts";
import type { SocketAddress } from "../../src/addr/socket-address.ts";
import { startKnot } from "./dns-server.ts";
import { startKernelChain } from "./kernel-chain.ts";
import { labMissing, programMissing, testWith } from "./lab.ts";
import { run } from "./run.ts";

const knotTest = testWith(programMissing("knotd"), programMissing("dig"));
const remoteTest = testWith(labMissing, programMissing("knotd"), programMissing("dig"));

/** A zone with SOA and NS records, and these records. */
function zone(...records: string[]): string {
  return ["@ 60 SOA ns admin 1 2 3 4 5", "@ 60 NS ns", "ns 60 AAAA ::1", ...records, ""].join("\n");
}

async function dig({ address, port }: SocketAddress, ...query: string[]): Promise<string> {
  return (await run(["dig", `@${formatIp(address)}`, "-p", `${port}`, "+short", ...query])).trim();
}

/** The folders of this process's servers. */
function folders(): string[] {
  const prefix = `sixscope-knot-${process.pid}-`;
  return readdirSync(tmpdir()).filter((name) => name.startsWith(prefix));
}

knotTest("two zones answer over UDP and TCP, and no files remain", async () => {
  const before = folders();
  const knot = await startKnot({
    zones: { "example.test.": zone("www 60 AAAA 2001:db8::1"), "2.test.": zone("a 60 TXT t") },
  });
  expect(await dig(knot.endpoint, "www.example.test", "AAAA")).toBe("2001:db8::1");
  expect(await dig(knot.endpoint, "+tcp", "a.2.test", "TXT")).toBe('"t"');
  expect(folders()).toHaveLength(before.length + 1);
  await knot.stop();
  expect(folders()).toEqual(before);
});

knotTest("an invalid zone is reported", async () => {
  const before = folders();
  const start = startKnot({ zones: { "example.test.": "nonsense" } });
  await expect(start).rejects.toThrow("line 1 (owner is invalid)");
  expect(folders()).toEqual(before);
});

remoteTest("a server can run at the end of a chain", async () => {
  await using chain = await startKernelChain({ routers: 1 });
  await using knot = await startKnot({
    zones: { "example.test.": zone() },
    address: chain.target,
    inside: (command) => chain.inside(2, command),
  });
  expect(await dig(knot.endpoint, "ns.example.test", "AAAA")).toBe("::1");
});
