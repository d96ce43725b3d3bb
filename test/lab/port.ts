/**
 * A port that neither TCP nor UDP uses here, not even a connection that was closed a minute ago: one
 * in TIME-WAIT keeps its own port from a listener.
 */
export async function freePort(): Promise<number> {
  while (true) {
    const listener = Bun.listen({ hostname: "::", port: 0, socket: { data() {} } });
    const { port } = listener;
    try {
      (await Bun.udpSocket({ hostname: "::", port })).close();
      return port;
    } catch {
      // Taken for UDP; the next one.
    } finally {
      listener.stop();
    }
  }
}
