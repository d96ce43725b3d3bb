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

const app = new Hono();
app.get(path.split("?")[0] ?? "", (context) => context.body(body, 200, headerRecord));

type Fetch = (request: Request, server: Bun.Server<undefined>) => Response | Promise<Response>;

const FETCH: Readonly<Record<string, Fetch>> = {
  bare: () => new Response(body),
  // The calls that every implementation of the API makes: peer address, request headers, URL, response headers.
  calls: (request, server) => {
    const isCounted = server.requestIP(request) !== null && !request.headers.has("x-forwarded-for");
    return new Response(request.url.endsWith(path) && isCounted ? body : "", {
      headers: headerRecord,
    });
  },
  hono: (request) => app.fetch(request),
};

const fetch = FETCH[kind];
if (fetch === undefined) throw new Error(`unknown peer: ${kind}`);
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch });
console.log(server.url.origin);
