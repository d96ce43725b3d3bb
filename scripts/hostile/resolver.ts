/** A resolver that answers as it likes over UDP, TCP, TLS and HTTPS: late, endlessly, and with the largest messages. */
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { freePort } from "../../test/lab/port.ts";
import { below, pick, type Random, randomBytes } from "./random.ts";

/** Bytes of the largest DNS message. */
const MOST_BYTES = 65_535;
/** Bytes in a UDP datagram that loopback carries whole. */
const MOST_DATAGRAM_BYTES = 60_000;

const HEADER_BYTES = 12;
const TYPE_CNAME = 5;
const TYPE_PTR = 12;
const TYPE_TXT = 16;
const CLASS_IN = 1;

/** Milliseconds between two bytes of an answer that does not end. */
const DRIP_MS = 20;

/** A name of 253 characters in wire format. */
const LONGEST_NAME = Uint8Array.from(
  [63, 63, 63, 61].flatMap((length) => [length, ...Array(length).fill(0x61)]).concat(0),
);

/** The servers as `SIXSCOPE_RESOLVER_A` and `SIXSCOPE_RESOLVER_B` name them. */
export interface HostileResolver {
  readonly plain: string;
  readonly encrypted: string;
  /** Questions that have come. */
  questions(): number;
}

/** Starts the resolver at ::1, with a certificate and its key in PEM. */
export async function startHostileResolver(
  random: Random,
  tls: { readonly cert: string; readonly key: string },
): Promise<HostileResolver> {
  const [port, tlsPort, httpsPort] = [await freePort(), await freePort(), await freePort()];
  let questions = 0;
  const later = (act: () => void) =>
    setTimeout(act, pick(random, [0, 0, 0, 50, 900, 4900, 20_000]));

  await Bun.udpSocket({
    hostname: "::1",
    port,
    socket: {
      error() {},
      data(socket, query, fromPort, from) {
        questions++;
        const copies = pick(random, [0, 1, 1, 1, 20]);
        const answer = answerTo(random, query, MOST_DATAGRAM_BYTES);
        later(() => {
          try {
            for (let copy = 0; copy < copies; copy++) socket.send(answer, fromPort, from);
          } catch {
            // The client has gone.
          }
        });
      },
    },
  });

  /** Answers what comes on a stream, and then goes on for ever, or never ends a message. */
  const stream = {
    open() {},
    data(
      socket: { write(bytes: Uint8Array): number; end(): void; terminate(): void },
      bytes: Uint8Array,
    ) {
      questions++;
      const answer = framed(answerTo(random, bytes.subarray(2), MOST_BYTES));
      const manner = pick(random, ["whole", "whole", "flood", "drip", "close", "silence"]);
      if (manner === "whole") later(() => socket.write(answer));
      else if (manner === "close") socket.end();
      else if (manner === "flood") {
        for (let copy = 0; copy < 50; copy++) socket.write(answer);
      } else if (manner === "drip") {
        let at = 0;
        const timer = setInterval(() => {
          if (at >= answer.length || socket.write(answer.subarray(at, ++at)) < 0)
            clearInterval(timer);
        }, DRIP_MS);
      }
    },
    error() {},
  };
  Bun.listen({ hostname: "::1", port, socket: stream });
  Bun.listen({ hostname: "::1", port: tlsPort, tls, socket: stream });

  const https = createSecureServer(tls);
  https.on("stream", (sent: ServerHttp2Stream) => {
    questions++;
    sent.on("error", () => {});
    const parts: Uint8Array[] = [];
    sent.on("data", (part: Uint8Array) => parts.push(part));
    sent.on("end", () => {
      const status = pick(random, [200, 200, 200, 200, 204, 302, 404, 500]);
      const type = pick(random, [
        "application/dns-message",
        "application/dns-message",
        "text/html",
      ]);
      const long = Object.fromEntries(
        Array.from({ length: 20 }, (_, at) => [`x-${at}`, "y".repeat(500)]),
      );
      sent.respond({ ":status": status, "content-type": type, ...(random() < 0.2 && long) });
      const answer = answerTo(random, Buffer.concat(parts), MOST_BYTES);
      if (random() < 0.5) return void later(() => sent.end(answer));
      // Never ends.
      const timer = setInterval(() => {
        if (sent.destroyed) clearInterval(timer);
        else if (!sent.writableNeedDrain) sent.write(answer);
      }, DRIP_MS);
    });
  });
  https.on("sessionError", () => {});
  https.on("error", () => {});
  await new Promise<void>((resolve) => https.listen(httpsPort, "::1", resolve));

  return {
    plain: `[::1]:${port}`,
    encrypted: `tls://[::1]:${tlsPort},https://[::1]:${httpsPort}/dns-query`,
    questions: () => questions,
  };
}

