import { run } from "./run.ts";

/** A certificate that is to be made, with its key; both in PEM. */
interface CertificateWish {
  readonly commonName: string;
  /** From now on. */
  readonly days: number;
  readonly certFile: string;
  readonly keyFile: string;
}

/** Makes a certificate that signs itself, by `openssl`. */
export async function makeCertificate({ commonName, days, certFile, keyFile }: CertificateWish) {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const what = ["-days", `${days}`, "-subj", `/CN=${commonName}`];
  await run(["openssl", "req", "-x509", ...key, ...what, "-keyout", keyFile, "-out", certFile]);
}
