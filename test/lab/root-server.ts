/** Runs a DNS server on port 5300 that has an empty answer to every question, over UDP, TCP and, on port 5301, TLS. */
import { readFileSync } from "node:fs";

/** The header and the question of a message for the root, as a response without records. */
function answerTo(query: Uint8Array): Uint8Array {
  const [HEADER_BYTES, QUESTION_BYTES] = [12, 5];
  const response = query.slice(0, HEADER_BYTES + QUESTION_BYTES);
  response.set([0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0], 2);
  return response;
}

const hostname = "::1";
await Bun.udpSocket({
  hostname,
  port: 5300,
  socket: {
    data: (socket, query, port, address) => void socket.send(answerTo(query), port, address),
  },
});
const [, , folder] = Bun.argv;
const socket = {
  data(client: Bun.Socket<undefined>, bytes: Buffer) {
    const response = answerTo(bytes.subarray(2));
    client.write(Uint8Array.of(0, response.length, ...response));
  },
};
Bun.listen({ hostname, port: 5300, socket });
if (folder) {
  const [cert, key] = ["cert", "key"].map((name) => readFileSync(`${folder}/${name}.pem`, "utf8"));
  Bun.listen({ hostname, port: 5301, socket, tls: { cert: cert ?? "", key: key ?? "" } });
}
console.log("ready");
