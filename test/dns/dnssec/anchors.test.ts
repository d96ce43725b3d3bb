import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { parseTrustAnchors, ROOT_ANCHORS } from "../../../src/dns/dnssec/anchors.ts";
import { testWith } from "../../lab/lab.ts";

const ROOT_DATA = "/usr/share/dns";
const missing = existsSync(ROOT_DATA) ? null : "dns-root-data is not installed";

testWith(missing).each(["root.ds", "root.key"])(
  "the root's anchors are those of Debian's %s",
  (file) => {
    const published = parseTrustAnchors(readFileSync(`${ROOT_DATA}/${file}`, "utf8"));
    const sorted = (anchors: typeof published) => anchors.toSorted((a, b) => a.tag - b.tag);
    expect(sorted(published)).toEqual(sorted(ROOT_ANCHORS));
    expect(published.map(({ tag }) => tag).toSorted()).toEqual([20_326, 38_696]);
  },
);

const DIGEST = "E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";
const KEY =
  "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==";

/** What unbound 1.17 writes into the file of `auto-trust-anchor-file`. */
const autotrust = (state: string) => `; autotrust trust anchor file
;;id: lab. 1
;;last_queried: 1795808868 ;;Fri Nov 27 19:47:48 2026
lab.	3600	IN	DNSKEY	257 3 13 ${KEY} ;{id = 29522 (ksk), size = 256b} ;;state=2 [${state.padStart(8)} ] ;;count=0 ;;lastchange=1795808868 ;;Fri Nov 27 19:47:48 2026
`;

/** What BIND 9.18 writes into `managed-keys.bind`. */
const managed = (trustedFrom: string, flags = 257) => `$ORIGIN .
$TTL 0	; 0 seconds
@			IN SOA	. . (
				2          ; serial
				0          ; refresh (0 seconds)
				0          ; retry (0 seconds)
				0          ; expire (0 seconds)
				0          ; minimum (0 seconds)
				)
lab			KEYDATA	20261127204815 ${trustedFrom} 19700101000000 ${flags} 3 13 (
				${KEY.slice(0, 44)}
				${KEY.slice(44)}
				) ; KSK; alg = ECDSAP256SHA256; key id = 27789
				; next refresh: Fri, 27 Nov 2026 20:48:15 GMT
`;

const NOW_MS = Date.UTC(2026, 10, 28);

test.each([
  ["of unbound", autotrust("VALID"), 1],
  ["of unbound, missing in the zone for a while", autotrust("MISSING"), 1],
  ["of unbound, one of two not trusted yet", autotrust("VALID") + autotrust("ADDPEND"), 1],
  ["of BIND", managed("20261127194815"), 1],
  ["beside a revoked one", `lab. DNSKEY 257 3 13 ${KEY}\nlab. DNSKEY 385 3 13 ${KEY}`, 1],
  [
    "with the TTL and the zone before it",
    `$TTL 1d\n$ORIGIN lab.\n@ IN DNSKEY 257 3 13 ${KEY}\n\tDS 1 13 2 ${DIGEST}`,
    2,
  ],
  ["below the zone before it", `$ORIGIN example.\n$ORIGIN lab\nlab. DS 1 13 2 ${DIGEST}`, 1],
])("a key %s", (_, text, count) => {
  const anchors = parseTrustAnchors(text, NOW_MS);
  expect(anchors.map(({ zone }) => zone)).toEqual(new Array(count).fill("lab."));
});

test("a name is relative to $ORIGIN", () => {
  const [anchor] = parseTrustAnchors(`$ORIGIN example.\nlab DS 1 13 2 ${DIGEST}`);
  expect(anchor?.zone).toBe("lab.example.");
});

// RFC 6605 section 6.1 has this key and its digest.
test("records in the forms of zone files", () => {
  const text = `; closed network
EXAMPLE.net. 3600 IN DNSKEY 257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edb krSqQpF64cYbcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA== ; two words
lab in ds 20326 8 2 ${DIGEST.slice(0, 20)} ${DIGEST.slice(20).toLowerCase()}
`;
  const [key, digest] = parseTrustAnchors(text);
  expect(key).toMatchObject({ zone: "example.net.", tag: 55_648, algorithm: 13, digestType: 2 });
  expect(Buffer.from(key?.digest ?? []).toString("hex")).toBe(
    "b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17",
  );
  expect(digest).toMatchObject({ zone: "lab.", tag: 20_326, algorithm: 8, digestType: 2 });
  expect(
    Buffer.from(digest?.digest ?? [])
      .toString("hex")
      .toUpperCase(),
  ).toBe(DIGEST);
});

test.each([
  ["", "it has no record"],
  ["; only a comment\n", "it has no record"],
  ["\n. IN NS a.root.", "line 2: it must be a name, then DS or DNSKEY, three numbers and the data"],
  [`. DS 99999 8 2 ${DIGEST}`, "line 1: it must be a name"],
  [
    `. DS 20326 8 2 ${DIGEST.slice(2)}`,
    "line 1: the digest of the DS record is cut short or not in hex",
  ],
  [
    `. DS 20326 8 2 ${DIGEST.slice(2)}zz`,
    "line 1: the digest of the DS record is cut short or not in hex",
  ],
  [`. DNSKEY 0 3 13 ${KEY}`, "line 1: the DNSKEY record is not the key of a zone in base64"],
  [
    `. DNSKEY 257 3 13 ${KEY.slice(1)}`,
    "line 1: the DNSKEY record is not the key of a zone in base64",
  ],
  [`a..b DS 20326 8 2 ${DIGEST}`, "line 1: a name has an empty label"],
  [`. DS 20326 8 2 (\n${DIGEST.slice(2)} )`, "line 1: the digest of the DS record is cut short"],
  [`. DS 20326 8 2 (\n${DIGEST}\n. IN NS a.root.`, "line 1: the digest of the DS record is cut"],
  ["$INCLUDE other", "line 1: it must be a name"],
  [`lab. IN DNSKEY 385 3 13 ${KEY}`, "it has no record of a trusted key"],
  [autotrust("ADDPEND"), "it has no record of a trusted key"],
  [autotrust("START"), "it has no record of a trusted key"],
  [autotrust("REVOKED"), "it has no record of a trusted key"],
  [autotrust("REMOVED"), "it has no record of a trusted key"],
  [managed("20261227194815"), "it has no record of a trusted key"],
  [managed("19700101000000"), "it has no record of a trusted key"],
  [managed("20261127194815", 385), "it has no record of a trusted key"],
  [`. DS 20326 8 2 ${DIGEST}\n`.repeat(101), "it has more than 100 records"],
])("case %# is refused", (text, message) => {
  expect(() => parseTrustAnchors(text, NOW_MS)).toThrow(message);
});
