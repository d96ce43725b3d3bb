/** A service that the command line cannot trust: its answers, its output, and whether it gets a key. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callServer, urlOf } from "../../src/cli/call-server.ts";
import { ENDPOINTS } from "../../src/server/endpoints.ts";
import MTR from "../../src/tools/mtr/example.json" with { type: "json" };
import { myIp } from "../../src/tools/my-ip/endpoint.ts";
import PING from "../../src/tools/ping/example.json" with { type: "json" };
import type { Question } from "../../src/tools/services.ts";
import { TOOLS } from "../../src/tools/table.ts";
import TRACE from "../../src/tools/trace/example.json" with { type: "json" };
import { sixscopeHere } from "../lab/in-process.ts";

/** Sends what a test wants to send, to each connection; returns when it has no more. */
type Send = (socket: Socket) => Promise<void> | void;

let server: Server;
let url: URL;
let send: Send = () => {};
/** The heads of all requests. */
const requests: string[] = [];

beforeAll(async () => {
  server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      requests.push(String(bytes));
      void (async () => {
        await send(socket);
        socket.end();
      })();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}`);
});

afterAll(() => void server.close());

const head = (type: string, status = "200 OK", more = "") =>
  `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: ${type}\r\n${more}\r\n`;
const STREAM = head("text/event-stream");
const JSON_HEAD = head("application/json");
const event = (name: string, data: unknown) =>
  `event: ${name}\ndata: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

/** Few enough for a test, and enough for every answer here. */
const LIMITS = {
  silenceMs: 20_000,
  runMs: 20_000,
  bytes: 900_000,
};

const question = (id: string, parameters: Record<string, string>): Question => {
  const endpoint = ENDPOINTS.find(({ operationId }) => operationId === id);
  if (endpoint === undefined) throw new Error(id);
  return { endpoint, parameters };
};
const ping = question("ping", { target: PING.target });
const traced = question("traceroute", { target: TRACE.target });
const validated = question("validateAddress", { address: "2001:db8::1" });

/** Asks while a server sends this, and returns the answer or the message of the error, and the events. */
async function ask(
  sends: string | Send,
  asked: Question = ping,
  limits: Partial<typeof LIMITS> = {},
) {
  send = typeof sends === "string" ? (socket) => void socket.write(sends) : sends;
  const events: [string, object][] = [];
  const call = callServer(url, "sx_key", { ...LIMITS, ...limits });
  const onEvent = (name: string, data: object) => void events.push([name, data]);
  const { signal } = new AbortController();
  try {
    const { document, error } = await call(asked, signal, onEvent);
    return { document, error, events };
  } catch (error) {
    return { problem: (error as Error).message, events };
  }
}

/** Writes until nobody reads any more. */
const endless =
  (begin: string, part: string): Send =>
  async (socket) => {
    socket.write(begin);
    while (!socket.destroyed && socket.writable) {
      if (!socket.write(part)) {
        await new Promise((resolve) => {
          socket.once("drain", resolve);
          socket.once("close", resolve);
        });
      }
    }
  };

/** Writes a byte every few milliseconds. */
const trickle =
  (begin: string, part: string): Send =>
  async (socket) => {
    socket.write(begin);
    while (!socket.destroyed && socket.writable) {
      socket.write(part);
      await Bun.sleep(5);
    }
  };

test("a right answer and its events are taken, of each endpoint", async () => {
  for (const { endpoint } of TOOLS) {
    const { operationId: id, example, parameters, events } = endpoint;
    const document = example as Record<string, unknown>;
    const [subject = ""] = Object.keys(parameters);
    const asked = { [subject]: String(document[subject] ?? "2001:db8::1") };
    const answer = events
      ? STREAM + event("result", document)
      : JSON_HEAD + JSON.stringify(document);
    expect(await ask(answer, question(id, asked))).toEqual({ document, error: null, events: [] });
  }
});

const SAMPLE = { seq: 1, ttl: 64, rtt: 1.5 };
const COMPARED = { summary: [], matching: 2 };
const located = (location: string, target = PING.target) => ({
  location,
  result: { ...PING, target, details: { ...PING.details, location } },
});

describe("refused", () => {
  const { target } = PING;
  const several = { target, details: COMPARED, locations: [located("ams"), located("fra")] };
  const fromTwo = question("ping", { target, from: "ams,fra" });
  const fromOne = question("ping", { target, from: "ams" });
  const wrongShape = /does not understand, at "/;
  const otherQuestion = /answered another question/;
  const notSixscope = /, and not as sixscope does/;
  const result = (document: unknown) => STREAM + event("result", document);
  const rows: readonly (readonly [
    what: string,
    sends: string,
    problem: RegExp,
    asked?: Question,
  ])[] = [
    ["a hop that no path has", STREAM + event("hop", { hop: 1e9 }), wrongShape, traced],
    ["a sample that is a list", STREAM + event("sample", []), wrongShape],
    ["a sample that is nothing", STREAM + event("sample", "null"), wrongShape],
    ["a sample that is no JSON", STREAM + event("sample", "{"), wrongShape],
    ["a number as text", STREAM + event("sample", { ...SAMPLE, rtt: "1" }), wrongShape],
    [
      "a number that is not finite",
      STREAM + event("sample", '{"seq":1,"ttl":64,"rtt":1e999}'),
      wrongShape,
    ],
    ["a result without its details", result({ ...PING, details: undefined }), wrongShape],
    ["a result that is an event", STREAM + event("result", SAMPLE), wrongShape],
    [
      "more hops than there are",
      result({ ...TRACE, hops: [{ ...TRACE.hops[0], hop: 65 }] }),
      wrongShape,
      traced,
    ],
    ["deep nesting", result(`${"[".repeat(9_000)}${"]".repeat(9_000)}`), wrongShape],
    ["too many values", result(`{"results":[${"{},".repeat(200_000)}{}]}`), wrongShape],
    ["another target", result({ ...PING, target: "other.example" }), otherQuestion],
    [
      "another name",
      JSON_HEAD +
        JSON.stringify({
          ...ENDPOINTS.find(({ operationId }) => operationId === "queryDns")?.example,
          hostname: "other.example",
        }),
      otherQuestion,
      question("queryDns", { hostname: "www.example.com" }),
    ],
    ["several locations where none is asked", result(several), otherQuestion],
    ["one where several are asked", result(PING), otherQuestion, fromTwo],
    [
      "another target of a location",
      result({ target, details: COMPARED, locations: [located("ams", "x")] }),
      otherQuestion,
      fromTwo,
    ],
    ["another location", result(located("fra").result), otherQuestion, fromOne],
    ["no location where one is asked", result(PING), otherQuestion, fromOne],
    ["an error that is none", STREAM + event("error", { error: "no" }), notSixscope],
    [
      "an error with a code of another kind",
      STREAM + event("error", { error: { code: "\u001b[2J", message: "", details: {} } }),
      notSixscope,
    ],
    [
      "an error with a long message",
      STREAM +
        event("error", { error: { code: "NOT_FOUND", message: "x".repeat(4_001), details: {} } }),
      notSixscope,
    ],
    [
      "a page of a web server",
      `${head("text/html", "404 Not Found")}<h1>no</h1>`,
      /answers status 404, and not/,
    ],
    ["a page with success", `${head("text/html")}<h1>yes</h1>`, wrongShape],
    [
      "a stream with an error's status",
      `${head("text/event-stream", "503 No")}${event("result", PING)}`,
      /status 503/,
    ],
    ["no result", STREAM + event("sample", SAMPLE), /ended the stream before/],
  ];
  // Without a column that is missing, because the last argument would be a callback.
  test.each(rows.map((row) => [row[0], row] as const))(
    "%s",
    async (_, [, sends, problem, asked]) => {
      expect(await ask(sends, asked)).toMatchObject({ problem: expect.stringMatching(problem) });
    },
  );

  test("a redirect, and the key does not go along", async () => {
    requests.length = 0;
    const to = new URL("/elsewhere", url).href;
    const { problem } = await ask(head("text/html", "307 Temporary", `Location: ${to}\r\n`));
    expect(problem).toMatch(/answers status 307, and not/);
    expect(requests).toEqual([expect.stringContaining("GET /api/v1/ping/")]);
  });

  test("what is compressed, which nobody asked for", async () => {
    const compressed = Bun.gzipSync(JSON.stringify(validated.endpoint.example));
    const { problem } = await ask((socket) => {
      socket.write(head("application/json", "200 OK", "Content-Encoding: gzip\r\n"));
      socket.write(compressed);
    }, validated);
    expect(problem).toMatch(wrongShape);
    expect(requests.at(-1)).toMatch(/accept-encoding: identity/i);
  });
});

describe("ended", () => {
  const tooMany = /sent more than 900000 bytes/;
  const late = /its answer is not complete after 0\.3 s/;
  const silent = /it has sent nothing for 0\.2 s/;
  const quick = { runMs: 300 };
  const line = "x".repeat(10_000);
  const closed = (socket: Socket) =>
    new Promise<void>((resolve) => void socket.once("close", resolve));
  const rows: readonly (readonly [
    what: string,
    sends: Send,
    problem: RegExp,
    limits?: Partial<typeof LIMITS>,
    asked?: Question,
  ])[] = [
    ["an endless line", endless(`${STREAM}data: `, line), tooMany],
    ["an endless stream of comments", endless(STREAM, `:${line}\n\n`), tooMany],
    ["an endless stream of events", endless(STREAM, event("sample", SAMPLE).repeat(50)), tooMany],
    ["an endless document", endless(JSON_HEAD, line), tooMany, {}, validated],
    ["an endless error", endless(head("text/html", "500 No"), line), tooMany],
    ["a trickle of comments", trickle(STREAM, ":\n\n"), late, quick],
    ["a trickle of a document", trickle(JSON_HEAD, "["), late, quick, validated],
    ["a trickle of a head", trickle("HTTP/1.1 200 OK\r\nX: ", "x"), late, quick],
    ["endless headers", endless("HTTP/1.1 200 OK\r\n", `X: ${line}\r\n`), /^cannot get an answer/],
    ["silence", closed, silent, { silenceMs: 200 }],
    [
      "silence behind the head",
      (socket) => {
        socket.write(STREAM);
        return closed(socket);
      },
      silent,
      { silenceMs: 200 },
    ],
  ];
  test.each(rows.map((row) => [row[0], row] as const))(
    "%s",
    async (_, [, sends, problem, limits, asked]) => {
      expect(await ask(sends, asked, limits)).toMatchObject({
        problem: expect.stringMatching(problem),
      });
    },
  );
});

describe("of a newer version", () => {
  const newer = { newer: { since: [1] } };
  test("fields that this one does not know are left out, at any depth", async () => {
    const first = { ...PING.results[0], ...newer };
    const [lost] = PING.details.lost;
    const answer = [
      event("sample", { ...SAMPLE, ...newer }),
      event("sample", { ...lost, ...newer, another: 1 }),
      event("result", {
        ...{ ...PING, ...newer, results: [first, ...PING.results.slice(1)] },
        details: { ...PING.details, verdict: { ...PING.details.verdict, ...newer } },
      }),
    ];
    expect(await ask(STREAM + answer.join(""))).toEqual({
      document: PING,
      error: null,
      events: [
        ["sample", SAMPLE],
        ["sample", lost as object],
      ],
    });
  });

  test("also of several locations, whose names stay", async () => {
    const { target } = PING;
    const [ams, fra] = [
      located("ams"),
      { location: "fra", error: { code: "LOCATION_NOT_FOUND", message: "m", details: {} } },
    ];
    const entry = { ...ams, result: { ...ams.result, ...newer } };
    const sample = { ...SAMPLE, location: "ams" };
    const answer =
      event("sample", { ...sample, ...newer }) +
      event("location", { ...entry, ...newer }) +
      event("result", {
        target,
        details: COMPARED,
        locations: [entry, { ...fra, ...newer }],
        ...newer,
      });
    const asked = question("ping", { target, from: "ams,fra" });
    expect(await ask(STREAM + answer, asked)).toEqual({
      document: { target, details: COMPARED, locations: [ams, fra] },
      error: null,
      events: [
        ["sample", sample],
        ["location", ams],
      ],
    });
  });

  test("events that this one does not know are left out", async () => {
    const odd = ["newer", "__proto__", "toString", ""].map((name) => event(name, { hop: 1e9 }));
    const { events, document } = await ask(STREAM + odd.join("") + event("result", PING));
    expect([events, document]).toEqual([[], PING]);
  });

  const LIMITED = { limit: 1, windowSeconds: 60, retryAfterSeconds: 2 };
  test.each<[string, string, object, object]>([
    ["with a code that this one does not know", "QUITE_NEW", newer, {}],
    ["with the name of what every object has", "__PROTO__", newer, {}],
    ["with wrong details", "RATE_LIMITED", { ...LIMITED, limit: "x" }, {}],
    ["with more details", "RATE_LIMITED", { ...LIMITED, ...newer }, LIMITED],
  ])("an error %s has its code and message", async (_, code, sent, details) => {
    const error = { code, message: "Wait.", details: sent };
    const shown = { ...error, details };
    const document = { error: shown };
    const expected = { document, error: shown, events: [] };
    expect(await ask(STREAM + event("error", { error }))).toEqual(expected);
    if (code !== "RATE_LIMITED") return;
    const located = (error: object) => ({
      target: PING.target,
      details: COMPARED,
      locations: [{ location: "ams", error }],
    });
    const asked = question("ping", { target: PING.target, from: "ams,fra" });
    const several = await ask(STREAM + event("result", located(error)), asked);
    expect(several).toMatchObject({ document: located(shown) });
  });
});

describe("no output has a character that rearranges a terminal", () => {
  const EVIL = "a\u001b[2J\u009b1m\u202eb\u2066\u2028c\u2029\u200b\u007f\r\n\ud800";
  const evil = <T extends object>(document: T): T =>
    JSON.parse(JSON.stringify(document), (name, value) =>
      ["text", "hostname", "version"].includes(name) && typeof value === "string"
        ? `${value}${EVIL}`
        : value,
    );
  const UNSAFE = /[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
  const outputs = [[], ["--json"], ["--json", "--stream"]];
  const formats = ["mtr-report", "mtr-json"].map((format) => ["--format", format]);
  const tools = [
    ["ping", PING, outputs],
    ["trace", TRACE, outputs],
    ["mtr", MTR, formats],
  ] as const;
  test.each(
    tools.flatMap(([tool, document, ways]) => ways.map((way) => [tool, way, document] as const)),
  )("%s %j", async (tool, way, document) => {
    const sent =
      tool !== "ping"
        ? evil(document)
        : evil({
            ...PING,
            details: {
              ...PING.details,
              lost: [{ seq: 2, reason: "x", type: 1, code: 0, from: "::1" }],
            },
          });
    const hops = tool === "trace" && "hops" in sent ? sent.hops : [];
    const events =
      tool !== "ping"
        ? hops.map((hop) => event("hop", hop))
        : [event("sample", { seq: 2, reason: `x${EVIL}`, type: 1, code: 0, from: "::1" })];
    send = (socket) => void socket.write(`${STREAM}${events.join("")}${event("result", sent)}`);
    const args = [tool, document.target, ...way, "--server", url.href];
    const { stdout, stderr } = await sixscopeHere(args);
    expect(stdout).not.toMatch(UNSAFE);
    expect(stderr).not.toMatch(UNSAFE);
    expect(stdout).toContain(way.includes("--format") ? "2001:db8" : "[2J");
    if (way[0] === "--json") {
      const last = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
      expect(way[1] ? last.data : last).toEqual(sent);
    }
  });

  test.each([[[]], [["--json"]], [["--json", "--stream"]]])("an error, %j", async (way) => {
    const error = {
      code: "RESOLVER_TIMEOUT",
      message: EVIL,
      details: {
        hostname: EVIL,
        resolver: "resolver_a",
        server: null,
        transport: "udp",
        rcode: null,
      },
    };
    for (const answer of [
      STREAM + event("error", { error: { code: "NEWER", message: EVIL, details: {} } }),
      STREAM + event("error", { error }),
      head(EVIL.replace(/[\r\n]/g, ""), `500 ${EVIL.replace(/[\r\n]/g, "")}`) + EVIL,
      STREAM + event("result", `"${EVIL}"`),
    ]) {
      send = (socket) => void socket.write(answer);
      const { status, stdout, stderr } = await sixscopeHere([
        "ping",
        "a.test",
        ...way,
        "--server",
        url.href,
      ]);
      expect([status, stdout + stderr]).toEqual([1, expect.not.stringMatching(UNSAFE)]);
    }
  });
});

describe("a key is sent to the service that it belongs to", () => {
  const other = "https://six.example";
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "sixscope-key-"));
    writeFileSync(join(folder, "key"), "sx_file\n");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const keysSent = () =>
    requests.map((request) => /^x-api-key: (.*)\r$/im.exec(request)?.[1] ?? null);

  /** Pings through the fake service, and returns the status, what it was sent, and the first line of the errors. */
  async function pingWith(args: readonly string[], environment: Record<string, string>) {
    requests.length = 0;
    send = (socket) => void socket.write(STREAM + event("result", PING));
    const { status, stderr } = await sixscopeHere(["ping", PING.target, ...args], environment);
    return [status, keysSent(), stderr.split("\n")[0]];
  }

  test("of SIXSCOPE_SERVER, or of --key-from", async () => {
    const own = url.href;
    const key = { SIXSCOPE_KEY: "sx_env" };
    const rows: [string[], Record<string, string>, string | null][] = [
      [[], { ...key, SIXSCOPE_SERVER: own }, "sx_env"],
      [["--server", own], { ...key, SIXSCOPE_SERVER: own }, "sx_env"],
      [["--server", `${own}below/`], { ...key, SIXSCOPE_SERVER: own }, "sx_env"],
      [["--server", own], key, null],
      [["--server", own], { ...key, SIXSCOPE_SERVER: other }, null],
      [["--server", own], { ...key, SIXSCOPE_SERVER: own.replace("http", "https") }, null],
      [["--server", own], { ...key, SIXSCOPE_SERVER: "http://127.0.0.1:1" }, null],
      [["--server", own], {}, null],
      [
        ["--server", own, "--key-from", "SIXSCOPE_KEY"],
        { ...key, SIXSCOPE_SERVER: other },
        "sx_env",
      ],
      [["--server", own, "--key-from", "MINE"], { ...key, MINE: "sx_mine" }, "sx_mine"],
      [["--server", own, "--key-from", join(folder, "key")], key, "sx_file"],
      [["--key-from", "MINE"], { ...key, SIXSCOPE_SERVER: own, MINE: "sx_mine" }, "sx_mine"],
    ];
    for (const [args, environment, sent] of rows) {
      // commander reads SIXSCOPE_SERVER from the process itself.
      const { SIXSCOPE_SERVER: server } = environment;
      const all = args.includes("--server") || !server ? args : [...args, "--server", server];
      expect([all, ...(await pingWith(all, environment))]).toEqual([all, 0, [sent], ""]);
    }
  });

  test("over plain HTTP only to this machine, or where that is said", async () => {
    const named = `http://[::ffff:127.0.0.1]:${url.port}`;
    for (const host of [
      "192.0.2.1",
      "[2001:db8::1]",
      "six.example",
      "127.0.0.1.six.example",
      "localhost.six.example",
    ]) {
      const server = `http://${host}:9`;
      const [status, sent, said] = await pingWith(["--server", server], {
        SIXSCOPE_KEY: "sx_env",
        SIXSCOPE_SERVER: server,
      });
      const why = `sixscope: others could read the API key on its way to ${server}; use https, or --plain-http`;
      expect([status, sent, said]).toEqual([2, [], why]);
    }
    // A name of this machine that the command does not know as such.
    const environment = { SIXSCOPE_KEY: "sx_env", SIXSCOPE_SERVER: named };
    const args = ["--server", named];
    expect(await pingWith(args, environment)).toEqual([2, [], expect.any(String)]);
    expect(await pingWith([...args, "--plain-http"], environment)).toEqual([0, ["sx_env"], ""]);
  });

  test("and if one is missing or wrong, the error names the variable and no header", async () => {
    const refusal = {
      code: "UNAUTHORIZED",
      message: "This endpoint needs an API key; send it in the header X-API-Key",
      details: {},
    };
    const error = { error: refusal };
    const answers = [
      head("application/json", "401 Unauthorized") + JSON.stringify(error),
      STREAM + event("error", error),
    ];
    for (const answer of answers) {
      send = (socket) => void socket.write(answer);
      const { signal } = new AbortController();
      const said = async (key?: string) => await callServer(url, key)(ping, signal, () => {});
      const [without, wrong] = [await said(), await said("sx_mine")];
      expect(without.error?.message).toContain(
        `set SIXSCOPE_SERVER=${url.origin} and SIXSCOPE_KEY to the key`,
      );
      expect(wrong.error?.message).toContain("does not accept the API key");
      // Programs get what the API says.
      for (const { document } of [without, wrong]) expect(document).toEqual(error);
    }
  });
});

test.each(["", "/", "/api/v1", "/api/v1/", "/behind"])(
  "a service is named by its URL, or that of its API: %s",
  (path) => {
    const url = urlOf(new URL(`https://six.example.com${path}`), {
      endpoint: myIp,
      parameters: {},
    });
    expect(url.pathname).toBe(`${path === "/behind" ? path : ""}/api/v1/myip`);
  },
);
