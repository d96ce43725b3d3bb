/** Servers that want to do harm to whoever checks them: what they send is bounded, and nothing else is asked. */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import type { CheckResult } from "../../../src/tools/check/result.ts";
import { makeCertificate } from "../../lab/certificate.ts";
import { labMissing, programMissing, testWith } from "../../lab/lab.ts";
import { runIp } from "../../lab/run.ts";
import { type Service, startService } from "../../lab/service.ts";
import { type CountingResolver, startResolver } from "./resolver.ts";

const missing = labMissing ?? programMissing("openssl");
const labTest = testWith(missing);

const [HTTP, HTTPS] = [80, 443];

/** A gigabyte in pieces. */
const PIECE = Buffer.alloc(65_536, "x");
const GIGABYTE = 1e9 / PIECE.length;

/** Most of a response that a client may take before it ends the connection, with what the kernel holds. */
const MAX_TAKEN = 32e6;

const ESCAPES = "\u001b[2J\u001b]0;owned\u0007\u009b31m";

/** Writes a piece again and again, as fast as it is read. */
function flood(socket: Socket, piece: Buffer | string, most = GIGABYTE) {
  let left = most;
  const more = () => {
    while (left-- > 0 && !socket.destroyed) if (!socket.write(piece)) return;
  };
  socket.on("drain", more);
  more();
}

/** Writes a byte a second. */
function drip(socket: Socket, bytes: string | Uint8Array) {
  let at = 0;
  const timer = setInterval(() => socket.write(Buffer.from(bytes).subarray(at, ++at)), 1000);
  socket.on("close", () => clearInterval(timer));
}

const redirect = (location: string) => (socket: Socket) =>
  void socket.write(Buffer.from(`HTTP/1.1 301 Moved\r\nLocation: ${location}\r\n\r\n`, "latin1"));

/** Where a redirect must not lead. */
const INSIDE = 8099;

/** The deeds of each server once it is asked for a page on port 80, or for a handshake on port 443. */
const HTTP_SERVERS: Readonly<Record<string, (socket: Socket) => void>> = {
  "drips headers": (socket) => drip(socket, `HTTP/1.1 200 OK\r\nX: ${"x".repeat(1000)}`),
  "sends endless headers": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\n");
    flood(socket, "X-Header: value\r\n".repeat(4000));
  },
  "sends one endless header": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nX-Header: ");
    flood(socket, PIECE);
  },
  "sends a status line of 10 MB": (socket) => {
    socket.write("HTTP/1.1 200 ");
    flood(socket, PIECE, 160);
    socket.write("\r\n\r\n");
  },
  "sends a body of 1 GB": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    flood(socket, PIECE);
  },
  "sends an endless body without a length": (socket) => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    flood(socket, PIECE);
  },
  "says endlessly that it goes on": (socket) => flood(socket, "HTTP/1.1 100 Continue\r\n\r\n"),
  "changes to another protocol": (socket) =>
    void socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
  "answers with status 000": (socket) => void socket.write("HTTP/1.1 000 None\r\n\r\n"),
  "answers with status 99999": (socket) => void socket.write("HTTP/1.1 99999 Many\r\n\r\n"),
  "answers with nonsense": (socket) => flood(socket, Buffer.from(ESCAPES), 1),
  "redirects to itself": redirect("http://redirects-to-itself.hostile.example/"),
  "redirects inside": redirect(`http://127.0.0.1:${INSIDE}/`),
  "redirects to a place of 100 KB": redirect(`http://x.example/${"y".repeat(100_000)}`),
  "redirects to a name of 100 KB": redirect(`http://${"y".repeat(100_000)}.example/`),
  "redirects with control characters": redirect(`http://x.example/${ESCAPES}`),
  "redirects to a name with control characters": redirect(`http://${ESCAPES}.example/`),
  "redirects to a script": redirect("javascript:alert(1)//\u0001"),
};

