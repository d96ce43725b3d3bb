/**
 * The receiver's thread: waits in `poll`, reads all that is there, posts it, and ends when the eventfd
 * can be read. It never returns to its event loop before that, so it takes one message only.
 */
import { ipv6FromBytes } from "../addr/ipv6.ts";
import { addressOf, C, loadLibc } from "../platform/libc.ts";
import {
  alignControl,
  CMSGHDR,
  CONTROL,
  IOVEC,
  MSG_DONTWAIT,
  MSGHDR,
  POLLFD,
  POLLIN,
  SOCKADDR,
} from "../platform/linux.ts";
import { readSeconds, receivedAtNs, SystemClock, type Timespec } from "./clock.ts";
import { LIMITS } from "./limits.ts";
import type { ReceiverMessage, ReceiverTask } from "./receiver.ts";
import type { ReceivedPacket } from "./socket.ts";

declare const self: Worker;

/** An error fits into 1280 bytes; what is longer is cut, and none of ours. */
const MAX_MESSAGE_BYTES = 1280;
/** Room for the control messages that the socket asks for, and more than twice as much. */
const MAX_CONTROL_BYTES = 128;
/** Packets in one message to the main thread; more make it wait, fewer cost more. */
const MAX_BATCH = 64;

/** How long to wait for packets before a sign of life, in milliseconds. */
const BEAT_MS = 500;
/** How soon to look again whether the main thread has caught up, in milliseconds. */
const QUEUE_PAUSE_MS = 5;

/** Where the parts lie in the one buffer that holds them all, since they point at each other. */
const IOV = MSGHDR.bytes;
const NAME = IOV + IOVEC.bytes;
const CONTROLS = alignControl(NAME + SOCKADDR.bytes);
const MESSAGE = CONTROLS + MAX_CONTROL_BYTES;
const IN_BYTES = MESSAGE + MAX_MESSAGE_BYTES;

const libc = loadLibc({
  poll: { args: [C.pointer, C.size, C.int], returns: C.int },
  recvmsg: { args: [C.int, C.pointer, C.int], returns: C.long },
});
const clock = new SystemClock();
const bytes = new Uint8Array(new ArrayBuffer(IN_BYTES));
const view = new DataView(bytes.buffer);
const address = addressOf(bytes);

self.onmessage = (event: MessageEvent<ReceiverTask>) => {
  layOut();
  receive(event.data);
  post("ended");
};

function post(message: ReceiverMessage): void {
  self.postMessage(message);
}

function receive({ socketFd, wakeFd, queued, beats }: ReceiverTask): void {
  const polled = new DataView(new ArrayBuffer(2 * POLLFD.bytes));
  const wake = 0;
  const socket = POLLFD.bytes;
  polled.setInt32(wake + POLLFD.fd, wakeFd, true);
  polled.setInt16(wake + POLLFD.events, POLLIN, true);
  polled.setInt32(socket + POLLFD.fd, socketFd, true);
  polled.setInt16(socket + POLLFD.events, POLLIN, true);
  while (polled.getInt16(wake + POLLFD.revents, true) === 0) {
    Atomics.add(beats, 0, 1);
    if (Atomics.load(queued, 0) > LIMITS.maxQueuedPackets) {
      libc.poll(addressOf(polled), 1, QUEUE_PAUSE_MS);
      continue;
    }
    libc.poll(addressOf(polled), 2, BEAT_MS);
    const packets = readAll(socketFd);
    if (packets.length === 0) continue;
    Atomics.add(queued, 0, packets.length);
    post(packets);
  }
}

function readAll(socketFd: number): ReceivedPacket[] {
  const packets: ReceivedPacket[] = [];
  while (packets.length < MAX_BATCH) {
    const packet = readOne(socketFd);
    if (packet === null) break;
    packets.push(packet);
  }
  return packets;
}

/** The next packet, or null where there is none: a pending error of the socket counts as none and is gone then. */
function readOne(socketFd: number): ReceivedPacket | null {
  view.setUint32(MSGHDR.nameLength, SOCKADDR.bytes, true);
  view.setUint32(MSGHDR.controlLength, MAX_CONTROL_BYTES, true);
  const length = Number(libc.recvmsg(socketFd, address, MSG_DONTWAIT));
  if (length < 0) return null;
  const { realtime, monotonicNs } = clock.readBoth();
  const { stamp, hopLimit } = readControls();
  return {
    source: ipv6FromBytes(bytes.subarray(NAME + SOCKADDR.address, NAME + SOCKADDR.address + 16)),
    scopeId: view.getUint32(NAME + SOCKADDR.scopeId, true),
    hopLimit,
    receivedNs: stamp === null ? monotonicNs : receivedAtNs(stamp, realtime, monotonicNs),
    readNs: monotonicNs,
    message: bytes.slice(MESSAGE, MESSAGE + length),
  };
}

function readControls(): { stamp: Timespec | null; hopLimit: number } {
  let stamp: Timespec | null = null;
  let hopLimit = 0;
  const end = CONTROLS + view.getUint32(MSGHDR.controlLength, true);
  for (let at = CONTROLS; at + CMSGHDR.bytes <= end; ) {
    const length = view.getUint32(at + CMSGHDR.length, true);
    if (length < CMSGHDR.bytes || at + length > end) break;
    const data = at + CMSGHDR.bytes;
    if (isControl(at, CONTROL.timestampNs)) {
      stamp = { seconds: readSeconds(view, data), nanoseconds: view.getUint32(data + 8, true) };
    } else if (isControl(at, CONTROL.hopLimit)) {
      hopLimit = view.getInt32(data, true);
    }
    at += alignControl(length);
  }
  return { stamp, hopLimit };
}

function isControl(at: number, [level, type]: readonly [number, number]): boolean {
  return (
    view.getInt32(at + CMSGHDR.level, true) === level &&
    view.getInt32(at + CMSGHDR.type, true) === type
  );
}

function layOut(): void {
  const pointTo = (at: number, part: number) => view.setBigUint64(at, BigInt(address + part), true);
  pointTo(MSGHDR.name, NAME);
  pointTo(MSGHDR.iov, IOV);
  view.setUint32(MSGHDR.iovLength, 1, true);
  pointTo(MSGHDR.control, CONTROLS);
  pointTo(IOV + IOVEC.base, MESSAGE);
  view.setUint32(IOV + IOVEC.length, MAX_MESSAGE_BYTES, true);
}
