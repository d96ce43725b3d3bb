/** Transactions with servers of this process, byte by byte and at once, as a check judges them. */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createServer as createTlsServer,
  getCACertificates,
  setDefaultCACertificates,
} from "node:tls";
import { Gate } from "../../../src/gate/gate.ts";
import type { Service } from "../../../src/tools/check/service.ts";
import { type Part, type Through, transact } from "../../../src/tools/check/transaction.ts";
import { makeCertificate } from "../../lab/certificate.ts";
import { describeWith, labMissing, programMissing, testWith } from "../../lab/lab.ts";

const OK = "HTTP/1.1 200 OK\r\n\r\n";

const sized = (length: number, body: string) =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${body}`;

const chunked = (body: string) => `HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n${body}`;

const NOT_WHOLE = { reason: "response-incomplete", finding: "response-incomplete" } as const;

const ROWS: readonly [what: string, bytes: string, expected: Partial<Part>][] = [
  ["a status", OK, { httpStatus: 200, text: "The server answers with status 200.", reason: null }],
  ["a status of HTTP/1.0 without a reason", "HTTP/1.0 204\r\n\r\n", { httpStatus: 204 }],
  ["lines that end as in Unix", "HTTP/1.1 404 No\nX: y\n\n", { httpStatus: 404, reason: null }],
  ["an error", "HTTP/1.1 500 No\r\n\r\n", { httpStatus: 500, reason: "http-error" }],
  ["an unknown method", "HTTP/1.1 501 No\r\n\r\n", { httpStatus: 501, reason: "http-error" }],
  ["early hints before the last", `HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n${OK}`, { httpStatus: 200 }],
  ["another protocol from here on", "HTTP/1.1 101 X\r\n\r\n", { httpStatus: 101 }],
  [
    "a redirect",
    "HTTP/1.1 302 F\r\nServer: x\r\nlocation:/a b\r\n\r\n",
    { text: "The server answers with status 302, and redirects to /a b.", reason: null },
  ],
  ["a status of five digits", "HTTP/1.1 99999 M\r\n\r\n", { reason: "not-http" }],
  ["another version", "HTTP/2 200\r\n\r\n", { reason: "not-http" }],
  ["another protocol", "SSH-2.0-x\r\n", { reason: "not-http" }],
  [
    "only responses before the last",
    "HTTP/1.1 100 Continue\r\n\r\n".repeat(3000),
    { reason: "not-http" },
  ],
  ["a line without an end", `HTTP/1.1 200 ${"x".repeat(70_000)}`, { reason: "not-http" }],
  [
    "nothing, and closes",
    "",
    {
      reason: "http-silent",
      text: "The server closes the connection and does not answer an HTTP request.",
    },
  ],
  ["a body of its length", sized(5, "hello"), { reason: null }],
  ["a body that ends with the connection", `${OK}hello`, { reason: null }],
  [
    "no body where there must be none",
    "HTTP/1.1 204 N\r\nContent-Length: 9\r\n\r\n",
    { reason: null },
  ],
  ["a body in chunks", chunked("5\r\nhello\r\n0\r\n\r\n"), { reason: null }],
  ["chunks with an extension", chunked("5;a=b\r\nhello\r\n0;last\r\n\r\n"), { reason: null }],
  ["a trailer behind the chunks", chunked("5\r\nhello\r\n0\r\nSum: 12\r\n\r\n"), { reason: null }],
  ["chunks of data that looks like the last", chunked("5\r\n0\r\n\r\n\r\n5\r\nhel"), NOT_WHOLE],
  [
    "a body of which only the beginning is read",
    sized(70_000, "x".repeat(66_000)),
    { reason: null },
  ],
  ["a body that is cut", sized(50, "hello"), NOT_WHOLE],
  [
    "a body in chunks that is cut",
    chunked("5\r\nhello\r\n"),
    {
      ...NOT_WHOLE,
      text: "The server answers with status 200. Only 5 bytes of the body came, and then the connection ended.",
    },
  ],
];

/** The bytes that the server sends, and whether each by itself. */
let [answer, isDripped] = ["", false];
let server: Server;

beforeAll(async () => {
  if (labMissing !== null) return;
  server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", async () => {
      for (const piece of isDripped ? answer.split("") : [answer]) {
        socket.write(piece);
        if (isDripped) await Bun.sleep(0);
      }
      socket.end();
    });
  });
  await new Promise<void>((resolve) => void server.listen(80, "::1", resolve));
});

afterAll(() => void server?.close());

const SERVICE = { ip: "::1", port: 80, name: null, isTls: false };

async function partsOf(
  service: Service,
  depth: Through["depth"] = "body",
  more: Partial<Through> = {},
) {
  const { signal } = new AbortController();
  const parts: Part[] = [];
  const through = { gate: new Gate(), caller: { client: "" }, signal, depth, ...more };
  const location = (await transact(service, through, (part) => parts.push(part)))?.to;
  return { parts, location, kinds: parts.map(({ kind, reason }) => `${kind} ${reason}`) };
}

testWith(labMissing).each([...ROWS])("%s", async (_, bytes, expected) => {
  for (const dripped of bytes.length < 200 ? [false, true] : [false]) {
    [answer, isDripped] = [bytes, dripped];
    const { parts } = await partsOf(SERVICE);
    expect(parts.map(({ kind }) => kind)).toEqual(["connect", "request"]);
    expect(parts[0]).toMatchObject({ reason: null });
    expect(parts[1]).toMatchObject(expected);
  }
});

testWith(labMissing)("a proxy of the environment is not asked", async () => {
  const before = process.env["http_proxy"];
  process.env["http_proxy"] = "http://[::1]:1";
  [answer, isDripped] = [OK, false];
  try {
    expect((await partsOf(SERVICE)).kinds).toEqual(["connect null", "request null"]);
  } finally {
    if (before === undefined) delete process.env["http_proxy"];
    else process.env["http_proxy"] = before;
  }
});

testWith(labMissing)(
  "a transaction goes as far as is wanted, and ends behind the head without a body",
  async () => {
    [answer, isDripped] = [sized(50, "hello"), false];
    expect((await partsOf(SERVICE, "connect")).kinds).toEqual(["connect null"]);
    expect((await partsOf(SERVICE, "request")).kinds).toEqual(["connect null", "request null"]);
  },
);

testWith(labMissing)("a redirect's request has worked, wherever it leads", async () => {
  [answer, isDripped] = ["HTTP/1.1 301 M\r\nLocation: https://x.example/\r\n\r\n", false];
  const followed: string[] = [];
  const { parts, location } = await partsOf(SERVICE, "request", {
    async follow({ to }) {
      followed.push(to);
      return { finding: "redirect-broken", text: "It redirects to nowhere." };
    },
  });
  expect([location, ...followed]).toEqual(["https://x.example/", "https://x.example/"]);
  expect(parts[1]).toMatchObject({ reason: null, finding: "redirect-broken", httpStatus: 301 });
});

testWith(labMissing)(
  "a port that is closed refuses, and an address without a way is not sent to",
  async () => {
    expect((await partsOf({ ...SERVICE, port: 81 })).kinds).toEqual(["connect refused"]);
    expect((await partsOf({ ...SERVICE, ip: "2001:db9::1" })).kinds).toEqual(["connect not-sent"]);
  },
);

testWith(labMissing)(
  "a body that comes slowly comes, and one that stands still does not",
  async () => {
    const slow = createServer((socket) => {
      let left = 100;
      socket.on("error", () => {}).on("data", () => socket.write(sized(100, "x")));
      const timer = setInterval(() => left-- > 0 && socket.write("x"), 100);
      socket.on("close", () => clearInterval(timer));
    });
    const still = createServer((socket) => {
      socket.on("error", () => {}).on("data", () => socket.write(sized(100, "hello")));
    });
    await Promise.all([
      new Promise<void>((resolve) => void slow.listen(8081, "::1", resolve)),
      new Promise<void>((resolve) => void still.listen(8082, "::1", resolve)),
    ]);
    try {
      const [slowly, never] = await Promise.all(
        [8081, 8082].map((port) => partsOf({ ...SERVICE, port })),
      );
      expect(slowly?.kinds).toEqual(["connect null", "request null"]);
      expect(never?.parts[1]).toMatchObject({
        ...NOT_WHOLE,
        text: "The server answers with status 200. Only 5 of 100 bytes of the body came, and then nothing for 4 seconds.",
      });
    } finally {
      for (const each of [slow, still]) each.close();
    }
  },
);

testWith(labMissing)("what is cut is not told", async () => {
  const client = new AbortController();
  const tarpit = Bun.listen({
    hostname: "::1",
    port: 8080,
    socket: { data: () => client.abort() },
  });
  try {
    const parts: Part[] = [];
    const through = { gate: new Gate(), caller: { client: "" }, signal: client.signal };
    const service = { ...SERVICE, port: 8080 };
    const given = transact(service, { ...through, depth: "request" }, (part) => parts.push(part));
    await expect(given).rejects.toMatchObject({ name: "AbortError" });
    expect(parts.map(({ kind }) => kind)).toEqual(["connect"]);
  } finally {
    tarpit.stop(true);
  }
});

describeWith(labMissing ?? programMissing("openssl"))("over TLS", () => {
  const NAME = "own.example";
  let folder: string;
  let pem: { cert: string; key: string };
  const service = { ip: "::1", port: 443, name: NAME, isTls: true };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "sixscope-transaction-"));
    const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
    await makeCertificate({
      commonName: NAME,
      alternatives: `DNS:${NAME}`,
      days: 30,
      certFile,
      keyFile,
    });
    pem = { cert: await readFile(certFile, "utf8"), key: await readFile(keyFile, "utf8") };
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  const PLAIN: Service = { ...service, port: 80, isTls: false };

  /** What comes of a server that speaks HTTP/2 alone, and whose certificate is trusted. */
  async function overHttp2(respond: (stream: ServerHttp2Stream) => void) {
    const http2 = createSecureServer({ ...pem, allowHTTP1: false });
    http2.on("stream", (stream: ServerHttp2Stream) => {
      stream.on("error", () => {});
      respond(stream);
    });
    http2.on("session", (session) => session.on("error", () => {}));
    await new Promise<void>((resolve) => void http2.listen(443, "::1", resolve));
    try {
      setDefaultCACertificates([pem.cert]);
      return await partsOf(service);
    } finally {
      setDefaultCACertificates(getCACertificates("bundled"));
      http2.close();
    }
  }

  testWith()("a server that requires a certificate ends the connection by TLS", async () => {
    const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
    const options = ["-accept", "[::1]:443", "-cert", certFile, "-key", keyFile, "-Verify", "1"];
    const child = Bun.spawn(["openssl", "s_server", "-6", ...options, "-www"], {
      ...{ stdin: "ignore", stdout: "pipe", stderr: "ignore" },
    });
    try {
      setDefaultCACertificates([pem.cert]);
      const output = child.stdout.getReader();
      let text = "";
      while (!text.includes("ACCEPT")) text += Buffer.from((await output.read()).value ?? []);
      expect((await partsOf(service, "request")).parts.at(-1)).toMatchObject({
        ...{ kind: "request", reason: "tls-failed" },
        text: "The server ends the TLS connection (TLS alert: certificate required).",
      });
    } finally {
      setDefaultCACertificates(getCACertificates("bundled"));
      child.kill();
      await child.exited;
    }
  });

  testWith().each<[string, (stream: ServerHttp2Stream) => void, object]>([
    [
      "a response",
      (stream) => {
        stream.respond({ ":status": 200 });
        stream.end("hello");
      },
      { reason: null, httpStatus: 200 },
    ],
    [
      "a redirect",
      (stream) => stream.respond({ ":status": 301, location: "/x" }, { endStream: true }),
      { reason: null, text: "The server answers with status 301, and redirects to /x." },
    ],
    [
      "no body where there must be none",
      (stream) => stream.respond({ ":status": 304, "content-length": 9 }, { endStream: true }),
      { reason: null, httpStatus: 304 },
    ],
    [
      "a body that is cut",
      (stream) => {
        stream.respond({ ":status": 200, "content-length": 500 });
        stream.write("hello");
        setTimeout(() => stream.close(2), 20);
      },
      NOT_WHOLE,
    ],
    ["a stream that is refused", (stream) => stream.close(7), { reason: "http-silent" }],
  ])("HTTP/2 has %s", async (_, respond, expected) => {
    const { parts } = await overHttp2(respond);
    expect(parts.map(({ kind }) => kind)).toEqual(["connect", "handshake", "request"]);
    expect(parts[2]).toMatchObject(expected);
  });

  testWith()("a certificate that browsers refuse ends the transaction", async () => {
    const listener = createTlsServer(pem, () => {});
    await new Promise<void>((resolve) => void listener.listen(443, "::1", resolve));
    try {
      const { parts } = await partsOf(service);
      expect(parts.map(({ kind, reason }) => `${kind} ${reason}`)).toEqual([
        "connect null",
        "handshake certificate-untrusted",
      ]);
      expect(parts[1]?.chain).toHaveLength(1);
      expect(parts[1]?.certificate).toMatchObject({ issuer: NAME });
      expect(parts[1]?.certificate?.sha256).toMatch(/^[0-9a-f]{64}$/);
    } finally {
      listener.close();
    }
  });

  testWith()("a server that speaks no TLS has opened its connection", async () => {
    [answer, isDripped] = [OK, false];
    const { kinds } = await partsOf({ ...PLAIN, isTls: true });
    expect(kinds).toEqual(["connect null", "handshake not-tls"]);
  });
});