const TLS_SERVERS: Readonly<Record<string, (socket: Socket) => void>> = {
  "drips a handshake": (socket) =>
    drip(socket, Uint8Array.of(0x16, 3, 3, 0x40, 0, 2, 0, 0x3f, 0xfc, 3, 3)),
  "sends endless records": (socket) =>
    flood(
      socket,
      Buffer.from([0x16, 3, 3, 0x40, 0, 2, 0xff, 0xff, 0xff, ...PIECE.subarray(0, 16_380)]),
    ),
  "sends endless alerts": (socket) =>
    flood(socket, Buffer.alloc(7000, "\x15\x03\x03\x00\x02\x01\x00")),
};

/** Servers with a certificate: one of 1 MB, and one with hostile names. */
const CERTIFICATES = ["shows a certificate of 1 MB", "shows hostile names"] as const;

const CASES = [
  ...Object.keys(HTTP_SERVERS).map((name) => [name, HTTP] as const),
  ...[...Object.keys(TLS_SERVERS), ...CERTIFICATES].map((name) => [name, HTTPS] as const),
];

const nameOf = (name: string) => `${name.replaceAll(" ", "-").toLowerCase()}.hostile.example`;
const ipOf = (name: string) =>
  `2001:db8:6:${(CASES.findIndex(([each]) => each === name) + 1).toString(16)}::1`;

/** Addresses of this machine and its links, behind names that anyone can make. */
const OWN = ["127.0.0.1", "127.8.8.8", "169.254.169.254", "0.0.0.0", "::1"];

let folder: string;
let service: Service;
let resolver: CountingResolver;
/** The counts of each server, by its address and port. */
const seen = new Map<string, { connections: number; heads: number; taken: number }>();
const servers: Server[] = [];
const results = new Map<string, CheckResult>();
let growthBytes: number;
/** The checks of the names that lead to `OWN`, in turns. */
let ownResults: CheckResult[];

