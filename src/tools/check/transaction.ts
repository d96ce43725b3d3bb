/** A transaction as a browser makes it, at one address: a connection, the handshake of TLS, a request and its response. */
import { addAbortListener } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { type IpAddress, tryParseIp } from "../../addr/ip.ts";
import { openConnection, sourceTo } from "../../gate/connection.ts";
import type { Caller, Gate } from "../../gate/gate.ts";
import { errorCode, reasonOf } from "../../util/errors.ts";
import { afterSilence } from "../../util/silence.ts";
import { printable, quote } from "../../util/text.ts";
import { VERSION } from "../../util/version.ts";
import { judgeCertificate } from "./certificate.ts";
import { type Finding, isFailure } from "./findings.ts";
import { bodyCounter, headReader } from "./http1.ts";
import type { Attempt, Found } from "./ledger.ts";
import { authorityOf, type Service } from "./service.ts";

/** How far a transaction goes, and for whom. */
export interface Through {
  readonly gate: Gate;
  readonly caller: Caller;
  readonly signal: AbortSignal;
  /** `request` asks for a page, `body` reads it too. */
  readonly depth: "connect" | "handshake" | "request" | "body";
  /** Follows a redirect, and says what is wrong at its destination; null if nothing is. */
  follow?(redirect: Redirect): Promise<Found | null>;
}

/** Where a response redirects to, and whether it sets a cookie, which a browser would send there. */
export interface Redirect {
  readonly to: string;
  readonly setsCookie: boolean;
}

/** The parts of a transaction, in their order. */
export type Part = Omit<Attempt, "ip" | "turn" | "atMs">;

/** Milliseconds for a connection, a handshake, a response, and the next part of a body: the kernel sends three SYNs in this time. */
const ANSWER_MS = 4_000;

/** Bytes of a body that are read. */
const MAX_BODY_BYTES = 65_536;

/** Characters of a text that a server chose. */
const MAX_TEXT = 200;

/** A text that a server chose, as messages may show it. */
export const clip = (text: string) => printable(text.slice(0, MAX_TEXT));

/** The messages of endings without an error: nothing comes, or the server closes the connection. */
const [SILENCE, CLOSED] = ["silence", "it closed the connection"];

type Fail = (error: unknown) => void;

/** The head of a response, and how its body comes. */
interface Answer {
  readonly status: number;
  readonly location: string | undefined;
  readonly setsCookie: boolean;
  /** The body's length as the head says it; null if it does not. */
  readonly length: number | null;
  /** True for chunks; without them and a length, a body ends with the connection, or its stream. */
  readonly hasChunks?: boolean;
  /** The beginning of the body, which came with the head. */
  readonly rest?: string;
  listen(take: (piece: Buffer) => void, end: () => void, fail: Fail): void;
}

/** No answer came; the message says what came instead. */
class NoAnswer extends Error {}

const noAnswer = (cause: unknown) => new NoAnswer(clip(errorCode(cause) ?? reasonOf(cause)));

/** Makes a function that waits for the next thing that a socket brings. */
function waiterOf(socket: Socket, signal: AbortSignal) {
  const { promise: ended, reject: end } = Promise.withResolvers<never>();
  ended.catch(() => {});
  socket.on("error", (error) => end(noAnswer(error)));
  socket.on("close", () => end(new NoAnswer(CLOSED)));
  /**
   * @param listen calls its third function if something came, so that the wait begins anew
   * @throws NoAnswer, or the signal's reason
   */
  return async <T>(
    listen: (resolve: (value: T) => void, reject: Fail, hear: () => void) => void,
  ) => {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const silence = afterSilence(ANSWER_MS, () => reject(new NoAnswer(SILENCE)));
    using _ = addAbortListener(signal, () => reject(signal.reason));
    listen(resolve, (error) => reject(noAnswer(error)), silence.hear);
    return await Promise.race([promise, ended]).finally(silence.cancel);
  };
}

type Wait = ReturnType<typeof waiterOf>;

/** Codes of bytes that are no TLS record; other errors are alerts of a server, or a closed connection. */
const NOT_TLS = /WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST/;

const found = (finding: Finding, text: string): Found => ({ finding, text });

/** `TLS alert: certificate required`, from the name of an error of BoringSSL; other messages as they are. */
function causeOf({ message }: NoAnswer): string {
  const [, alert] = message.split("_ALERT_");
  return alert ? `TLS alert: ${alert.toLowerCase().replaceAll("_", " ")}` : message;
}

/** Judges why there was no handshake. */
function judgeNoHandshake(end: NoAnswer): Found {
  const { message } = end;
  if (message === SILENCE) {
    const text = `The connection opens, and then the server does not answer the TLS handshake within ${ANSWER_MS / 1000} seconds.`;
    return found("tls-silent", text);
  }
  return NOT_TLS.test(message)
    ? found("not-tls", `The server does not speak TLS on this port (${message}).`)
    : found("tls-failed", `The TLS handshake fails (${causeOf(end)}).`);
}

