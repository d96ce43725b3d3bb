/** Below the ports that the kernel gives to connections, so that only who asks here has them. */
const FIRST = 20_000;

let next = FIRST;

/**
 * A port that neither TCP nor UDP uses here: the next one of this file's namespace, where nobody else
 * chooses ports below those of the kernel. Where the tests have no namespace, taken ones are passed over.
 */
export async function freePort(): Promise<number> {
  while (true) {
    const port = next++;
    try {
      Bun.listen({ hostname: "::", port, socket: { data() {} } }).stop();
      (await Bun.udpSocket({ hostname: "::", port })).close();
      return port;
    } catch {
      // Another program has it; the next one.
    }
  }
}
