/**
 * TCP servers that do not do what a web server does: its arguments are `address port kind` in turns. The kind `h2:PATH`
 * speaks HTTP/2 alone, with the certificate `PATH.crt` and its key `PATH.key`. Says "ready" once all listen.
 */
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";

const [, , ...words] = process.argv;

/** The bytes that a server says of itself; a tarpit says and answers nothing, and a closer ends what has begun. */
const BANNERS: Readonly<Record<string, string>> = {
  tarpit: "",
  closer: "",
  ssh: "SSH-2.0-OpenSSH_9.2p1\r\n",
};

const head = (bytes: number) => `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`;

/** What a server answers to all that it is sent: a response whose body stops in the middle. */
const ANSWERS: Readonly<Record<string, string>> = {
  stalls: head(5000) + "x".repeat(100),
  cuts: head(5000) + "x".repeat(100),
};

/** Those that end a connection behind their answer. */
const ENDING = ["closer", "cuts"];

const starting: Promise<unknown>[] = [];

while (words.length > 0) {
  const [hostname = "", port, kind = ""] = words.splice(0, 3);
  const [, certificate] = kind.split("h2:");
  if (certificate !== undefined) {
    const files = {
      cert: readFileSync(`${certificate}.crt`),
      key: readFileSync(`${certificate}.key`),
    };
    const options = { ...files, allowHTTP1: false };
    const server = createSecureServer(options, (_, response) => response.end("ok"));
    server.on("unknownProtocol", (socket) => socket.destroy());
    const { promise, resolve } = Promise.withResolvers<void>();
    server.listen(Number(port), hostname, resolve);
    starting.push(promise);
    continue;
  }
  Bun.listen({
    hostname,
    port: Number(port),
    socket: {
      open: (socket) => void socket.write(BANNERS[kind] ?? ""),
      data(socket) {
        const answer = ANSWERS[kind];
        if (answer) socket.write(answer);
        if (ENDING.includes(kind)) socket.end();
      },
      error() {},
    },
  });
}
await Promise.all(starting);
console.log("ready");
