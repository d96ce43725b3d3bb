/** The view of a client on a service at one address: a connection, the handshake of TLS, the head of an HTTP response. */
import { addAbortListener } from "node:events";
import type { Socket } from "node:net";
import { type ConnectionOptions, checkServerIdentity, type TLSSocket } from "node:tls";
import { type IpAddress, tryParseIp } from "../../addr/ip.ts";
import { type DnsClient, lookupAddresses } from "../../dns/client.ts";
import { parseHostname } from "../../dns/hostname.ts";
import { openConnection, sourceTo } from "../../gate/connection.ts";
import type { Caller, Gate } from "../../gate/gate.ts";
import { abortedBy } from "../../util/abort.ts";
import { errorCode, reasonOf } from "../../util/errors.ts";
import { round } from "../../util/numbers.ts";
import { printable, quote } from "../../util/text.ts";
import { VERSION } from "../../util/version.ts";
import type { Services } from "../services.ts";
import type { Finding } from "./findings.ts";
import { type Head, headReader } from "./http-head.ts";
import { PLAIN_PORT, type Seen, TLS_PORT } from "./verdict.ts";

/** A service at one address. */
export interface Service {
  /** The address that is connected to; nothing is resolved again. */
  readonly ip: string;
  readonly port: number;
  /** The name that the certificate and the site are asked for; null where only the address is known. */
  readonly name: string | null;
}

/** Milliseconds for connections, a handshake, or a response. */
const ANSWER_MS = 4_000;

/** Characters of a text that a server chose. */
const MAX_TEXT = 200;

/** A certificate that ends sooner is worth a warning, in days. */
const SOON_DAYS = 14;

const DAY_MS = 86_400_000;

const found = (finding: Finding, text: string): Seen => ({ finding, text });

const clip = (text: string) => printable(text.slice(0, MAX_TEXT));

/** The message of an error if a server closes a connection without one. */
const CLOSED = "it closed the connection";

/** Judges why there was no connection: Bun calls every error a refusal. */
async function judgeNoConnection(ip: string, isTimeout: boolean): Promise<Seen> {
  if (isTimeout) return found("port-silent", "No connection came about in time.");
  try {
    await sourceTo(ip);
    return found("not-opened", "A connection was refused, or an error came in its place.");
  } catch (error) {
    const why = errorCode(error) ?? reasonOf(error);
    return found("not-sent", `This machine cannot send to ${ip} (${why}).`);
  }
}

/** A server that has just taken connections is not judged by one that fails: many limit them. */
const NO_MORE = {
  status: "skipped",
  text: "Connections opened before, and this one did not: a firewall may limit them.",
} as const satisfies Seen;

/** The code of a certificate for another name, which is judged by itself. */
const OTHER_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

/**
 * Waits for the first that a socket brings, and closes it; null if the socket did not connect.
 *
 * @param listen gets the function that takes it
 * @throws the error of a socket that connected, an error if it closes, or the signal's reason
 */
async function firstOf<T>(
  socket: Socket,
  signal: AbortSignal,
  listen: (resolve: (value: T) => void) => void,
): Promise<T | null> {
  const { promise, resolve, reject } = Promise.withResolvers<T | null>();
  let isConnected = false;
  const fail = (error: unknown) => (isConnected ? reject(error) : resolve(null));
  using _ = addAbortListener(signal, () => fail(signal.reason));
  socket.on("connect", () => {
    isConnected = true;
  });
  socket.on("error", fail);
  socket.on("close", () => fail(new Error(CLOSED)));
  listen(resolve);
  // At once, as some servers do not end.
  return await promise.finally(() => socket.destroy());
}

/** Opens connections to one service, each as soon as the gate lets it leave. */
export interface Reach {
  /** Aborts when a connection has not brought what was waited for within `ANSWER_MS`, or with the check. */
  readonly limit: AbortSignal;
  /** @throws the limit's reason */
  open<Tls extends ConnectionOptions | undefined>(
    tls: Tls,
  ): Promise<Tls extends undefined ? Socket : TLSSocket>;
}

/**
 * Lets something open connections to a service.
 *
 * @throws the signal's reason
 */