/** Judges why there was no response. */
function judgeNoHead(end: NoAnswer): Found {
  const { message } = end;
  // With TLS 1.3, a server judges the client's certificate behind the handshake.
  if (message.startsWith("ERR_SSL"))
    return found("tls-failed", `The server ends the TLS connection (${causeOf(end)}).`);
  if (message === SILENCE) {
    const text = `The server does not answer an HTTP request within ${ANSWER_MS / 1000} seconds.`;
    return found("http-silent", text);
  }
  return message === "ECONNRESET" || message === CLOSED
    ? found("http-silent", "The server closes the connection and does not answer an HTTP request.")
    : found("not-http", `The server does not answer with HTTP (${message}).`);
}

/** Judges a response, and reads its body if `isRead`. */
async function judgeAnswer(answer: Answer, isRead: boolean, wait: Wait): Promise<Found> {
  const { status: httpStatus, location, length } = answer;
  if (!(httpStatus >= 100 && httpStatus <= 999)) {
    return found("not-http", `The server answers with status ${httpStatus}, which is not valid.`);
  }
  const text = `The server answers with status ${httpStatus}`;
  if (httpStatus >= 500) return { finding: "http-error", text: `${text}.`, httpStatus };
  const cut = isRead ? await readBody(answer, wait) : null;
  if (cut !== null) {
    const of = length === null ? "" : ` of ${length}`;
    const why = cut.isSilent ? `nothing for ${ANSWER_MS / 1000} seconds` : "the connection ended";
    const only = `Only ${cut.bytes}${of} bytes of the body came, and then ${why}.`;
    return { finding: "response-incomplete", text: `${text}. ${only}`, httpStatus };
  }
  const to = location === undefined ? "" : `, and redirects to ${clip(location)}`;
  return { text: `${text}${to}.`, httpStatus };
}

const isRedirect = (status: number) => status >= 300 && status < 400 && status !== 304;

/** True for a response without a body, whatever its headers say; RFC 9110 section 6.4.1. */
const isEmpty = (status: number) => status < 200 || status === 204 || status === 304;

const lengthOf = (text: string | undefined) =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;

/**
 * Reads a body, for some seconds at most. Returns null if the body is whole or still comes then. Otherwise it returns
 * how many bytes came, and whether silence or the end of the connection followed.
 */
async function readBody({ length, hasChunks = false, rest = "", listen }: Answer, wait: Wait) {
  const endsAlone = length === null && !hasChunks;
  const count = bodyCounter(hasChunks);
  let body = count(Buffer.from(rest, "latin1"));
  const isOver = () =>
    body.isOver || body.bytes >= MAX_BODY_BYTES || (length !== null && body.bytes >= length);
  const enoughMs = performance.now() + ANSWER_MS;
  let isSilent = false;
  const whole = wait<boolean>((resolve, reject, hear) => {
    const take = (piece: Buffer) => {
      hear();
      body = count(piece);
      if (isOver() || performance.now() > enoughMs) resolve(true);
    };
    listen(take, () => resolve(isOver() || endsAlone), reject);
    if (isOver()) resolve(true);
  });
  const isWhole = await whole.catch((error: unknown) => {
    if (!(error instanceof NoAnswer)) throw error;
    isSilent = error.message === SILENCE;
    return endsAlone && error.message === CLOSED;
  });
  return isWhole ? null : { bytes: body.bytes, isSilent };
}

/** Asks over HTTP/1.1; RFC 9112. Not by `fetch`, which asks the proxy of the environment. */
async function askHttp1(socket: Socket, service: Service, wait: Wait): Promise<Answer> {
  const request = [
    `GET ${service.path ?? "/"} HTTP/1.1`,
    `Host: ${authorityOf(service)}`,
    `User-Agent: sixscope/${VERSION}`,
    "Accept: */*",
    "Accept-Encoding: identity",
    "Connection: close",
  ];
  const read = headReader();
  const head = await wait<Exclude<ReturnType<typeof read>, null>>((resolve) => {
    const take = (piece: Buffer) => {
      const outcome = read(piece);
      if (outcome === null) return;
      // `readBody` goes on from here.
      socket.off("data", take).pause();
      resolve(outcome);
    };
    socket.on("data", take);
    socket.write(`${request.join("\r\n")}\r\n\r\n`);
  });
  if (typeof head === "string") throw new NoAnswer(clip(quote(head)));
  const { status, headers, rest } = head;
  const hasChunks = !isEmpty(status) && /chunked/i.test(headers.get("transfer-encoding") ?? "");
  const length = isEmpty(status) ? 0 : hasChunks ? null : lengthOf(headers.get("content-length"));
  const listen: Answer["listen"] = (take, end) =>
    void socket.on("data", take).on("end", end).resume();
  const [location, setsCookie] = [headers.get("location"), headers.has("set-cookie")];
  return { status, location, setsCookie, length, hasChunks, rest, listen };
}

