/** Resolvers over TLS whose certificates are not valid: what doctor and a look-up say of each, and what to do. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server } from "node:tls";
import { makeCertificate } from "../lab/certificate.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { sixscope } from "../lab/service.ts";

const missing = labMissing ?? programMissing("openssl");
const tlsTest = testWith(missing);

const folder = mkdtempSync(join(tmpdir(), "sixscope-certificates-"));
const servers: Server[] = [];
const queries: string[] = [];
/** The server with each certificate. */
const at: Record<string, string> = {};
const authorities = join(folder, "authorities.pem");

/** Makes a certificate that signs itself and was or will be valid for a day, by `openssl ca`. */
async function makeDatedCertificate(day: string, certFile: string, keyFile: string) {
  const file = (name: string) => join(folder, name);
  writeFileSync(file("index.txt"), "");
  writeFileSync(
    file("ca.cnf"),
    `[ca]\ndefault_ca=own\n[own]\ndatabase=${file("index.txt")}\nrand_serial=yes\nnew_certs_dir=${folder}
policy=any\ndefault_md=sha256\nx509_extensions=names\n[any]\ncommonName=supplied\n[names]\nsubjectAltName=IP:::1\n`,
  );
  const key = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    keyFile,
  ];
  await run(["openssl", "req", "-new", ...key, "-subj", "/CN=dated", "-out", file("dated.csr")]);
  const dates = ["-startdate", `${day}000000Z`, "-enddate", `${day}235959Z`];
  const self = ["-batch", "-notext", "-selfsign", "-keyfile", keyFile, "-config", file("ca.cnf")];
  await run(["openssl", "ca", ...self, ...dates, "-in", file("dated.csr"), "-out", certFile]);
}

beforeAll(async () => {
  if (missing !== null) return;
  const make = {
    untrusted: (certFile: string, keyFile: string) =>
      makeCertificate({ commonName: "x", alternatives: "IP:::1", days: 2, certFile, keyFile }),
    misnamed: (certFile: string, keyFile: string) =>
      makeCertificate({
        commonName: "x",
        alternatives: "DNS:dns.example",
        days: 2,
        certFile,
        keyFile,
      }),
    expired: (certFile: string, keyFile: string) =>
      makeDatedCertificate("20200101", certFile, keyFile),
    early: (certFile: string, keyFile: string) =>
      makeDatedCertificate("20990101", certFile, keyFile),
  };
  let trusted = "";
  for (const [name, makeIt] of Object.entries(make)) {
    const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
    await makeIt(certFile, keyFile);
    const cert = readFileSync(certFile);
    if (name !== "untrusted") trusted += cert;
    const server = createServer({ cert, key: readFileSync(keyFile) }, (socket) => {
      socket.on("data", () => queries.push(name));
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    servers.push(server);
    at[name] = `tls://[::1]:${(server.address() as { port: number }).port}`;
  }
  writeFileSync(authorities, trusted);
});

afterAll(() => {
  for (const server of servers) server.close();
  rmSync(folder, { recursive: true });
});

const CLOCK = "check the clock of this machine; if it is right, tell the operator of the server";
const TRUST = "set NODE_EXTRA_CA_CERTS to the PEM file of its certificate's authority";

const ROWS: readonly [name: string, fault: string, advice: string][] = [
  ["untrusted", "its certificate is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT over TLS)", TRUST],
  [
    "misnamed",
    "its certificate is for other names (ERR_TLS_CERT_ALTNAME_INVALID over TLS)",
    "write the name in the certificate behind the address: tls://192.0.2.1#dns.example",
  ],
  ["expired", "its certificate has expired (CERT_HAS_EXPIRED over TLS)", CLOCK],
  ["early", "its certificate is not valid yet (CERT_NOT_YET_VALID over TLS)", CLOCK],
];

describe("a certificate that is not valid", () => {
  tlsTest("is named by doctor, for each resolver, with what to do", async () => {
    for (const three of [ROWS.slice(0, 3), ROWS.slice(1)]) {
      const settings = Object.fromEntries(
        three.map(([name], nth) => [`SIXSCOPE_RESOLVER_${"ABC"[nth]}`, at[name] ?? ""]),
      );
      const environment = { ...settings, NODE_EXTRA_CA_CERTS: authorities };
      const { stdout, status } = await sixscope(["doctor"], environment);
      expect(status).toBe(1);
      const lines = stdout.split("\n");
      for (const [nth, [name, fault, advice]] of three.entries()) {
        const tried = `ask resolver_${"abc"[nth]} over IPv6 (${at[name]})`;
        const line = lines.find((each) => each.includes(tried)) ?? "";
        expect(line).toStartWith(`problem  ${tried}: ${fault}; `);
        expect(line).toContain(advice);
      }
    }
    expect(queries).toEqual([]);
  });

  tlsTest.each(ROWS.slice(0, 1))("is named by a look-up", async (name, fault) => {
    const { stderr, status } = await sixscope(["dns", "www.test", `@${at[name]}`]);
    expect(status).toBe(1);
    expect(stderr).toBe(
      `sixscope: ${at[name]} could not be reached for "www.test" (${at[name]}: ${fault}); try another resolver.\n`,
    );
    expect(queries).toEqual([]);
  });
});
