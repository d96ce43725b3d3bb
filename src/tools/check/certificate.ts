import { checkServerIdentity, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { DAY_MS } from "../../util/clock.ts";
import { printable, quote } from "../../util/text.ts";
import type { Finding } from "./findings.ts";
import type { Seen } from "./result.ts";

/** A certificate that ends sooner is worth a warning, in days. */
const SOON_DAYS = 14;

/** The longest chain that is looked at; browsers accept about ten. */
const MAX_CHAIN = 16;

/** The code of a certificate for another name, which is judged by itself. */
const OTHER_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

/** Codes of a chain that ends before an authority that is trusted. */
const NO_ISSUER = /^UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/;

const dateOf = (text: string) => new Date(text).toISOString().slice(0, 10);

/** A handshake that is complete, as far as it is judged. */
export type Handshake = Pick<
  TLSSocket,
  "getPeerCertificate" | "getProtocol" | "authorizationError"
>;

/** The certificates that the server shows, its own first. */
export function chainOf(socket: Handshake): DetailedPeerCertificate[] {
  const chain: DetailedPeerCertificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.fingerprint256 && !chain.includes(next) && chain.length < MAX_CHAIN) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}

/** Judges the certificates of a handshake that is complete, as browsers do. */
export function judgeCertificate(socket: Handshake, name: string | null, nowMs: number): Seen {
  const chain = chainOf(socket);
  const [own] = chain;
  if (own === undefined) {
    return { finding: "certificate-untrusted", text: "The server shows no certificate." };
  }
  const certificate = {
    sha256: own.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfter: new Date(own.valid_to).toISOString(),
    issuer: printable(String(own.issuer?.CN ?? "")),
  };
  const found = (finding: Finding, text: string): Seen => ({ finding, text, certificate });
  const nameOf = (about: { readonly CN?: unknown } | undefined) => quote(String(about?.CN ?? ""));
  const isOver = ({ valid_to }: DetailedPeerCertificate) => Date.parse(valid_to) < nowMs;
  const isEarly = ({ valid_from }: DetailedPeerCertificate) => nowMs < Date.parse(valid_from);
  if (isOver(own)) {
    return found("certificate-expired", `The certificate expired on ${dateOf(own.valid_to)}.`);
  }
  if (isEarly(own)) {
    const text = `The certificate is not valid before ${dateOf(own.valid_from)}.`;
    return found("certificate-not-yet-valid", text);
  }
  if (name !== null && checkServerIdentity(name, own)) {
    return found("certificate-name", `The certificate is not for ${name}.`);
  }
  const untrusted = socket.authorizationError && String(socket.authorizationError);
  if (untrusted && untrusted !== OTHER_NAME) {
    const wrong = chain.find((each) => isOver(each) || isEarly(each));
    if (wrong) {
      const when = isOver(wrong)
        ? `expired on ${dateOf(wrong.valid_to)}`
        : `is not valid before ${dateOf(wrong.valid_from)}`;
      return found(
        "certificate-chain",
        `The certificate of ${nameOf(wrong.subject)}, which the chain needs, ${when}.`,
      );
    }
    if (NO_ISSUER.test(untrusted)) {
      const last = chain.at(-1);
      const text = `The certificate of ${nameOf(last?.issuer)} is missing behind that of ${nameOf(last?.subject)}, or its authority is not known here (${untrusted}).`;
      return found("certificate-chain", text);
    }
    const text = `The certificate is not signed by an authority that this service trusts (${untrusted}).`;
    return found("certificate-untrusted", text);
  }
  const days = Math.floor((Date.parse(own.valid_to) - nowMs) / DAY_MS);
  const whose = name === null ? "" : ` for ${name}`;
  const text = `${socket.getProtocol() ?? "TLS"}, with a certificate${whose} that is valid for ${days} more days.`;
  return days < SOON_DAYS ? found("certificate-expires", text) : { text, certificate };
}
