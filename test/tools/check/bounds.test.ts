/** What a check sends to a healthy site, and how long it takes. */
import { expect } from "bun:test";
import { readFile } from "node:fs/promises";
import type { CheckResult } from "../../../src/tools/check/result.ts";
import { labMissing, programMissing, testWith, tunMissing } from "../../lab/lab.ts";
import { startStage } from "./stage.ts";

const missing =
  tunMissing ??
  labMissing ??
  ["nginx", "unbound", "knotd", "tayga", "nft", "openssl", "dnssec-signzone"]
    .map(programMissing)
    .find(Boolean) ??
  null;

/** Packets and bytes of both directions on the way to the site. */
async function counted(): Promise<{ readonly packets: number; readonly bytes: number }> {
  const lines = (await readFile("/proc/net/dev", "utf8")).split("\n");
  const fields =
    lines
      .find((line) => line.trim().startsWith("chain1:"))
      ?.trim()
      .split(/[\s:]+/) ?? [];
  const [, rxBytes = 0, rxPackets = 0, , , , , , , txBytes = 0, txPackets = 0] = fields.map(Number);
  return { packets: rxPackets + txPackets, bytes: rxBytes + txBytes };
}

testWith(missing)("a healthy site gets at most 725 packets and 112 KB", async () => {
  await using stage = await startStage({ www: {} });
  const { url, key } = await stage.service("well");
  const before = await counted();
  const response = await fetch(`${url}/check/${stage.nameOf("www")}`, {
    headers: { "X-API-Key": key },
  });
  const { details } = (await response.json()) as CheckResult;
  const after = await counted();
  expect(details.verdict.code).toBe("works");
  expect(after.packets - before.packets).toBeWithin(100, 726);
  expect(after.bytes - before.bytes).toBeLessThan(112_000);
  const made = details.attempts.map(
    ({ ip, kind, made }) => `${ip.includes(":") ? 6 : 4} ${kind} ${made}`,
  );
  expect(made.toSorted()).toEqual([
    "4 connect 10",
    "4 handshake 3",
    "4 request 3",
    "6 connect 10",
    "6 echo 20",
    "6 handshake 10",
    "6 request 10",
    "6 syn 20",
  ]);
});
