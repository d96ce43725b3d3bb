import { run } from "./run.ts";

/** A certificate that is to be made, with its key; both in PEM. */
interface CertificateWish {
  readonly commonName: string;
  /** Names and addresses beside it, as in `DNS:dns.example,IP:::1`. */
  readonly alternatives?: string;
  /** From now on. */
  readonly days: number;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes a certificate that signs itself, by `openssl`. */
export async function makeCertificate({
  commonName,
  alternatives,
  days,
  certFile,
  keyFile,
}: CertificateWish) {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const what = ["-days", `${days}`, "-subj", `/CN=${commonName}`];
  if (alternatives !== undefined) what.push("-addext", `subjectAltName=${alternatives}`);
  await run(["openssl", "req", "-x509", ...key, ...what, "-keyout", keyFile, "-out", certFile]);
}
