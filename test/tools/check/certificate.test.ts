/** Chains of certificates, judged at a time that is given. */
import { expect, test } from "bun:test";
import type { DetailedPeerCertificate } from "node:tls";
import { type Handshake, judgeCertificate } from "../../../src/tools/check/certificate.ts";

const NAME = "www.example.com";
const NOW = Date.parse("2026-11-22T12:00:00Z");
const day = (days: number) => new Date(NOW + days * 86_400_000).toUTCString();

/** A certificate of a chain. */
interface Link {
  readonly of: string;
  readonly by: string;
  readonly days?: readonly [from: number, to: number];
}

/** A handshake in which a server shows these, its own first. */
function shown(links: readonly Link[], authorizationError?: string): Handshake {
  const made = links.map(({ of, by, days: [from, to] = [-10, 80] }, at) => ({
    ...{ subject: { CN: of }, issuer: { CN: by }, subjectaltname: `DNS:${of}` },
    ...{ valid_from: day(from), valid_to: day(to) },
    fingerprint256: Array.from({ length: 32 }, () => `A${at}`).join(":"),
  })) as unknown as DetailedPeerCertificate[];
  for (const [at, each] of made.entries()) each.issuerCertificate = made[at + 1] ?? each;
  return {
    getPeerCertificate: () => made[0] ?? ({} as DetailedPeerCertificate),
    getProtocol: () => "TLSv1.3",
    authorizationError: authorizationError as unknown as Error,
  } as unknown as Handshake;
}

const OWN: Link = { of: NAME, by: "Middle" };
const MIDDLE: Link = { of: "Middle", by: "Root" };
const ROOT: Link = { of: "Root", by: "Root" };

test.each<
  [
    what: string,
    links: readonly Link[],
    error: string | undefined,
    finding: string | undefined,
    words: RegExp,
  ]
>([
  ["a whole chain", [OWN, MIDDLE, ROOT], undefined, undefined, /valid for 80 more days/],
  ["no certificate", [], undefined, "certificate-untrusted", /no certificate/],
  [
    "one that ends soon",
    [{ ...OWN, days: [-80, 5] }, MIDDLE],
    undefined,
    "certificate-expires",
    /5 more days/,
  ],
  [
    "one that has expired",
    [{ ...OWN, days: [-80, -5] }],
    "CERT_HAS_EXPIRED",
    "certificate-expired",
    /expired on 2026-11-17; the clock of this machine says 2026-11-22/,
  ],
  [
    "one that is early",
    [{ ...OWN, days: [5, 80] }],
    "CERT_NOT_YET_VALID",
    "certificate-not-yet-valid",
    /before 2026-11-27; the clock of this machine says 2026-11-22/,
  ],
  [
    "one of another name",
    [{ ...OWN, of: "x.example" }],
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "certificate-name",
    /not for www/,
  ],
  [
    "one that signs itself",
    [{ of: NAME, by: NAME }],
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "certificate-untrusted",
    /DEPTH_ZERO/,
  ],
  [
    "one without that of its issuer",
    [OWN],
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "certificate-chain",
    /The certificate of "Middle" is missing behind that of "www.example.com"/,
  ],
  [
    "a chain that ends before its root",
    [OWN, MIDDLE],
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "certificate-chain",
    /The certificate of "Root" is missing behind that of "Middle"/,
  ],
  [
    "a chain with one that has expired",
    [OWN, { ...MIDDLE, days: [-900, -2] }, ROOT],
    "CERT_HAS_EXPIRED",
    "certificate-chain",
    /The certificate of "Middle", which the chain needs, expired on 2026-11-20/,
  ],
])("a server that shows %s", (_, links, error, finding, words) => {
  const seen = judgeCertificate(shown(links, error), NAME, NOW);
  expect(seen.finding as string | undefined).toBe(finding);
  expect(seen.text).toMatch(words);
  if (links.length > 0) {
    expect(seen.certificate).toEqual({
      sha256: "a0".repeat(32),
      notAfter: new Date(Date.parse(day(links[0]?.days?.[1] ?? 80))).toISOString(),
      issuer: links[0]?.by ?? "",
    });
  }
});

test("a chain that is endless, or a circle, ends", () => {
  const circle = shown([OWN, MIDDLE]);
  const own = circle.getPeerCertificate(true);
  own.issuerCertificate.issuerCertificate = own;
  expect(judgeCertificate(circle, NAME, NOW).finding).toBeUndefined();
});
