import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type Server, type TLSSocket } from "node:tls";
import { createDnsClient, type DnsClient } from "../../../src/dns/client.ts";
import { createQuery, createQuestion } from "../../../src/dns/message/message.ts";
import type { DnsOutcome } from "../../../src/dns/outcome.ts";
import { type DnsServer, tryParseDnsServer } from "../../../src/dns/server.ts";
import { systemSockets } from "../../../src/dns/transport/sockets.ts";
import { frameMessage, MessageStream } from "../../../src/dns/transport/stream.ts";
import { systemClock } from "../../../src/util/clock.ts";
import { makeCertificate } from "../../lab/certificate.ts";
import { type KnotServer, startKnot } from "../../lab/dns-server.ts";
import { programMissing, testWith } from "../../lab/lab.ts";
import { startUnbound, type Unbound } from "../../lab/unbound.ts";
import { FakeClock } from "../../util/fake-clock.ts";
import { aaaa, askedName, replyTo } from "../messages.ts";

const noCertificate = programMissing("openssl");
const noResolver = noCertificate ?? programMissing("knotd") ?? programMissing("unbound");
const testWithTls = testWith(noCertificate);
const testWithUnbound = testWith(noResolver);

const folder = mkdtempSync(join(tmpdir(), "sixscope-encrypted-"));
const certFile = join(folder, "cert.pem");
const keyFile = join(folder, "key.pem");
let ca: string;
let knot: KnotServer | undefined;
let unbound: Unbound | undefined;

beforeAll(async () => {
  if (noCertificate !== null) return;
  const commonName = "dns.example";
  const alternatives = "DNS:dns.example,IP:::1";
  await makeCertificate({ commonName, alternatives, days: 2, certFile, keyFile });
  ca = readFileSync(certFile, "utf8");
  if (noResolver !== null) return;
  const zone =
    "$ORIGIN zone.example.\n$TTL 300\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns AAAA ::1\n* AAAA 2001:db8::1\n";
  knot = await startKnot({ zones: { "zone.example": zone } });
  unbound = await startUnbound({
    zones: ["zone.example"],
    server: knot.endpoint,
    tls: { certFile, keyFile },
  });
});

afterAll(async () => {
  await unbound?.stop();
  await knot?.stop();
  rmSync(folder, { recursive: true });
});

function clientOf(text: string, trusted: string | undefined = ca, clock = systemClock): DnsClient {
  const servers = [tryParseDnsServer(text) as DnsServer];
  return createDnsClient({ servers, clock, sockets: systemSockets(clock, trusted) });
}

describe("unbound", () => {
  const url = (scheme: string, name = "") =>
    scheme === "tls"
      ? `tls://[::1]:${unbound?.tlsPort}${name}`
      : `https://[::1]:${unbound?.httpsPort}/dns-query${name}`;

  testWithUnbound.each([
    ["tls", "by its address", ""],
    ["tls", "by its name", "#dns.example"],
    ["https", "by its address", ""],
    ["https", "by its name", "#dns.example"],
  ])("over %s, known %s", async (scheme, _, name) => {
    const server = url(scheme, name);
    expect(await clientOf(server).query("www.zone.example", "AAAA")).toMatchObject({
      kind: "answer",
      records: [{ type: "AAAA", value: "2001:db8::1" }],
      server,
      transport: scheme as never,
    });
  });

  testWithUnbound.each(["tls", "https"])("200 queries at once over %s", async (scheme) => {
    const client = clientOf(url(scheme));
    const all = Array.from({ length: 200 }, (_, at) =>
      client.query(`n${at}.zone.example`, "AAAA", { timeoutMs: 50_000 }),
    );
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(Array(200).fill("answer"));
  });

  testWithUnbound.each([
    ["tls", "another name", "#other.example", "ERR_TLS_CERT_ALTNAME_INVALID over TLS"],
    ["https", "another name", "#other.example", "ERR_TLS_CERT_ALTNAME_INVALID over HTTPS"],
  ])("over %s, with a certificate of %s: no query is sent", async (scheme, _, name, outcome) => {
    expect(await clientOf(url(scheme, name)).query("a.zone.example", "A")).toMatchObject({
      kind: "unreachable",
      attempts: [{ outcome }],
    });
  });

  testWithUnbound.each(["tls", "https"])(
    "over %s, with a certificate that is not trusted: no query is sent",
    async (scheme) => {
      const client = createDnsClient({ servers: [tryParseDnsServer(url(scheme)) as DnsServer] });
      expect(await client.query("a.zone.example", "A")).toMatchObject({
        kind: "unreachable",
        reason: expect.stringMatching(/SELF_SIGNED|UNABLE_TO_VERIFY/),
      });
    },
  );

  testWithUnbound("HTTPS at a path without DNS is unreachable", async () => {
    const client = clientOf(`https://[::1]:${unbound?.httpsPort}/elsewhere`);
    expect(await client.query("a.zone.example", "A")).toMatchObject({
      attempts: [{ transport: "https", outcome: "HTTP_404 over HTTPS" }],
    });
  });
});