/** A message behind its length; RFC 1035 section 4.2.2. */
function framed(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(message.length + 2);
  new DataView(bytes.buffer).setUint16(0, message.length);
  bytes.set(message, 2);
  return bytes;
}

/** Some answer to a query: the largest with long names, truncated, damaged, or of chance. */
function answerTo(random: Random, query: Uint8Array, mostBytes: number): Uint8Array<ArrayBuffer> {
  const manner = pick(random, [
    "names",
    "names",
    "chain",
    "texts",
    "truncated",
    "failure",
    "damaged",
    "chance",
  ]);
  if (manner === "chance" || query.length < HEADER_BYTES) {
    return randomBytes(random, below(random, 2000));
  }
  const question = questionOf(query);
  const records: Uint8Array[] = [];
  let length = HEADER_BYTES + question.length;
  if (manner === "names" || manner === "chain" || manner === "texts" || manner === "damaged") {
    const type = {
      names: TYPE_PTR,
      chain: TYPE_CNAME,
      texts: TYPE_TXT,
      damaged: below(random, 300),
    }[manner];
    for (;;) {
      const record = recordOf(random, type);
      if (length + record.length > mostBytes) break;
      records.push(record);
      length += record.length;
    }
  }
  const message = new Uint8Array(length);
  const view = new DataView(message.buffer);
  message.set(query.subarray(0, 2));
  const truncated = manner === "truncated" ? 0x0200 : 0;
  view.setUint16(2, 0x8180 | truncated | (manner === "failure" ? below(random, 16) : 0));
  view.setUint16(4, 1);
  view.setUint16(6, records.length);
  message.set(question, HEADER_BYTES);
  let at = HEADER_BYTES + question.length;
  for (const record of records) {
    message.set(record, at);
    at += record.length;
  }
  if (manner === "damaged") {
    for (let count = 0; count < 8; count++)
      message[HEADER_BYTES + below(random, length - HEADER_BYTES)] = below(random, 256);
  }
  return message;
}

/** The question of a query: a name, a type and a class. */
function questionOf(query: Uint8Array): Uint8Array {
  let at = HEADER_BYTES;
  while (at < query.length && query[at] !== 0) at += (query[at] ?? 0) + 1;
  return query.subarray(HEADER_BYTES, at + 5);
}

/** A record that belongs to the question, or to another name. */
function recordOf(random: Random, type: number): Uint8Array {
  const name = random() < 0.9 ? Uint8Array.of(0xc0, HEADER_BYTES) : LONGEST_NAME;
  const data = type === TYPE_TXT ? Uint8Array.from([255, ...Array(255).fill(0x1b)]) : LONGEST_NAME;
  const record = new Uint8Array(name.length + 10 + data.length);
  const view = new DataView(record.buffer);
  record.set(name);
  view.setUint16(name.length, type);
  view.setUint16(name.length + 2, CLASS_IN);
  view.setUint32(name.length + 4, below(random, 2 ** 32));
  view.setUint16(name.length + 8, data.length);
  record.set(data, name.length + 10);
  return record;
}