export async function withReach<T>(
  { ip, port }: Service,
  { gate, caller, signal }: { gate: Gate; caller: Caller; signal: AbortSignal },
  use: (reach: Reach) => Promise<T>,
): Promise<T> {
  const target = tryParseIp(ip) as IpAddress;
  const limit = abortedBy(signal);
  let timer: Timer | undefined;
  try {
    const result = await use({
      limit: limit.signal,
      async open(tls) {
        // What the connection before was waited for has come; for this one the gate may take longer.
        clearTimeout(timer);
        const socket = await openConnection(gate, { target, port, caller }, limit.signal, tls);
        timer = setTimeout(() => limit.abort(), ANSWER_MS);
        if (socket === null) throw limit.signal.reason;
        return socket;
      },
    });
    // Whatever ended with the signal was cut, not silent.
    signal.throwIfAborted();
    return result;
  } finally {
    clearTimeout(timer);
    limit.abort();
  }
}

/** A TLS handshake without trust in any certificate, so that one that is not valid can be described. */
const tlsOf = ({ name }: Service) => ({
  rejectUnauthorized: false,
  ALPNProtocols: ["http/1.1"],
  ...(name !== null && { servername: name }),
});

const dateOf = (text: string) => new Date(text).toISOString().slice(0, 10);

/** Judges a handshake that is complete. */
function judgeHandshake(socket: TLSSocket, name: string | null): Seen {
  const certificate = socket.getPeerCertificate();
  const { valid_from: begin, valid_to: end } = certificate;
  const leftMs = Date.parse(end) - Date.now();
  if (leftMs < 0) return found("certificate-expired", `The certificate expired on ${dateOf(end)}.`);
  if (Date.now() < Date.parse(begin)) {
    const text = `The certificate is not valid before ${dateOf(begin)}.`;
    return found("certificate-not-yet-valid", text);
  }
  if (name !== null && checkServerIdentity(name, certificate)) {
    return found("certificate-name", `The certificate is not for ${name}.`);
  }
  const untrusted = socket.authorizationError && String(socket.authorizationError);
  if (untrusted && untrusted !== OTHER_NAME) {
    const text = `The certificate is not signed by an authority that this service trusts (${untrusted}).`;
    return found("certificate-untrusted", text);
  }
  const days = Math.floor(leftMs / DAY_MS);
  const whose = name === null ? "" : ` for ${name}`;
  const text = `${socket.getProtocol() ?? "TLS"}, with a certificate${whose} that is valid for ${days} more days.`;
  return days < SOON_DAYS ? found("certificate-expires", text) : { text };
}

/** Codes of bytes that are no record of TLS; other errors are alerts of a server, or a connection that is closed. */
const NOT_TLS = /WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST/;

/** Judges why there was no handshake. */
function judgeNoHandshake(error: unknown, isTimeout: boolean): Seen {
  if (isTimeout) {
    const text = `The connection opens, and then the server does not answer the TLS handshake within ${ANSWER_MS / 1000} seconds.`;
    return found("tls-silent", text);
  }
  const why = clip(errorCode(error) ?? reasonOf(error));
  return NOT_TLS.test(why)
    ? found("not-tls", `The server does not speak TLS on this port (${why}).`)
    : found("tls-failed", `The TLS handshake fails (${why}).`);
}

/** A response with a status, and where it redirects to; null if it does not, or not to a URL. */
interface Answer {
  readonly status: number;
  readonly location: URL | null;
}

/**
 * Asks for the head of the service's root over HTTP/1.1, or HTTPS unless the port is that of HTTP; null without
 * a connection. No redirect is followed and no body is read. Not by `fetch`, which asks the proxy of the environment.
 *
 * @throws Error
 */
async function requestHead(service: Service, { open, limit }: Reach): Promise<Answer | null> {
  const { ip, port, name } = service;
  const isPlain = port === PLAIN_PORT;
  const host = name ?? (ip.includes(":") ? `[${ip}]` : ip);
  const socket = await open(isPlain ? undefined : tlsOf(service));
  const request = [
    "HEAD / HTTP/1.1",
    `Host: ${host}`,
    `User-Agent: sixscope/${VERSION}`,
    "Accept: */*",
    "Accept-Encoding: identity",
    "Connection: close",
  ];
  const head = await firstOf<Head | string>(socket, limit, (resolve) => {
    const read = headReader();
    socket.on(isPlain ? "connect" : "secureConnect", () =>
      socket.write(`${request.join("\r\n")}\r\n\r\n`),
    );
    socket.on("data", (piece: Buffer) => {
      const outcome = read(piece);
      if (outcome !== null) resolve(outcome);
    });
  });
  if (head === null) return null;
  if (typeof head === "string") throw new Error(quote(head));
  const { status, headers } = head;
  const isRedirect = status >= 300 && status < 400;
  const base = `${isPlain ? "http" : "https"}://${host}/`;
  return { status, location: isRedirect ? URL.parse(headers.get("location") ?? "", base) : null };
}