/** Asks over HTTP/2; RFC 9113. */
async function askHttp2(socket: TLSSocket, service: Service, wait: Wait): Promise<Answer> {
  const authority = authorityOf(service);
  const session = connectHttp2(`https://${authority}`, { createConnection: () => socket });
  socket.once("close", () => session.destroy());
  const stream = session.request({
    ":path": service.path ?? "/",
    ":authority": authority,
    "user-agent": `sixscope/${VERSION}`,
    accept: "*/*",
    "accept-encoding": "identity",
  });
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  failed.catch(() => {});
  session.on("error", fail);
  stream.on("error", fail);
  const headers = await wait<Record<string, unknown>>((resolve, reject) => {
    failed.catch(reject);
    stream.on("response", resolve);
    stream.on("close", () => reject(new Error(CLOSED)));
  });
  const text = (name: string) => {
    const value = headers[name];
    return typeof value === "string" ? value : undefined;
  };
  const status = Number(headers[":status"]);
  return {
    ...{ status, location: text("location"), setsCookie: "set-cookie" in headers },
    length: isEmpty(status) ? 0 : lengthOf(text("content-length")),
    listen(take, end, reject) {
      failed.catch(reject);
      stream.on("data", take).on("end", end);
    },
  };
}

/** Why there was no connection; Bun calls every error a refusal. */
async function reasonWithout(ip: string, { message }: NoAnswer): Promise<string> {
  if (message === SILENCE) return "timeout";
  return (await sourceTo(ip).catch(() => null)) === null ? "not-sent" : "refused";
}

/**
 * Makes a transaction, and tells each of its parts as soon as it has ended. Returns where it redirects to; undefined if
 * it does not.
 *
 * @throws the signal's reason; a part that the signal cut is not told
 */
export async function transact(
  service: Service,
  { gate, caller, signal, depth, follow }: Through,
  tell: (part: Part) => void,
): Promise<Redirect | undefined> {
  const { ip, port, name, isTls } = service;
  const destination = { target: tryParseIp(ip) as IpAddress, port, caller };
  const hasTls = isTls && depth !== "connect";
  const tls = {
    // Any certificate is taken, so that one that is not valid can be described.
    rejectUnauthorized: false,
    ALPNProtocols: ["h2", "http/1.1"],
    ...(name !== null && { servername: name }),
  };
  const socket = await openConnection(gate, destination, signal, hasTls ? tls : undefined);
  if (socket === null) throw signal.reason;
  let startMs = performance.now();
  const took = () => {
    const beganMs = startMs;
    startMs = performance.now();
    return startMs - beganMs;
  };
  /** The part under way. */
  let kind: Part["kind"] = "connect";
  /** Tells the outcome of the part under way, and returns true if it worked. */
  const note = (found: Found = {}) => {
    const reason = isFailure(found.finding) ? found.finding : null;
    const part = { kind, ms: took(), reason, ...found };
    const isLast = kind === (depth === "body" ? "request" : depth);
    tell({ ...part, ...(part.reason === null && !isLast && { isOpen: true }) });
    return part.reason === null;
  };
  const wait = waiterOf(socket, signal);
  const secure = new Promise<void>((resolve) => void socket.once("secureConnect", resolve));
  try {
    await wait<void>((resolve) => void socket.once("connect", resolve));
    note();
    if (depth === "connect") return undefined;
    if (hasTls) {
      kind = "handshake";
      await wait<void>((resolve) => void secure.then(resolve));
      if (!note(judgeCertificate(socket as TLSSocket, name, Date.now()))) return undefined;
    }
    if (depth === "handshake") return undefined;
    kind = "request";
    const isHttp2 = hasTls && (socket as TLSSocket).alpnProtocol === "h2";
    const answer = isHttp2
      ? await askHttp2(socket as TLSSocket, service, wait)
      : await askHttp1(socket, service, wait);
    const seen = await judgeAnswer(answer, depth === "body", wait);
    const about = { ...seen, ms: took(), isRead: depth === "body" };
    const { status, location: to, setsCookie } = answer;
    const isFollowed = isRedirect(status) && !seen.finding;
    const redirect = isFollowed && to !== undefined ? { to, setsCookie } : undefined;
    const wrong = redirect && (await follow?.(redirect));
    // The request has worked: a fault at the destination of a redirect is not one of this address.
    note(wrong ? { ...about, ...wrong, reason: null } : about);
    return redirect;
  } catch (end) {
    if (!(end instanceof NoAnswer)) throw end;
    if (kind === "connect") note({ reason: await reasonWithout(ip, end) });
    else note(kind === "handshake" ? judgeNoHandshake(end) : judgeNoHead(end));
    return undefined;
  } finally {
    // Not `end`, as some servers never close.
    socket.destroy();
  }
}
