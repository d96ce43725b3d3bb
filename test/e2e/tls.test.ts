/** HTTPS by the service itself: what it speaks, and how certificates are renewed. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("openssl");
const tlsTest = testWith(missing);

let folder: string;
let service: Service;
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-tls-"));
  for (const name of ["first", "second"]) {
    // biome-ignore format: one command
    await run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
      "-subj", `/CN=${name}`, "-keyout", file(`${name}.key`), "-out", file(`${name}.pem`)]);
  }
  use("first");
  service = await startService({
    SIXSCOPE_TLS_CERT: file("cert.pem"),
    SIXSCOPE_TLS_KEY: file("key.pem"),
    SIXSCOPE_RATE_ANONYMOUS: "10000000",
    SIXSCOPE_RATE_PREFIX: "0",
  });
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Puts a pair of certificate and key where the service looks. */
function use(name: string): void {
  copyFileSync(file(`${name}.pem`), file("cert.pem"));
  copyFileSync(file(`${name}.key`), file("key.pem"));
}

const get = (path: string) =>
  fetch(service.url + path, { tls: { rejectUnauthorized: false }, keepalive: false });

/** The common name of the certificate that a new connection is shown. */
async function servedName(): Promise<string> {
  const { hostname, port } = new URL(service.url);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.end();
  }).on("error", reject);
  return await promise;
}

async function nameBecomes(name: string): Promise<void> {
  while ((await servedName()) !== name) await Bun.sleep(50);
}

async function logHas(text: string): Promise<void> {
  while (!service.stderr().includes(text)) await Bun.sleep(20);
}

describe("HTTPS", () => {
  tlsTest("is what every TCP listener speaks, with Strict-Transport-Security", async () => {
    expect(service.urls.map((url) => new URL(url).protocol)).toEqual(["https:", "https:"]);
    const response = await get("/myip");
    expect(response.status).toBe(200);
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
  });

  tlsTest("has its port for itself: a second service is told so", async () => {
    const { status, stderr } = await sixscope([], {
      SIXSCOPE_LISTEN: new URL(service.url).host,
      SIXSCOPE_TLS_CERT: file("cert.pem"),
      SIXSCOPE_TLS_KEY: file("key.pem"),
    });
    expect(status).toBe(1);
    expect(stderr).toContain("cannot listen on");
  });

  tlsTest("is not taken for plain HTTP", async () => {
    expect(fetch(service.url.replace("https:", "http:"))).rejects.toThrow();
  });

  tlsTest.each([
    ["-tls1_1", false],
    ["-tls1_2", true],
    ["-tls1_3", true],
  ])("with %s works: %p", async (version, works) => {
    const { host } = new URL(service.url);
    const handshake = Bun.spawn(
      ["openssl", "s_client", "-connect", host, version, "-cipher", "ALL:@SECLEVEL=0"],
      { stdin: "ignore", stdout: "pipe", stderr: "ignore" },
    );
    const said = await handshake.stdout.text();
    expect(said.includes("Cipher is (NONE)")).toBe(!works);
  });

  tlsTest(
    "ignores forwarding headers of a stranger, and says once which setting would change that",
    async () => {
      for (const address of ["192.0.2.1", "192.0.2.2"]) {
        const response = await fetch(`${service.url}/myip`, {
          tls: { rejectUnauthorized: false },
          headers: { "X-Forwarded-For": address },
        });
        expect(await response.json()).toMatchObject({ ip: "127.0.0.1" });
      }
      await logHas("SIXSCOPE_TRUSTED_PROXIES");
      expect(service.stderr().match(/SIXSCOPE_TRUSTED_PROXIES/g)).toHaveLength(1);
    },
  );
});

describe("renewal", () => {
  tlsTest(
    "serves a renewed certificate without a restart and without a failed request",
    async () => {
      let running = true;
      const statuses = new Map<number | string, number>();
      const clients = Array.from({ length: 8 }, async () => {
        while (running) {
          const outcome = await get("/myip").then(
            ({ status }) => status,
            (error: unknown) => String(error),
          );
          statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
        }
      });
      for (const name of ["second", "first"]) {
        use(name);
        await nameBecomes(name);
      }
      running = false;
      await Promise.all(clients);
      expect([...statuses.keys()]).toEqual([200]);
    },
    30_000,
  );

  tlsTest(
    "does not fail a request of wrk, whose connections stay open",
    async () => {
      const load = run(["wrk", "-t1", "-c16", "-d3s", `${service.url}/myip`]);
      for (const name of ["first", "second"]) {
        await Bun.sleep(700);
        use(name);
      }
      const report = await load;
      expect(report).toMatch(/[1-9]\d* requests in/);
      expect(report).not.toMatch(/Socket errors|Non-2xx/);
    },
    30_000,
  );

  tlsTest(
    "keeps the old certificate where the new files are broken, and logs an error",
    async () => {
      use("first");
      await nameBecomes("first");
      writeFileSync(file("cert.pem"), "no certificate");
      await logHas("is no certificate in PEM");
      expect(await servedName()).toBe("first");
      copyFileSync(file("second.pem"), file("cert.pem"));
      await logHas("does not belong to the certificate");
      expect(await servedName()).toBe("first");
      rmSync(file("key.pem"));
      await logHas("cannot read the key");
      expect(await servedName()).toBe("first");
      use("second");
      await nameBecomes("second");
    },
    30_000,
  );

  tlsTest("files that cannot be used prevent the start: status 2", async () => {
    const { status, stderr } = await sixscope([], {
      SIXSCOPE_TLS_CERT: file("first.pem"),
      SIXSCOPE_TLS_KEY: file("second.key"),
    });
    expect(status).toBe(2);
    expect(stderr).toContain("does not belong to the certificate");
  });
});
