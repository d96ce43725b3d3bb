/** A router that advertises what no daemon would: odd lifetimes, options and hop limits. */
import { cString, libc } from "../../src/platform/libc.ts";
import { addressBytes, parsePrefix } from "../lab/address.ts";
import { ByteWriter } from "../lab/byte-writer.ts";
import { RawSocket } from "../lab/raw-socket.ts";

/** A prefix of an advertisement; RFC 4861 section 4.6.2. */
interface AdvertisedPrefix {
  readonly prefix: string;
  readonly preferredSeconds: number;
  readonly validSeconds: number;
  /** On-link (0x80) and autonomous (0x40); both by default. */
  readonly flags?: number;
}

/** What a router says; RFC 4861 section 4.2. */
export interface Advertisement {
  /** Default 1800; 0 for no default router. */
  readonly lifetimeSeconds?: number;
  /** The hop limit of the packet, by default 255, without which hosts must not believe it. */
  readonly hopLimit?: number;
  /** The code of the message, by default 0, without which hosts must not believe it. */
  readonly code?: number;
  readonly prefixes?: readonly AdvertisedPrefix[];
  /** More options in hexadecimal. */
  readonly options?: string;
  /** How long it takes to answer a solicitation; RFC 4861 section 6.2.6 allows half a second, and three between two. */
  readonly delayMs?: number;
}

const [SOLICITATION, ADVERTISEMENT] = [133, 134];
const ALL_NODES = "ff02::1";
const POLL_MS = 50;
const MAX_BYTES = 1280;

/** The bytes of an advertisement, its checksum 0. */
export function formatAdvertisement(advertisement: Advertisement): Uint8Array {
  const { lifetimeSeconds = 1800, code = 0, prefixes = [], options = "" } = advertisement;
  const writer = new ByteWriter(MAX_BYTES)
    .uint8(ADVERTISEMENT)
    .uint8(code)
    .uint16(0)
    .uint8(64)
    .uint8(0)
    .uint16(lifetimeSeconds)
    .uint32(0)
    .uint32(0);
  for (const { prefix, preferredSeconds, validSeconds, flags = 0xc0 } of prefixes) {
    const { address, bits } = parsePrefix(prefix);
    writer.uint8(3).uint8(4).uint8(bits).uint8(flags).uint32(validSeconds).uint32(preferredSeconds);
    writer.uint32(0).put(address);
  }
  return writer.put(Uint8Array.fromHex(options)).finish();
}

/** An advertisement's option with a prefix of a translator of 96 bits; RFC 8781 section 4. */
export function nat64Option(prefix: string, lifetimeSeconds: number): string {
  const head = new ByteWriter(4)
    .uint8(38)
    .uint8(2)
    .uint16((lifetimeSeconds / 8) << 3);
  return head.finish().toHex() + addressBytes(prefix).slice(0, 12).toHex();
}

/** Answers each solicitation on an interface of the namespace in which this is called, until it is stopped. */
export function startAdvertiser(device: string, advertisement: Advertisement) {
  const { hopLimit = 255, delayMs = 0 } = advertisement;
  const socket = new RawSocket();
  const scopeId = libc().if_nametoindex(cString(device));
  const message = formatAdvertisement(advertisement);
  let isStopped = false;
  const send = () => {
    if (!isStopped) socket.send({ destination: ALL_NODES, message, hopLimit, scopeId });
  };
  send();
  const timer = setInterval(async () => {
    const solicited = await socket.receive([SOLICITATION], 0);
    if (solicited.length > 0 && !isStopped) setTimeout(send, delayMs);
  }, POLL_MS);
  return () => {
    if (isStopped) return;
    isStopped = true;
    clearInterval(timer);
    socket[Symbol.dispose]();
  };
}
