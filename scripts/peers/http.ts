/** A peer for `bench http`: the same bytes from a bare Bun.serve, or from Hono alone. */
import { Hono } from "hono";

const { headers, paths, bodies } = JSON.parse(process.env["PEER_ANSWERS"] ?? "{}") as {
  headers: [string, string][];
  paths: string[];
  bodies: string[];
};
const answers = new Map(paths.map((path, index) => [path.split("?")[0], bodies[index]]));
const headerRecord = Object.fromEntries(headers);

const app = new Hono();
for (const [path, body = ""] of answers) {
  app.get(path ?? "", (context) => context.body(body, 200, headerRecord));
}

const bare = (request: Request) =>
  new Response(answers.get(new URL(request.url).pathname), { headers: headerRecord });

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  fetch: process.argv[2] === "hono" ? app.fetch : bare,
});
console.log(server.url.origin);