describe("a connection over TLS", () => {
  let server: Server;
  let connections: TLSSocket[] = [];
  let queries: { readonly query: Uint8Array; readonly answer: () => void }[] = [];

  afterEach(() => {
    for (const connection of connections) connection.destroy();
    connections = [];
    queries = [];
    server?.close();
  });

  /** A server that answers when the test says so. */
  async function start(): Promise<string> {
    server = createServer({ cert: ca, key: readFileSync(keyFile) }, (connection) => {
      connections.push(connection);
      const stream = new MessageStream();
      connection.on("error", () => {});
      connection.on("data", (bytes: Uint8Array) => {
        for (const part of stream.add(bytes)) {
          const query = part.slice();
          const [number] = /\d+/.exec(askedName(query)) ?? [];
          const answers = number ? [aaaa(askedName(query), `2001:db8::${number}`)] : [];
          const answer = () => connection.write(frameMessage(replyTo(query, { answers })));
          queries.push({ query, answer });
        }
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    return `tls://[::1]:${(server.address() as { port: number }).port}`;
  }

  /** Waits until `count` queries have come. */
  async function arrived(count: number): Promise<void> {
    while (queries.length < count) await Bun.sleep(10);
    expect(queries).toHaveLength(count);
  }

  function valuesOf(outcomes: readonly DnsOutcome[]): unknown[] {
    return outcomes.map((outcome) => "records" in outcome && outcome.records[0]?.value);
  }

  testWithTls("is kept, and carries queries at once whose answers come in any order", async () => {
    const client = clientOf(await start(), ca, new FakeClock());
    const first = [1, 2, 3].map((number) => client.query(`n${number}`, "AAAA"));
    await arrived(3);
    for (const { answer } of queries.toReversed()) answer();
    expect(valuesOf(await Promise.all(first))).toEqual([1, 2, 3].map((at) => `2001:db8::${at}`));
    const fourth = client.query("n4", "AAAA");
    await arrived(4);
    queries[3]?.answer();
    expect(valuesOf([await fourth])).toEqual(["2001:db8::4"]);
    expect(connections).toHaveLength(1);
  });

  testWithTls("that the server has closed is replaced, and no query is lost", async () => {
    const client = clientOf(await start(), ca, new FakeClock());
    const first = client.query("n1", "AAAA");
    await arrived(1);
    queries[0]?.answer();
    await first;
    const second = client.query("n2", "AAAA");
    await arrived(2);
    connections[0]?.end();
    await arrived(3);
    queries[2]?.answer();
    expect(valuesOf([await second])).toEqual(["2001:db8::2"]);
    expect(connections).toHaveLength(2);
  });

  testWithTls("that is closed before its first answer is a failure", async () => {
    const client = clientOf(await start(), ca, new FakeClock());
    const query = client.query("n1", "AAAA");
    await arrived(1);
    connections[0]?.end();
    expect(await query).toMatchObject({
      kind: "unreachable",
      attempts: [{ transport: "tls", outcome: "EOF over TLS" }],
    });
    expect(connections).toHaveLength(1);
  });

  testWithTls("that left a query unanswered carries no other", async () => {
    const clock = new FakeClock();
    const client = clientOf(await start(), ca, clock);
    const first = client.query("n1", "AAAA", { timeoutMs: 900 });
    await arrived(1);
    await clock.advance(900);
    expect(await first).toMatchObject({ kind: "timeout" });
    const second = client.query("n2", "AAAA");
    while (connections.length < 2 || queries.length < 3) await Bun.sleep(10);
    for (const { query, answer } of queries) if (askedName(query).length === 3) answer();
    expect(valuesOf([await second])).toEqual(["2001:db8::2"]);
    expect(connections).toHaveLength(2);
  });

  testWithTls("carries many queries, and a server has four connections at most", async () => {
    const clock = new FakeClock();
    const server = tryParseDnsServer(await start()) as DnsServer;
    const sockets = systemSockets(clock, ca);
    const events = { message() {}, failed() {} };
    const ask = (number: number) => {
      const { bytes } = createQuery(createQuestion(`n${number}`, "AAAA"), true);
      return sockets.open("tls", server, bytes, events);
    };
    const open = await Promise.all(Array.from({ length: 256 }, (_, at) => ask(at)));
    // Each query that is given up makes the next one use another connection.
    for (let turn = 0; turn < 20; turn++) {
      open.pop()?.close();
      open.push(await ask(turn), await ask(turn));
    }
    await arrived(296);
    expect(connections).toHaveLength(4);
    for (const socket of open) socket.close();
    expect(clock.pending).toBe(0);
  });

  testWithTls("closes after ten idle seconds", async () => {
    const clock = new FakeClock();
    const client = clientOf(await start(), ca, clock);
    const first = client.query("n1", "AAAA");
    await arrived(1);
    queries[0]?.answer();
    await first;
    expect(clock.pending).toBe(1);
    await clock.advance(10_000);
    while (!connections[0]?.destroyed) await Bun.sleep(10);
    expect(clock.pending).toBe(0);
  });
});

testWithTls(
  "an answer over HTTPS is read only if it is one, and only as far as one can go",
  async () => {
    let sentBytes = 0;
    const bodies: Record<string, object> = {
      "/html": { "content-type": "text/html" },
      "/gzip": { "content-type": "application/dns-message", "content-encoding": "gzip" },
      "/endless": { "content-type": "application/dns-message" },
      "/any-case": { "content-type": "Application/DNS-Message; charset=x" },
    };
    const server = createSecureServer({ cert: ca, key: readFileSync(keyFile) });
    server.on("stream", (stream: ServerHttp2Stream, { ":path": path = "" }) => {
      stream.on("error", () => {});
      stream.respond({ ":status": path === "/error" ? 503 : 200, ...bodies[path] });
      const query: Uint8Array[] = [];
      stream.on("data", (piece: Uint8Array) => query.push(piece));
      stream.on("end", () => {
        if (path === "/any-case") stream.end(replyTo(Buffer.concat(query)));
        const write = () => {
          if (stream.writableEnded || stream.destroyed) return;
          sentBytes += 16_384;
          stream.write(new Uint8Array(16_384), () => setImmediate(write));
        };
        write();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "::1", resolve));
    const { port } = server.address() as { port: number };
    const outcomes: unknown[] = [];
    for (const path of ["any-case", "html", "gzip", "error", ...Array(8).fill("endless")]) {
      const client = clientOf(`https://[::1]:${port}/${path}`);
      outcomes.push((await client.query("a", "A")).attempts[0]?.outcome);
    }
    server.close();
    expect(outcomes).toEqual([
      "NOERROR",
      ...[
        "HTTP_MEDIA_TYPE",
        "HTTP_CONTENT_CODING",
        "HTTP_503",
        ...Array(8).fill("HTTP_TOO_LARGE"),
      ].map((what) => `${what} over HTTPS`),
    ]);
    // No more than fills the buffers of the connections.
    expect(sentBytes).toBeLessThan(64 * 1_048_576);
  },
);

test("a server that is not there is unreachable over TLS and HTTPS", async () => {
  const port = 1; // Nothing listens there.
  await new Promise((resolve) => connect(port, "::1").on("error", resolve));
  for (const [server, outcome] of [
    [`tls://[::1]:${port}`, "no-connection over TLS"],
    [`https://[::1]:${port}/dns-query`, "ECONNREFUSED over HTTPS"],
  ] as const) {
    expect(await clientOf(server).query("a", "A")).toMatchObject({ attempts: [{ outcome }] });
  }
});