/** A server that knows no `HEAD` may well answer browsers; RFC 9110 section 15.6.2. */
const NOT_IMPLEMENTED = 501;

/**
 * Judges the head of a response.
 *
 * @param hasIpv6 false if the name that it redirects to has no IPv6 address; null if that is not known
 */
function judgeHead({ status, location }: Answer, hasIpv6: boolean | null): Seen {
  if (status < 100 || status > 999) {
    return found("not-http", `The server answers with status ${status}, which is not valid.`);
  }
  const httpStatus = status;
  if (location !== null && hasIpv6 === false) {
    const text = `It redirects (${status}) to ${quote(clip(location.hostname))}, which has no IPv6 address.`;
    return { finding: "redirect-without-ipv6", text, httpStatus };
  }
  if (status >= 500 && status !== NOT_IMPLEMENTED) {
    return { finding: "http-error", text: `The server answers with status ${status}.`, httpStatus };
  }
  const to = location === null ? "" : `, and redirects to ${clip(location.href)}`;
  return { text: `The server answers with status ${status}${to}.`, httpStatus };
}

/** Judges why there was no response. */
function judgeNoHead(error: unknown, isTimeout: boolean): Seen {
  const why = clip(errorCode(error) ?? reasonOf(error));
  if (isTimeout) {
    const text = `The server does not answer an HTTP request within ${ANSWER_MS / 1000} seconds.`;
    return found("http-silent", text);
  }
  return why === "ECONNRESET" || why === CLOSED
    ? found("http-silent", "The server closes the connection and does not answer an HTTP request.")
    : found("not-http", `The server does not answer with HTTP (${why}).`);
}

/** Shakes hands by TLS, and judges what came. */
export async function judgeTls(service: Service, { open, limit }: Reach): Promise<Seen> {
  try {
    const socket = await open(tlsOf(service));
    const seen = await firstOf<Seen>(socket, limit, (resolve) =>
      socket.on("secureConnect", () => resolve(judgeHandshake(socket, service.name))),
    );
    return seen ?? NO_MORE;
  } catch (error) {
    const seen = judgeNoHandshake(error, limit.aborted);
    // Another protocol may be at home there.
    return service.port === TLS_PORT ? seen : { status: "skipped", text: seen.text };
  }
}

/**
 * Asks for the head of an HTTP response, and judges it; a name that it redirects to is looked up.
 */
export async function judgeHttp(
  service: Service,
  reach: Reach,
  { config, resolvers }: Pick<Services, "config" | "resolvers">,
): Promise<Seen> {
  let head: Answer | null;
  try {
    head = await requestHead(service, reach);
  } catch (error) {
    return judgeNoHead(error, reach.limit.aborted);
  }
  if (head === null) return NO_MORE;
  const name = head.location?.hostname ?? service.name;
  // A service that is asked over IPv4 may well lead to another.
  const isElsewhere = name !== null && name !== service.name && service.ip.includes(":");
  if (!isElsewhere) return judgeHead(head, null);
  const client = resolvers[config.targetResolver];
  return judgeHead(head, await hasIpv6Address(client, name, reach.limit));
}

/** True if a name or an address in a URL is of IPv6; null if the resolver does not say. */
async function hasIpv6Address(client: DnsClient, host: string, signal: AbortSignal) {
  const ip = tryParseIp(host.replace(/^\[|\]$/g, ""));
  if (ip !== null) return ip.version === 6;
  const parsed = parseHostname(host, "AAAA");
  if (!parsed.ok) return null;
  const { outcome, addresses } = await lookupAddresses(client, parsed.name, { signal });
  return addresses.length > 0 || (["no-data", "name-error"].includes(outcome.kind) ? false : null);
}

/** Opens connections one after another, as programs do. */
export async function openTcp({ ip, port }: Service, attempts: number, { open, limit }: Reach) {
  const times: number[] = [];
  while (times.length < attempts) {
    const socket = await open(undefined);
    const startMs = performance.now();
    const taken = await firstOf<number>(socket, limit, (resolve) =>
      socket.on("connect", () => resolve(performance.now() - startMs)),
    );
    if (taken === null) break;
    times.push(taken);
  }
  if (times.length === 0) return await judgeNoConnection(ip, limit.aborted);
  const text = `${ip} accepts connections to port ${port}.`;
  return { text, rtt: round(Math.min(...times), 3), rttMost: round(Math.max(...times), 3) };
}
