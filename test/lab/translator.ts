import { closeSync, mkdtempSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { internetChecksum } from "../../src/icmp/wire/packet.ts";
import { awaitLink, findProgram, labEnvironment, run, runIp } from "./run.ts";
import { openTun } from "./tun.ts";

/** The prefix that leads to IPv4. */
export const PREFIX = "2001:db8:64::";
/** IPv4 routers behind the translator: 192.0.2.1, 192.0.2.2 … */
export const ROUTERS = 3;
/** Bytes of an IPv4 header, and of it with the first eight behind it. */
const [HEADER, QUOTATION] = [20, 28];

/** An IPv4 packet with ICMP from 192.0.2.`from` to `to`, with both checksums. */
function icmp4(from: number, to: Uint8Array, message: Uint8Array): Uint8Array {
  const packet = Uint8Array.of(
    ...[0x45, 0, 0, HEADER + message.length, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, from, ...to],
    ...message,
  );
  const view = new DataView(packet.buffer);
  view.setUint16(10, internetChecksum(packet.subarray(0, HEADER)));
  view.setUint16(HEADER + 2, 0);
  view.setUint16(HEADER + 2, internetChecksum(packet.subarray(HEADER)));
  return packet;
}

/** The answer of a chain of IPv4 routers 192.0.2.1, 192.0.2.2 …, and of the host behind them. */
function answer4(packet: Uint8Array): Uint8Array | null {
  if ((packet[0] as number) !== 0x45 || packet[9] !== 1) return null;
  const source = packet.subarray(12, 16);
  const hopLimit = packet[8] as number;
  if (hopLimit > ROUTERS) {
    return icmp4(packet[19] as number, source, Uint8Array.of(0, ...packet.subarray(HEADER + 1)));
  }
  const quotation = [11, 0, 0, 0, 0, 0, 0, 0, ...packet.subarray(0, QUOTATION)];
  return icmp4(hopLimit, source, Uint8Array.from(quotation));
}

/**
 * Starts a real translator (tayga) in this network namespace, and behind it IPv4 routers that quote as little as RFC 792
 * asks for.
 */
export async function startTranslator(): Promise<AsyncDisposable> {
  const folder = mkdtempSync(`${tmpdir()}/tayga-`);
  const file = `${folder}/tayga.conf`;
  writeFileSync(
    file,
    `tun-device nat64
     ipv4-addr 192.168.255.1
     ipv6-addr 2001:db8:1::ffff
     prefix ${PREFIX}/96
     dynamic-pool 192.168.255.0/24
     data-dir ${folder}`,
  );
  const tun = openTun("ipv4");
  const tayga = [findProgram("tayga") as string, "--config", file];
  await run([...tayga, "--mktun"]);
  const forward = ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/rp_filter"]
    .map((name, at) => `echo ${at < 2 ? 1 : 0} > /proc/sys/net/${name}`)
    .join(" && ");
  await run(["sh", "-c", forward]);
  await runIp(["link set nat64 up", "link set ipv4 up"]);
  const translator = Bun.spawn([...tayga, "--nodetach"], {
    env: labEnvironment,
    stdout: "ignore",
    stderr: "ignore",
  });
  await run(["sh", "-c", awaitLink("nat64")]);
  await runIp([
    "addr add 2001:db8:1::1/128 dev nat64 nodad",
    `route add ${PREFIX}/96 dev nat64 src 2001:db8:1::1`,
    "route add 2001:db8:1::ffff/128 dev nat64",
    "route add 192.168.255.0/24 dev nat64",
    "route add 192.0.2.0/24 dev ipv4",
  ]);
  const buffer = new Uint8Array(2048);
  const serve = setInterval(() => {
    for (;;) {
      try {
        const answer = answer4(buffer.slice(0, readSync(tun, buffer)));
        if (answer) writeSync(tun, answer);
      } catch {
        return;
      }
    }
  }, 1);
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(serve);
      translator.kill();
      await translator.exited;
      closeSync(tun);
      await run([...tayga, "--rmtun"]);
      rmSync(folder, { recursive: true });
    },
  };
}
