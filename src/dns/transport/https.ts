import { formatSocketAddress } from "../../addr/socket-address.ts";
import { errorCode } from "../../util/errors.ts";
import type { Open } from "./transport.ts";

const MEDIA_TYPE = "application/dns-message";

/** Bytes of the largest DNS message. */
const MAX_RESPONSE_BYTES = 65_535;

/** Carries each query over HTTPS; RFC 8484. Bun keeps the connections. @param ca a certificate to trust instead of the usual ones, in PEM */
export function createHttpsOpener(ca?: string): Open {
  return (server, message, events) => {
    const { path = "", name } = server;
    const stop = new AbortController();
    const response = fetch(`https://${formatSocketAddress(server)}${path}`, {
      method: "POST",
      headers: {
        "content-type": MEDIA_TYPE,
        accept: MEDIA_TYPE,
        "accept-encoding": "identity",
        ...(name && { host: name }),
      },
      body: Uint8Array.from(message),
      redirect: "error",
      // Every server has HTTP/2 (RFC 8484 section 5.2), and some have nothing else.
      protocol: "http2",
      // A small body could expand without limit.
      decompress: false,
      signal: stop.signal,
      tls: { ...(name !== undefined && { serverName: name }), ...(ca !== undefined && { ca }) },
    });
    response.then(readMessage).then(events.message, (error) => {
      if (stop.signal.aborted) return;
      // The rest of the response is not read.
      stop.abort();
      events.failed(errorCode(error) ?? "UNKNOWN");
    });
    return { close: () => stop.abort() };
  };
}

/** The server did not answer with a DNS message; the code is `HTTP_` and the status, or the fault. */
const httpError = (code: string) => Object.assign(new Error(code), { code });

/** Reads the message in a response up to the largest size. */
async function readMessage({ status, headers, body }: Response): Promise<Uint8Array> {
  if (status !== 200) throw httpError(`HTTP_${status}`);
  const type = headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== MEDIA_TYPE) throw httpError("HTTP_MEDIA_TYPE");
  const coding = headers.get("content-encoding")?.toLowerCase() ?? "identity";
  if (coding !== "identity") throw httpError("HTTP_CONTENT_CODING");
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body ?? []) {
    bytes += piece.length;
    if (bytes > MAX_RESPONSE_BYTES) throw httpError("HTTP_TOO_LARGE");
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
