/** The smallest service with Hono, to compare ours with. */
import { Hono } from "hono";

const app = new Hono().get("/", (context) => context.json({ hello: "world" }));
Bun.serve({
  hostname: "127.0.0.1",
  port: Number(process.env["PORT"]),
  development: false,
  fetch: app.fetch,
});
