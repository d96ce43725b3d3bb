/** Between the name of a service that asks over NATS and that of one of its clients. */
const OF_SERVICE = "/";

/** The name of a client of a service: it has a part of the service's share, however many clients the service names. */
export const clientOfService = (service: string, client: string) => service + OF_SERVICE + client;

/** The names by which a client's share is counted, the widest first: that of its service, if it has one, and its own. */
export function sharersOf(client: string): readonly string[] {
  const at = client.indexOf(OF_SERVICE);
  return at < 0 ? [client] : [client.slice(0, at), client];
}

/**
 * True if a client may take one of the free places and leaves room for others: its service holds fewer than are free,
 * and it holds fewer than its service may still take. So one service gets at most half, and each of its clients at
 * most half of what the others leave it.
 *
 * @param heldBy how many places a name of `sharersOf` holds
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
 * True if a client, or its service, has its share of all places: their number divided by the services and clients that
 * want some, and the part of a service by its clients.
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
