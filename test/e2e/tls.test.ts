/** HTTPS by the service itself: protocol versions and the renewal of certificates. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { makeCertificate } from "../lab/certificate.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";

const missing = labMissing ?? programMissing("openssl");
const tlsTest = testWith(missing);
const curlTest = testWith(missing, programMissing("curl"));
const wrkTest = testWith(missing, programMissing("wrk"));

/** Between two requests of a client, so that many clients leave something of the machine to others. */
const PAUSE_MS = 20;

let folder: string;
let service: Service;
const file = (name: string) => join(folder, name);

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-tls-"));
  for (const name of ["first", "second"]) {
    const files = { certFile: file(`${name}.pem`), keyFile: file(`${name}.key`) };
    await makeCertificate({ commonName: name, days: 2, ...files });
  }
  service = await start();
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** Puts a certificate and its key at the paths that a service follows. */
function use(name: string, prefix = ""): void {
  copyFileSync(file(`${name}.pem`), file(`${prefix}cert.pem`));
  copyFileSync(file(`${name}.key`), file(`${prefix}key.pem`));
}

/** Starts a service with the first pair; a prefix gives it its own files. */
async function start(prefix = ""): Promise<Service> {
  use("first", prefix);
  return await startService({
    SIXSCOPE_TLS_CERT: file(`${prefix}cert.pem`),
    SIXSCOPE_TLS_KEY: file(`${prefix}key.pem`),
    SIXSCOPE_RATE_ANONYMOUS: "10000000",
    SIXSCOPE_RATE_PREFIX: "0",
  });
}

const get = (path: string) =>
  fetch(service.url + path, { tls: { rejectUnauthorized: false }, keepalive: false });

curlTest("the request that it suggests at the start works as printed", async () => {
  const [example = ""] = service.startLines.slice(-1);
  expect(example).toStartWith("next, try a request: curl ");
  const command = example.replace("next, try a request: ", "");
  expect(await run(["sh", "-ec", command])).toContain('"valid":true');
});

async function connectTo({ url }: Service): Promise<TLSSocket> {
  const { hostname, port } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = { host: hostname, port: Number(port), rejectUnauthorized: false };
  const socket = connect(options, resolve).on("error", reject);
  await promise;
  return socket;
}

/** Sends a request on a connection, which stays open, and returns the whole response. */
async function ask(socket: TLSSocket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let answer = "";
  const take = (chunk: Buffer) => {
    answer += chunk;
    if (answer.endsWith("}")) resolve();
  };
  const fail = () => reject(new Error(`closed after "${answer}"`));
  socket.on("data", take).on("close", fail);
  socket.write("GET /api/v1/myip HTTP/1.1\r\nHost: x\r\n\r\n");
  await promise;
  socket.off("data", take).off("close", fail);
  return answer;
}

/** The common name of the certificate that a new connection gets. */
async function servedName(by = service): Promise<string> {
  const socket = await connectTo(by);
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.end();
  return name;
}

async function nameBecomes(name: string, by = service): Promise<void> {
  while ((await servedName(by)) !== name) await Bun.sleep(50);
}

