import { checkServerIdentity, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { DAY_MS } from "../../util/clock.ts";
import { printable, quote } from "../../util/text.ts";
import type { Finding } from "./findings.ts";
import type { Found } from "./ledger.ts";

/** A certificate that expires within so many days gets a warning. */
const SOON_DAYS = 14;

/** The longest chain that is looked at; browsers accept about ten. */
const MAX_CHAIN = 16;

/** The code of a certificate for another name, which is judged by itself. */
const OTHER_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

/** Codes of a chain that does not lead to a trusted authority. */
const NO_ISSUER = /^UNABLE_TO_(GET_ISSUER_CERT|VERIFY_LEAF_SIGNATURE)/;

/** The part of a complete handshake that is judged. */
export type Handshake = Pick<
  TLSSocket,
  "getPeerCertificate" | "getProtocol" | "authorizationError"
>;

/** The certificates that the server shows, its own first. */
function chainOf(socket: Handshake): DetailedPeerCertificate[] {
  const chain: DetailedPeerCertificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.fingerprint256 && !chain.includes(next) && chain.length < MAX_CHAIN) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}

const dateOf = (time: string | number) => new Date(time).toISOString().slice(0, 10);

/** Why a certificate is not valid now, and the clock that says when that is; null if it is valid. */
function invalidText({ valid_from, valid_to }: DetailedPeerCertificate, nowMs: number) {
  const clock = `; the clock of this machine says ${dateOf(nowMs)}`;
  if (Date.parse(valid_to) < nowMs) return `expired on ${dateOf(valid_to)}${clock}`;
  const isEarly = nowMs < Date.parse(valid_from);
  return isEarly ? `is not valid before ${dateOf(valid_from)}${clock}` : null;
}

/** Judges the certificates of a handshake that is complete, as browsers do. */
export function judgeCertificate(socket: Handshake, name: string | null, nowMs: number): Found {
  const certificates = chainOf(socket);
  const chain = certificates.map(({ fingerprint256 }) => fingerprint256);
  const [own] = certificates;
  if (own === undefined) {
    return { finding: "certificate-untrusted", text: "The server shows no certificate.", chain };
  }
  const certificate = {
    sha256: own.fingerprint256.replaceAll(":", "").toLowerCase(),
    notAfter: new Date(own.valid_to).toISOString(),
    issuer: printable(String(own.issuer?.CN ?? "")),
  };
  const found = (finding: Finding, text: string) => ({ finding, text, certificate, chain });
  const nameOf = (about: { readonly CN?: unknown } | undefined) => quote(String(about?.CN ?? ""));
  const invalid = invalidText(own, nowMs);
  if (invalid) {
    const isOver = Date.parse(own.valid_to) < nowMs;
    const finding = isOver ? "certificate-expired" : "certificate-not-yet-valid";
    return found(finding, `The certificate ${invalid}.`);
  }
  if (name !== null && checkServerIdentity(name, own)) {
    return found("certificate-name", `The certificate is not for ${name}.`);
  }
  const untrusted = socket.authorizationError && String(socket.authorizationError);
  if (untrusted && untrusted !== OTHER_NAME) {
    const wrong = certificates.find((each) => invalidText(each, nowMs));
    if (wrong) {
      const text = `The certificate of ${nameOf(wrong.subject)}, which the chain needs, ${invalidText(wrong, nowMs)}.`;
      return found("certificate-chain", text);
    }
    if (NO_ISSUER.test(untrusted)) {
      const last = certificates.at(-1);
      const text = `The certificate of ${nameOf(last?.issuer)} is missing behind that of ${nameOf(last?.subject)}, or its authority is not known here (${untrusted}).`;
      return found("certificate-chain", text);
    }
    const text = `The certificate is not signed by an authority that this service trusts (${untrusted}).`;
    return found("certificate-untrusted", text);
  }
  const days = Math.floor((Date.parse(own.valid_to) - nowMs) / DAY_MS);
  const whose = name === null ? "" : ` for ${name}`;
  const text = `${socket.getProtocol() ?? "TLS"}, with a certificate${whose} that is valid for ${days} more days.`;
  return days < SOON_DAYS ? found("certificate-expires", text) : { text, certificate, chain };
}
