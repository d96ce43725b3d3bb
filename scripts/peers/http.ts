/** Peers for `bench http`, which return the same bytes as sixscope; run by `bench-http.ts`. */
import { Hono } from "hono";

const { headers, paths, bodies } = JSON.parse(process.env["PEER_ANSWERS"] ?? "{}") as {
  headers: [string, string][];
  paths: string[];
  bodies: string[];
};
const [kind = "", path = ""] = process.argv.slice(2);
const body = bodies[paths.indexOf(path)] ?? "";
const headerRecord = Object.fromEntries(headers);

/** Headers whose values differ from request to request. */
const OWN = ["x-request-id", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
const constantHeaders = new Headers(headers.filter(([name]) => !OWN.includes(name)));
/** Headers that only a proxy adds; a client that sends one is not on this machine. */
const FORWARDING = ["x-forwarded-for", "x-forwarded-proto", "forwarded", "x-real-ip", "via"];
let requests = 0;

const app = new Hono();
app.get(path.split("?")[0] ?? "", (context) => context.body(body, 200, headerRecord));

type Fetch = (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>;

const FETCH: Readonly<Record<string, Fetch>> = {
  bare: () => new Response(body),
  // The calls that every implementation of the API makes: it identifies the client, hashes its key, draws an
  // id, and sends nine headers, four with values of their own. It counts nothing, finds no route and writes no body.
  calls: (request, server) => {
    const sent = request.headers;
    const key = sent.get("x-api-key") ?? sent.get("authorization");
    const isKnown = key === null || Bun.SHA256.hash(key, "hex") !== "";
    const isForwarded = FORWARDING.some((name) => sent.has(name));
    const isClient = server.requestIP(request) !== null && sent.has("host") && !isForwarded;
    const isRouted = request.method === "GET" && request.url.endsWith(path);
    const response = new Response(isRouted && isClient && isKnown ? body : "", {
      headers: constantHeaders,
    });
    const second = Math.floor(Date.now() / 1000);
    response.headers.set("X-Request-Id", crypto.randomUUID());
    response.headers.set("X-RateLimit-Limit", "10000000");
    response.headers.set("X-RateLimit-Remaining", String(10_000_000 - ++requests));
    response.headers.set("X-RateLimit-Reset", String(second));
    return response;
  },
  hono: (request) => app.fetch(request),
};

const fetch = FETCH[kind];
if (fetch === undefined) throw new Error(`unknown peer: ${kind}`);
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch });
console.log(server.url.origin);