describe("HTTPS", () => {
  tlsTest("is what every TCP listener speaks, with Strict-Transport-Security", async () => {
    expect(service.urls.map((url) => new URL(url).protocol)).toEqual(["https:", "https:"]);
    const response = await get("/myip");
    expect(response.status).toBe(200);
    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
  });

  tlsTest("does not share its port: a second service reports that it is in use", async () => {
    const { status, stderr } = await sixscope([], {
      SIXSCOPE_LISTEN: new URL(service.url).host,
      SIXSCOPE_TLS_CERT: file("cert.pem"),
      SIXSCOPE_TLS_KEY: file("key.pem"),
    });
    expect(status).toBe(1);
    expect(stderr).toContain("cannot listen on");
  });

  tlsTest("does not answer plain HTTP", async () => {
    await expect(fetch(service.url.replace("https:", "http:"))).rejects.toThrow();
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
    const said = await new Response(handshake.stdout).text();
    expect(said.includes("Cipher is (NONE)")).toBe(!works);
  });

  tlsTest(
    "ignores forwarding headers of an untrusted peer, and logs once which setting changes that",
    async () => {
      for (const address of ["192.0.2.1", "192.0.2.2"]) {
        const response = await fetch(`${service.url}/myip`, {
          tls: { rejectUnauthorized: false },
          headers: { "X-Forwarded-For": address },
        });
        expect(await response.json()).toMatchObject({ ip: "127.0.0.1" });
      }
      await service.says("SIXSCOPE_TRUSTED_PROXIES");
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
          await Bun.sleep(PAUSE_MS);
        }
      });
      for (const name of ["second", "first"]) {
        use(name);
        await nameBecomes(name);
        // While two servers share the port, the old one gets no connection.
        for (let times = 0; times < 20; times++) expect(await servedName()).toBe(name);
      }
      running = false;
      await Promise.all(clients);
      expect([...statuses.keys()]).toEqual([200]);
    },
  );

  tlsTest("tells connected clients to open a new connection", async () => {
    await using own = await start("own-");
    const socket = await connectTo(own);
    const closed = once(socket, "close");
    expect(await ask(socket)).not.toMatch(/connection: close/i);
    use("second", "own-");
    await nameBecomes("second", own);
    const answer = await ask(socket);
    expect(answer).toStartWith("HTTP/1.1 200 ");
    expect(answer).toMatch(/connection: close/i);
    await closed;
  });

  wrkTest("fails no request of wrk, whose connections stay open", async () => {
    await using own = await start("own-");
    writeFileSync(file("pace.lua"), `function delay() return ${PAUSE_MS} end`);
    const options = ["-t1", "-c16", "-d1h", "--timeout", "60s", "-s", file("pace.lua")];
    const wrk = Bun.spawn(["wrk", ...options, `${own.url}/myip`], { stdout: "pipe" });
    const { port } = new URL(own.url);
    const listening = async () =>
      (await run(["ss", "-Hltn", `sport = :${port}`])).trim().split("\n").length;
    await own.says(" msg=request ");
    use("second", "own-");
    await nameBecomes("second", own);
    // The old server has stopped, and each client has asked since.
    while ((await listening()) > 1) await Bun.sleep(100);
    const requests = () => own.stderr().split(" msg=request ").length;
    const before = requests();
    while (requests() < before + 500) await Bun.sleep(100);
    wrk.kill("SIGINT");
    const report = await new Response(wrk.stdout).text();
    expect(report).toMatch(/[1-9]\d* requests in/);
    expect(report).not.toMatch(/Socket errors|Non-2xx/);
    expect(own.stderr().match(/new certificate in use/g)).toHaveLength(own.urls.length);
  });

  tlsTest(
    "keeps the old certificate if the new files cannot be used, and logs an error",
    async () => {
      use("first");
      await nameBecomes("first");
      writeFileSync(file("cert.pem"), "no certificate");
      await service.says("is not a certificate in PEM");
      expect(await servedName()).toBe("first");
      copyFileSync(file("second.pem"), file("cert.pem"));
      await service.says("does not belong to the certificate");
      expect(await servedName()).toBe("first");
      rmSync(file("key.pem"));
      await service.says("cannot read the key");
      expect(await servedName()).toBe("first");
      use("second");
      await nameBecomes("second");
    },
  );

  tlsTest("does not start with files that cannot be used: status 2", async () => {
    const { status, stderr } = await sixscope([], {
      SIXSCOPE_TLS_CERT: file("first.pem"),
      SIXSCOPE_TLS_KEY: file("second.key"),
    });
    expect(status).toBe(2);
    expect(stderr).toContain("does not belong to the certificate");
  });
});
