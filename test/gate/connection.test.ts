/** What the gate counts of a connection that the kernel opens. */
import { expect } from "bun:test";
import { type IpAddress, tryParseIp } from "../../src/addr/ip.ts";
import { openConnection } from "../../src/gate/connection.ts";
import { Gate } from "../../src/gate/gate.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { nftRule } from "../lab/nft.ts";
import { run } from "../lab/run.ts";

const PORT = 9;

testWith(labMissing, programMissing("nft"))(
  "the gate counts each SYN that the kernel sends again, until there is an answer",
  async () => {
    const silence = `tcp dport ${PORT} tcp flags & syn == syn counter drop`;
    await run(["nft", "-f", "-"], nftRule("input", silence));
    const sent = async () =>
      Number(/counter packets (\d+) /.exec(await run(["nft", "list", "ruleset"]))?.[1]);
    let counted = 0;
    class CountingGate extends Gate {
      override left(departure: Parameters<Gate["left"]>[0]): void {
        super.left(departure);
        counted++;
      }
    }
    const target = tryParseIp("::1") as IpAddress;
    const destination = { target, port: PORT, caller: { client: "" } };
    const { signal } = new AbortController();
    const socket = await openConnection(new CountingGate(), destination, signal, undefined);
    socket?.on("error", () => {});
    let turns = 0;
    const timer = setInterval(() => turns++, 1000);
    const startMs = performance.now();
    /** Seconds in which the event loop had no turn. */
    const missed = () => Math.floor((performance.now() - startMs) / 1000) - turns;
    // The first, and four more; each is counted before the next one.
    while ((await sent()) < 5 + missed() && counted < 3) await Bun.sleep(20);
    expect(counted).toBeWithin(3, turns + 2);
    clearInterval(timer);
    socket?.destroy();
    await run(["nft", "flush", "ruleset"]);
  },
);
