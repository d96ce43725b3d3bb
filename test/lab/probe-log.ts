import { addressText } from "./address.ts";
import {
  ECHO_REQUEST,
  icmpChecksum,
  NEXT_HEADER_ICMPV6,
  parseEcho,
  parsePacket,
} from "./packet.ts";

/** An echo request as it came out of the test host. */
export type Probe = {
  /** CLOCK_MONOTONIC when it was read from the device. */
  readonly timeNs: number;
  readonly source: string;
  readonly destination: string;
  readonly hopLimit: number;
  readonly flowLabel: number;
  readonly trafficClass: number;
  readonly identifier: number;
  readonly sequence: number;
  /** The checksum field of the ICMPv6 message. */
  readonly checksum: number;
  readonly checksumIsRight: boolean;
  /** Bytes of the whole packet. */
  readonly packetBytes: number;
  /** The first 192 bytes of the echo's data. */
  readonly data: Uint8Array;
};

/** The number of probes that the log keeps, the newest ones. */
const SLOTS = 65_536;

/** The number of probes so far, as an Int32. */
const HEADER_BYTES = 8;

/** A slot: time as a Float64, whole length and kept length as Uint16, whether the checksum is right, then the kept bytes. */
const SLOT_BYTES = 256;
const LENGTH_AT = 8;
const KEPT_AT = 10;
const SOUND_AT = 12;
const BYTES_AT = 16;
const KEPT_BYTES = SLOT_BYTES - BYTES_AT;

/** A bounded log of probes in memory that its writer and a reader on another thread share. */
export class ProbeLog {
  /** To be handed to the other thread, which makes its own ProbeLog of it. */
  readonly memory: SharedArrayBuffer;
  readonly #count: Int32Array;
  readonly #slots: DataView;
  readonly #bytes: Uint8Array;

  constructor(memory = new SharedArrayBuffer(HEADER_BYTES + SLOTS * SLOT_BYTES)) {
    this.memory = memory;
    this.#count = new Int32Array(memory, 0, 1);
    this.#slots = new DataView(memory, HEADER_BYTES);
    this.#bytes = new Uint8Array(memory, HEADER_BYTES);
  }

  /** How many probes were ever written, also those that the log no longer keeps. */
  get count(): number {
    return Atomics.load(this.#count, 0);
  }

  /** Appends a packet if it is an echo request; the oldest goes when the log is full. */
  write(bytes: Uint8Array, timeNs: number): void {
    const packet = parsePacket(bytes);
    if (packet === null || parseProbe(bytes) === null) return;
    const { source, destination, payload } = packet;
    const kept = bytes.subarray(0, KEPT_BYTES);
    const slot = (this.count % SLOTS) * SLOT_BYTES;
    this.#slots.setFloat64(slot, timeNs);
    this.#slots.setUint16(slot + LENGTH_AT, bytes.length);
    this.#slots.setUint16(slot + KEPT_AT, kept.length);
    this.#slots.setUint8(slot + SOUND_AT, icmpChecksum(source, destination, payload) === 0 ? 1 : 0);
    this.#bytes.set(kept, slot + BYTES_AT);
    Atomics.add(this.#count, 0, 1);
  }

  /** The probes that the log keeps, in order. */
  read(): Probe[] {
    const probes: Probe[] = [];
    for (let index = Math.max(0, this.count - SLOTS); index < this.count; index++) {
      const slot = (index % SLOTS) * SLOT_BYTES;
      const kept = this.#slots.getUint16(slot + KEPT_AT);
      const probe = parseProbe(this.#bytes.slice(slot + BYTES_AT, slot + BYTES_AT + kept));
      if (probe === null) continue;
      probes.push({
        ...probe,
        timeNs: this.#slots.getFloat64(slot),
        packetBytes: this.#slots.getUint16(slot + LENGTH_AT),
        checksumIsRight: this.#slots.getUint8(slot + SOUND_AT) === 1,
      });
    }
    return probes;
  }
}

function parseProbe(
  bytes: Uint8Array,
): Omit<Probe, "timeNs" | "packetBytes" | "checksumIsRight"> | null {
  const packet = parsePacket(bytes);
  const echo = packet?.nextHeader === NEXT_HEADER_ICMPV6 ? parseEcho(packet.payload) : null;
  if (!packet || echo?.type !== ECHO_REQUEST) return null;
  const { hopLimit, flowLabel, trafficClass } = packet;
  const { identifier, sequence, checksum, data } = echo;
  return {
    source: addressText(packet.source),
    destination: addressText(packet.destination),
    hopLimit,
    flowLabel,
    trafficClass,
    identifier,
    sequence,
    checksum,
    data,
  };
}
