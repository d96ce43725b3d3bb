/** The service that a check tries. */

/** Addresses of IPv6 that are connected to. */
export const MAX_ADDRESSES = 8;

/** A service at one address. */
export interface Service {
  /** The address that is connected to; nothing is resolved again. */
  readonly ip: string;
  readonly port: number;
  /** The name that the certificate and the site are asked for; null where only the address is known. */
  readonly name: string | null;
  readonly isTls: boolean;
  /** What is asked for; by default the root. */
  readonly path?: string;
}

/** Ports where a server is expected to speak HTTP, without TLS and with it. */
export const [PLAIN_PORT, TLS_PORT] = [80, 443];

/** True for a port of the web, where HTTP is expected. */
export const isWeb = (port: number) => port === PLAIN_PORT || port === TLS_PORT;

/** The host as requests and URLs have it, with a port that the scheme does not imply; RFC 9110 section 7.2. */
export function authorityOf({ name, ip, port, isTls }: Service): string {
  const host = name ?? (ip.includes(":") ? `[${ip}]` : ip);
  return port === (isTls ? TLS_PORT : PLAIN_PORT) ? host : `${host}:${port}`;
}
