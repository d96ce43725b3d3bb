import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { formatIp, type IpAddress } from "../addr/ip.ts";
import type { Caller, Gate } from "./gate.ts";

/** The time between SYNs of an unanswered connection, in milliseconds; before Linux 6.5 it grows with each SYN. */
const RETRANSMITTED_MS = 1_000;

/** The port of a target, and the caller that connects to it. */
export interface Destination {
  readonly target: IpAddress;
  readonly port: number;
  readonly caller: Caller;
}

/**
 * Begins a connection to a target as soon as the gate lets it leave; null if the signal aborts before.
 *
 * @param tls the options of TLS, if the connection is to speak it
 */
export async function openConnection<Tls extends ConnectionOptions | undefined>(
  gate: Gate,
  { target, port, caller }: Destination,
  signal: AbortSignal,
  tls: Tls,
): Promise<(Tls extends undefined ? Socket : TLSSocket) | null> {
  const departure = { target, probedPort: { protocol: "tcp", port }, caller } as const;
  if (!(await gate.mayLeave(departure, signal))) return null;
  const to = { host: formatIp(target), port };
  const socket = tls === undefined ? connect(to) : connectTls({ ...to, ...tls });
  const timer = setInterval(() => gate.left(departure), RETRANSMITTED_MS);
  const stop = () => clearInterval(timer);
  socket.once("connect", () => {
    stop();
    gate.reached(departure);
  });
  socket.once("close", stop);
  return socket as Tls extends undefined ? Socket : TLSSocket;
}

/**
 * The address from which the kernel sends to another.
 *
 * @throws the error of the kernel if it has no route
 */
export async function sourceTo(ip: string): Promise<string> {
  const hostname = ip.includes(":") ? "::" : "0.0.0.0";
  const socket = await Bun.udpSocket({ hostname, connect: { hostname: ip, port: UNUSED_PORT } });
  const { address } = socket.address;
  socket.close();
  return address;
}

/** True for an address of this machine: packets to it stay here. */
export async function isOwnAddress(ip: string): Promise<boolean> {
  return (await sourceTo(ip).catch(() => null)) === ip;
}

/** The kernel needs a port to find a route; nothing is sent to it. */
const UNUSED_PORT = 80;
