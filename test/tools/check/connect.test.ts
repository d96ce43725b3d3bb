/** Heads of HTTP responses, byte by byte and at once, as a check judges them. */
import { afterAll, beforeAll, expect } from "bun:test";
import { Gate } from "../../../src/gate/gate.ts";
import { judgeHttp, withReach } from "../../../src/tools/check/connect.ts";
import type { Seen } from "../../../src/tools/check/verdict.ts";
import { labMissing, testWith } from "../../lab/lab.ts";

const OK = "HTTP/1.1 200 OK\r\n\r\n";

const ROWS: readonly [what: string, bytes: string, expected: Partial<Seen>][] = [
  ["a status", OK, { httpStatus: 200, text: "The server answers with status 200." }],
  ["a status of HTTP/1.0 without a reason", "HTTP/1.0 204\r\n\r\n", { httpStatus: 204 }],
  ["lines that end as in Unix", "HTTP/1.1 404 No\nX: y\n\n", { httpStatus: 404 }],
  ["early hints before the last", `HTTP/1.1 103 E\r\nLink: </a>\r\n\r\n${OK}`, { httpStatus: 200 }],
  [
    "two responses before the last",
    `${"HTTP/1.1 100 Continue\r\n\r\n".repeat(2)}${OK}`,
    { httpStatus: 200 },
  ],
  ["another protocol from here on", "HTTP/1.1 101 X\r\n\r\n", { httpStatus: 101 }],
  [
    "a redirect",
    "HTTP/1.1 302 F\r\nServer: x\r\nlocation:/a b\r\n\r\n",
    {
      text: "The server answers with status 302, and redirects to http://[::1]/a%20b.",
    },
  ],
  [
    "a location without a redirect",
    "HTTP/1.1 200 O\r\nLocation: /x\r\n\r\n",
    { text: "The server answers with status 200." },
  ],
  ["a status of five digits", "HTTP/1.1 99999 M\r\n\r\n", { finding: "not-http" }],
  ["another version", "HTTP/2 200\r\n\r\n", { finding: "not-http" }],
  ["another protocol", "SSH-2.0-x\r\n", { finding: "not-http" }],
  [
    "only responses before the last",
    "HTTP/1.1 100 Continue\r\n\r\n".repeat(3000),
    { finding: "not-http" },
  ],
  ["a line without an end", `HTTP/1.1 200 ${"x".repeat(70_000)}`, { finding: "not-http" }],
  [
    "nothing, and closes",
    "",
    {
      finding: "http-silent",
      text: "The server closes the connection and does not answer an HTTP request.",
    },
  ],
];

/** The bytes that the server sends, and whether each by itself. */
let [answer, isDripped] = ["", false];
let server: Bun.TCPSocketListener;

beforeAll(() => {
  if (labMissing !== null) return;
  server = Bun.listen({
    hostname: "::1",
    port: 80,
    socket: {
      async data(socket) {
        const pieces = isDripped ? answer.split("") : [answer];
        for (const piece of pieces) {
          socket.write(piece);
          socket.flush();
          if (isDripped) await Bun.sleep(0);
        }
        if (answer === "") socket.end();
      },
      error() {},
    },
  });
});

afterAll(() => server?.stop(true));

/** Redirects are to addresses, so no resolver is asked. */
const SERVICES = { config: { targetResolver: "resolver_a" }, resolvers: {} } as never;

const SERVICE = { ip: "::1", port: 80, name: null };

const judge = () => {
  const { signal } = new AbortController();
  const through = { gate: new Gate(), caller: { client: "" }, signal };
  return withReach(SERVICE, through, (reach) => judgeHttp(SERVICE, reach, SERVICES));
};

testWith(labMissing).each([...ROWS])("%s", async (_, bytes, expected) => {
  for (const dripped of bytes.length < 200 ? [false, true] : [false]) {
    [answer, isDripped] = [bytes, dripped];
    expect(await judge()).toMatchObject(expected);
  }
});

testWith(labMissing)("a proxy of the environment is not asked", async () => {
  const before = process.env["http_proxy"];
  process.env["http_proxy"] = "http://[::1]:1";
  [answer, isDripped] = [OK, false];
  try {
    expect(await judge()).toMatchObject({ httpStatus: 200 });
  } finally {
    if (before === undefined) delete process.env["http_proxy"];
    else process.env["http_proxy"] = before;
  }
});
