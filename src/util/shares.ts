/** The separator between the name of a service that asks over NATS and the name of its client. */
const OF_SERVICE = "/";

/** The name of a client of a service: it has a part of the service's share, however many clients the service names. */
export const clientOfService = (service: string, client: string) => service + OF_SERVICE + client;

/** The names by which a client's share is counted, the widest first: its service, if it has one, and itself. */
export function sharersOf(client: string): readonly string[] {
  const at = client.indexOf(OF_SERVICE);
  return at < 0 ? [client] : [client.slice(0, at), client];
}

/**
 * True if a client may take one of the free places and leaves room for others: its service holds fewer places than are
 * free, and the client holds fewer than its service may still take. So one service gets at most half of the places, and
 * each of its clients at most half of the rest.
 *
 * @param heldBy the number of places that a name of `sharersOf` holds
 */
export function leavesRoom(client: string, free: number, heldBy: (name: string) => number) {
  let room = free;
  return sharersOf(client).every((name) => {
    const held = heldBy(name);
    const mayTake = room > held;
    room = Math.ceil((room - held) / 2);
    return mayTake;
  });
}

/**
 * True if a client, or its service, has its share. Services, and clients without a service, have equal shares of all
 * places; the clients of a service have equal shares of its share.
 *
 * @param wanted the client of each place that is held or waited for
 */
export function hasShare(client: string, limit: number, wanted: readonly string[]): boolean {
  let share = limit;
  let peers = wanted.map(sharersOf);
  return sharersOf(client).some((name, level) => {
    const names = new Set([name, ...peers.map((peer) => peer[level])]);
    share = Math.max(1, Math.floor(share / names.size));
    peers = peers.filter((peer) => peer[level] === name);
    return peers.length >= share;
  });
}
