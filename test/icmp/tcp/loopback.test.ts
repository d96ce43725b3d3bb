/** TCP SYNs and UDP packets as probes, over loopback. */

import { expect } from "bun:test";
import { parseIpv6 } from "../../addr/parse.ts";
import { labMissing, testWith } from "../../lab/lab.ts";
import { openProber } from "../engines.ts";

const kernelTest = testWith(labMissing);
const LOOPBACK = parseIpv6("::1");

kernelTest("a listening port is open, another is closed, and no connection is made", async () => {
  let connections = 0;
  using server = Bun.listen({
    hostname: "::1",
    port: 0,
    socket: { open: () => void connections++, data() {} },
  });
  const prober = openProber();
  const { signal } = new AbortController();
  const about = { target: LOOPBACK, source: LOOPBACK, scopeId: 0, hopLimit: 64, flowLabel: 7 };
  const ask = (port: number, protocol: "tcp" | "udp" = "tcp") =>
    prober.probe({ ...about, timeoutMs: 5000, signal, probedPort: { protocol, port } });
  const answers = [await ask(server.port), await ask(1), await ask(1, "udp")];
  prober.close();
  expect(answers).toMatchObject([
    { kind: "reply", state: "open", isOtherSource: false },
    { kind: "reply", state: "closed" },
    { kind: "reply", state: "closed" },
  ]);
  expect(connections).toBe(0);
});
