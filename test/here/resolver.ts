import { attempt } from "../../src/util/errors.ts";

/** A resolver on port 53 that has an empty answer to every question, over UDP after a while, and TCP; opened before it waits. */
export async function startResolver(address: string, afterMs = 0): Promise<Disposable> {
  const tcp = Bun.listen({
    hostname: address,
    port: 53,
    socket: {
      data(client, bytes) {
        const response = answerTo(bytes.subarray(2));
        client.end(Uint8Array.of(0, response.length, ...response));
      },
    },
  });
  const udp = await Bun.udpSocket({
    hostname: address,
    port: 53,
    socket: {
      async data(socket, query, port, from) {
        const answer = answerTo(query);
        if (afterMs > 0) await Bun.sleep(afterMs);
        const send = () => socket.send(answer, port, from);
        // An error of an earlier answer fails this one. There may be no way back, as to a unique local address.
        attempt(send) || attempt(send);
      },
      error: () => {},
    },
  });
  return {
    [Symbol.dispose]() {
      tcp.stop(true);
      udp.close();
    },
  };
}

/** The header and the question of a message for the root, as a response without records. */
function answerTo(query: Uint8Array): Uint8Array {
  const [HEADER_BYTES, QUESTION_BYTES] = [12, 5];
  const response = new Uint8Array(HEADER_BYTES + QUESTION_BYTES);
  response.set(query.subarray(0, response.length));
  response.set([0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0], 2);
  return response;
}
