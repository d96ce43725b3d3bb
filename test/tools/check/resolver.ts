/** A resolver of the tests, which counts its questions and can wait with its answers. */
import type { IpAddress } from "../../../src/addr/ip.ts";
import { tryParseIp } from "../../../src/addr/ip.ts";
import { ipv6ToBytes } from "../../../src/addr/ipv6.ts";
import { HEADER_BYTES } from "../../../src/dns/message/message.ts";
import { decodeName, encodeName } from "../../../src/dns/message/name.ts";

const TYPES = { 1: "A", 28: "AAAA" } as const;

/** A running resolver. */
export interface CountingResolver extends Disposable {
  /** As a setting of the service. */
  readonly server: string;
  /** The questions so far, such as `www.example.com AAAA`; other types have their number. */
  readonly questions: readonly string[];
  /** Answers all questions from now on, those that wait first. */
  answer(): void;
}

const bytesOf = (ip: IpAddress) =>
  ip.version === 6
    ? ipv6ToBytes(ip)
    : Uint8Array.of(ip.word >>> 24, ip.word >>> 16, ip.word >>> 8, ip.word);

/** How a resolver is odd. */
interface Oddities {
  /** True if it answers nothing until it is told to. */
  readonly waits?: boolean;
  /** The response codes of questions such as `www.example.com AAAA`. */
  readonly codes?: Readonly<Record<string, number>>;
}

/** Starts a resolver on ::1 that knows the addresses of some names, and that all others exist. */
export async function startResolver(
  names: Readonly<Record<string, readonly string[]>>,
  { waits = false, codes = {} }: Oddities = {},
): Promise<CountingResolver> {
  const questions: string[] = [];
  const waiting: (() => void)[] = [];
  let isWaiting = waits;
  const socket = await Bun.udpSocket({
    hostname: "::1",
    socket: {
      data(_, message, port, from) {
        const query = Uint8Array.from(message);
        const name = decodeName(query, HEADER_BYTES);
        const typeAt = HEADER_BYTES + encodeName(name).length;
        const number = new DataView(query.buffer).getUint16(typeAt);
        const type = TYPES[number as keyof typeof TYPES] ?? String(number);
        const asked = name.toLowerCase().replace(/\.$/, "");
        const code = codes[`${asked} ${type}`] ?? 0;
        questions.push(`${asked} ${type}`);
        const records = (names[asked] ?? []).flatMap((text) => {
          const ip = tryParseIp(text);
          if (ip === null || type !== (ip.version === 6 ? "AAAA" : "A")) return [];
          const data = bytesOf(ip);
          return [[0xc0, HEADER_BYTES, 0, number, 0, 1, 0, 0, 0, 60, 0, data.length, ...data]];
        });
        const head = [
          ...query.subarray(0, 2),
          0x81,
          0x80 | code,
          0,
          1,
          0,
          records.length,
          0,
          0,
          0,
          0,
        ];
        const question = query.subarray(HEADER_BYTES, typeAt + 4);
        const reply = Uint8Array.from([...head, ...question, ...records.flat()]);
        const send = () => void socket.send(reply, port, from);
        if (isWaiting) waiting.push(send);
        else send();
      },
      error() {},
    },
  });
  return {
    server: `[::1]:${socket.port}`,
    questions,
    answer() {
      isWaiting = false;
      for (const send of waiting.splice(0)) send();
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
