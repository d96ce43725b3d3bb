/** Ports that the operator does not allow. */
import { expect, test } from "bun:test";
import type { IcmpEngine } from "../engines.ts";
import { portTools } from "./tools.ts";

const NO_ENGINE = {} as IcmpEngine;

test.each([
  ["53,440-443", { protocol: "tcp", port: "444" }, "444", ["53", "440-443"]],
  ["53,440-443", { protocol: "udp", port: "439" }, "439", ["53", "440-443"]],
  ["53", { protocol: "tcp" }, "443", ["53"]],
  ["any", { port: "443" }, "443", undefined],
])("with %s, %p is refused", async (ports, texts, value, allowed) => {
  const tools = portTools(NO_ENGINE, { SIXSCOPE_PROBE_PORTS: ports });
  const details = { parameter: "port", value, ...(allowed && { allowed }) };
  const refused = { code: "INVALID_PARAMETER", details };
  for (const tool of [tools.ping, tools.trace, tools.mtr])
    await expect(tool({ target: "::1", ...texts })).rejects.toMatchObject(refused);
});