const residentBytes = async (field: "VmRSS" | "VmHWM") => {
  const status = await readFile(`/proc/${service.pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
};

async function listen(ip: string, port: number, answer: (socket: Socket) => void, server?: Server) {
  const counts = { connections: 0, heads: 0, taken: 0 };
  seen.set(`${ip} ${port}`, counts);
  const onSocket = (socket: Socket) => {
    counts.connections++;
    socket.on("error", () => {});
    socket.on("close", () => {
      counts.taken = Math.max(counts.taken, socket.bytesWritten);
    });
    socket.once("data", (bytes) => {
      if (bytes.toString("latin1").startsWith("GET ")) counts.heads++;
      answer(socket);
    });
  };
  const listener = server ?? createServer(onSocket);
  await new Promise<void>((resolve) => void listener.listen(port, ip, resolve));
  servers.push(listener);
}

/** A server with a certificate, which answers with status 200. */
function tlsServer(cert: string, key: string): Server {
  return createTlsServer({ cert, key }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
  });
}

async function startCertificateServers() {
  const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
  const make = async (commonName: string, alternatives: string) => {
    await makeCertificate({ ...{ commonName, alternatives, certFile, keyFile }, days: 30 });
    return [await readFile(certFile, "utf8"), await readFile(keyFile, "utf8")] as const;
  };
  const many = Array.from({ length: 500 }, (_, at) => `DNS:${at}.${"n".repeat(50)}.example`);
  const [large, largeKey] = await make("large", many.join());
  const chain = large.repeat(Math.ceil(1e6 / Buffer.from(large, "base64").length));
  const [largeName, hostileName] = CERTIFICATES;
  await listen(ipOf(largeName), HTTPS, () => {}, tlsServer(chain, largeKey));
  const [odd, oddKey] = await make(`${ESCAPES}<script>`, `DNS:${ESCAPES}.example,DNS:*`);
  await listen(ipOf(hostileName), HTTPS, () => {}, tlsServer(odd, oddKey));
}

async function check(name: string, port: number): Promise<CheckResult> {
  const response = await fetch(`${service.url}/check/${name}?port=${port}`, {
    headers: { "X-API-Key": service.key },
  });
  return (await response.json()) as CheckResult;
}

beforeAll(async () => {
  if (missing !== null) return;
  folder = await mkdtemp(join(tmpdir(), "sixscope-hostile-"));
  await runIp([
    ...CASES.map(([name]) => `addr add ${ipOf(name)}/128 dev lo nodad`),
    "addr add 2001:db8:6:ffff::1/128 dev lo nodad",
    "addr add 169.254.169.254/32 dev lo",
  ]);
  for (const [name, answer] of Object.entries(HTTP_SERVERS)) await listen(ipOf(name), HTTP, answer);
  for (const [name, answer] of Object.entries(TLS_SERVERS)) await listen(ipOf(name), HTTPS, answer);
  await startCertificateServers();
  for (const port of [HTTP, HTTPS, INSIDE]) {
    await listen("0.0.0.0", port, () => {});
    await listen("::1", port, () => {});
  }
  resolver = await startResolver({
    ...Object.fromEntries(CASES.map(([name]) => [nameOf(name), [ipOf(name)]])),
    ...Object.fromEntries(
      OWN.map((ip, at) => [
        `own${at}.example`,
        [ip, ...(ip === "::1" ? [] : ["2001:db8:6:ffff::1"])],
      ]),
    ),
  });
  const anchors = join(folder, "anchors");
  await writeFile(anchors, `elsewhere.example. DS 1 13 2 ${"00".repeat(32)}\n`);
  service = await startService({
    SIXSCOPE_TRUST_ANCHORS: anchors,
    SIXSCOPE_RESOLVER_A: resolver.server,
    SIXSCOPE_RESOLVER_B: resolver.server,
    SIXSCOPE_RESOLVER_C: resolver.server,
    SIXSCOPE_RATE_KEY: "100000",
  });
  // The first checks take what all others use again.
  const checks = Array.from({ length: CASES.length }, (_, at) => `own${at % OWN.length}.example`);
  ownResults = await Promise.all(checks.map((name) => check(name, HTTP)));
  const beforeBytes = await residentBytes("VmRSS");
  await writeFile(`/proc/${service.pid}/clear_refs`, "5");
  await Promise.all(
    CASES.map(async ([name, port]) => void results.set(name, await check(nameOf(name), port))),
  );
  growthBytes = (await residentBytes("VmHWM")) - beforeBytes;
});

afterAll(async () => {
  if (missing !== null) return;
  await service[Symbol.asyncDispose]();
  resolver[Symbol.dispose]();
  for (const server of servers) server.close();
  await rm(folder, { recursive: true, force: true });
});

labTest.each([...CASES])(
  "a server that %s is judged, and asked ten times at most",
  (name, port) => {
    const { details, steps } = results.get(name) as CheckResult;
    expect(steps.map((step) => step.name)).toContain("trace");
    const texts = [details.verdict.text, ...steps.map(({ text }) => text)];
    for (const text of texts) {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
      expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
      expect(text.length).toBeLessThan(1000);
    }
    const { heads, taken } = seen.get(`${ipOf(name)} ${port}`) ?? {};
    // Ten transactions, and a redirect to itself is not followed once more.
    if (port === HTTP) expect(heads).toBeWithin(1, 11);
    expect(taken).toBeLessThan(MAX_TAKEN);
    const asked = resolver.questions.filter((question) => question.startsWith(`${nameOf(name)} `));
    const namesMs = steps.find((step) => step.name === "names")?.ms ?? 0;
    // A question that has no answer after a second is sent again, twice at most.
    const times = namesMs < 1000 ? 1 : 3;
    const count = (type: string) => asked.filter((each) => each.endsWith(` ${type}`)).length;
    expect(count("AAAA")).toBeLessThanOrEqual(times * 4);
    expect(count("A")).toBeLessThanOrEqual(times * 3);
  },
);

labTest("all of them together take less than 96 MB, where one alone sends a gigabyte", () => {
  expect(growthBytes).toBeLessThan(96e6);
});

labTest("a name that leads to this machine or its links is not connected to", () => {
  for (const [at, ip] of OWN.entries()) {
    const { steps } = ownResults[at] as CheckResult;
    const policy = steps.find((step) => step.name === "policy" && step.ip === ip);
    if (ip === "::1") expect(policy?.finding).toBe("not-public");
    expect(steps.filter((step) => step.ip === ip && step.name !== "policy")).toEqual([]);
  }
  const inside = [...seen].filter(([place]) => /^(0\.0\.0\.0|::1) /.test(place));
  expect(inside.map(([, { connections }]) => connections)).toEqual(inside.map(() => 0));
});
