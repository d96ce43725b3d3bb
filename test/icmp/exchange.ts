/**
 * Sends packets to loopback and takes the replies, through the FFI layer alone and with the garbage
 * collector running all the time. Run by `memory.test.ts` in a process of its own, because it looks for
 * crashes.
 *
 * Arguments: how many packets. Prints one line of JSON.
 */

import { RawSocket } from "../../src/icmp/socket/raw-socket.ts";
import type { ReceivedPacket } from "../../src/icmp/socket/socket.ts";
import { decodeMessage, encodeEchoRequest } from "../../src/icmp/wire/packet.ts";
import { parseIpv6 } from "../addr/parse.ts";

const total = Number(process.argv[2]);
const TAG = 0xa5;
const LOOPBACK = parseIpv6("::1");
const ROUND = 500;
/** For a busy machine; a packet that has not come by then is lost. */
const ROUND_DEADLINE_MS = 60_000;
const COOKIE = new Uint8Array(8).fill(0x5c);

let received = 0;
let wrong = 0;
function take({ message, hopLimit, receivedMs, readMs }: ReceivedPacket): void {
  const reply = decodeMessage(message);
  const isRight =
    reply?.kind === "echo-reply" &&
    reply.sequence === received % 0x10000 &&
    reply.data.length === 56 &&
    COOKIE.every((byte, at) => byte === reply.data[at]) &&
    hopLimit === 64 &&
    receivedMs < readMs;
  if (!isRight) wrong++;
  received++;
}

const socket = new RawSocket(TAG);

let sent = 0;
let refused = 0;
let rssMiddle = 0;
while (sent < total) {
  for (let count = 0; count < ROUND && sent < total; count++) {
    const sequence = sent % 0x10000;
    const message = encodeEchoRequest(TAG * 256, sequence, COOKIE);
    const packet = {
      target: LOOPBACK,
      source: LOOPBACK,
      scopeId: 0,
      hopLimit: 64,
      flowLabel: 1,
    };
    if (typeof socket.send({ ...packet, message }) === "number") sent++;
    else refused++;
  }
  if (sent % (20 * ROUND) === 0) Bun.gc(true);
  const deadlineMs = performance.now() + ROUND_DEADLINE_MS;
  while (received < sent && performance.now() < deadlineMs) {
    for (let packet = socket.receive(); packet !== null; packet = socket.receive()) take(packet);
    await Bun.sleep(0);
  }
  if (received < sent) break;
  if (sent >= total / 2 && rssMiddle === 0) rssMiddle = process.memoryUsage.rss();
}
const rssEnd = process.memoryUsage.rss();
socket.close();
console.log(JSON.stringify({ sent, refused, received, wrong, rssMiddle, rssEnd }));
