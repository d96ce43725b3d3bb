/** Certificates of the laboratory, good and bad ones, and the authority that has signed most of them. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeCertificate } from "../../lab/certificate.ts";
import { run } from "../../lab/run.ts";

const DAY_MS = 86_400_000;

/** A certificate for these names, valid from and to this day from now. */
interface Wish {
  readonly names: readonly string[];
  readonly days: readonly [from: number, to: number];
  /** The certificate that signs it, in place of the authority's own. */
  readonly signer?: string;
  /** What the server sends behind it. */
  readonly sends?: string;
  /** True if it may sign others. */
  readonly isSigner?: boolean;
  /** The key; an RSA key and a signature by it are larger. */
  readonly key?: readonly string[];
}

const EC = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];

/** The names under which the sites of the laboratory are. */
const OURS = ["*.check.example", "*.secure.example", "*.bogus.example"];

/** Names of a certificate that takes several packets. */
const MANY = Array.from({ length: 200 }, (_, at) => `site${at}.a-long-name.check.example`);

const WISHES = {
  good: { names: OURS, days: [-10, 80] },
  soon: { names: OURS, days: [-80, 5] },
  expired: { names: OURS, days: [-90, -3] },
  early: { names: OURS, days: [4, 90] },
  other: { names: ["www.other.example"], days: [-10, 80] },
  large: { names: [...OURS, ...MANY], days: [-10, 80], key: ["rsa:2048"] },
  between: { names: ["between.example"], days: [-100, 200], isSigner: true },
  "old-between": { names: ["old.example"], days: [-100, -3], isSigner: true },
  chain: { names: OURS, days: [-10, 80], signer: "between", sends: "between" },
  "chain-missing": { names: OURS, days: [-10, 80], signer: "between" },
  "chain-expired": { names: OURS, days: [-10, 80], signer: "old-between", sends: "old-between" },
} as const satisfies Readonly<Record<string, Wish>>;

/** The certificates: `own` signs itself. */
export type CertificateKind = keyof typeof WISHES | "own";

const fileOf = (folder: string, kind: string, end: "crt" | "key") => join(folder, `${kind}.${end}`);

/** The lines of nginx for a certificate. */
export const certificateLines = (folder: string, kind: CertificateKind) =>
  `ssl_certificate ${fileOf(folder, kind, "crt")}; ssl_certificate_key ${fileOf(folder, kind, "key")};`;

/** The day as `openssl ca` takes it. */
const stampOf = (days: number) =>
  `${new Date(Date.now() + days * DAY_MS).toISOString().slice(2, 19).replace(/[-:T]/g, "")}Z`;

/** Makes all certificates in a folder, and returns the file of the authority's own. */
export async function makeCertificates(folder: string): Promise<string> {
  const authority = { certFile: fileOf(folder, "ca", "crt"), keyFile: fileOf(folder, "ca", "key") };
  const own = { certFile: fileOf(folder, "own", "crt"), keyFile: fileOf(folder, "own", "key") };
  await Promise.all([
    makeCertificate({ commonName: "Laboratory", days: 400, ...authority }),
    makeCertificate({
      commonName: "own.check.example",
      alternatives: OURS.map((name) => `DNS:${name}`).join(),
      days: 90,
      ...own,
    }),
  ]);
  const sign = async (kind: string, wish: Wish) => {
    const { names, days, key = EC, signer, sends, isSigner = false } = wish;
    const signing =
      signer === undefined
        ? authority
        : { certFile: fileOf(folder, signer, "crt"), keyFile: fileOf(folder, signer, "key") };
    const home = join(folder, kind);
    await mkdir(home);
    const [settings, request] = [join(home, "ca.conf"), join(home, "request")];
    await Bun.write(join(home, "index"), "");
    await Bun.write(
      settings,
      `[ca]\ndefault_ca = lab\n[lab]\ndatabase = ${home}/index\nnew_certs_dir = ${home}
certificate = ${signing.certFile}\nprivate_key = ${signing.keyFile}\ndefault_md = sha256\nrand_serial = yes
policy = any\ncopy_extensions = copy\n[any]\ncommonName = supplied\n`,
    );
    const subject = ["-subj", `/CN=${names[0]}`];
    const alternatives = `subjectAltName=${names.map((name) => `DNS:${name}`).join()}`;
    await run([
      ...["openssl", "req", "-new", "-nodes", "-newkey", ...key, ...subject],
      ...[
        "-addext",
        alternatives,
        "-addext",
        `basicConstraints=critical,CA:${isSigner}`,
        "-keyout",
        fileOf(folder, kind, "key"),
        "-out",
        request,
      ],
    ]);
    await run([
      ...["openssl", "ca", "-batch", "-notext", "-config", settings],
      ...["-startdate", stampOf(days[0]), "-enddate", stampOf(days[1])],
      ...["-in", request, "-out", fileOf(folder, kind, "crt")],
    ]);
    if (sends === undefined) return;
    const files = [kind, sends].map((each) => Bun.file(fileOf(folder, each, "crt")).text());
    await Bun.write(fileOf(folder, kind, "crt"), (await Promise.all(files)).join(""));
  };
  const wishes: [string, Wish][] = Object.entries(WISHES);
  await Promise.all(wishes.filter(([, { signer }]) => !signer).map((wish) => sign(...wish)));
  await Promise.all(wishes.filter(([, { signer }]) => signer).map((wish) => sign(...wish)));
  return authority.certFile;
}
