/** A trace through a real translator to IPv4 routers. */
import { expect } from "bun:test";
import { parseIpv6 } from "../addr/parse.ts";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { PREFIX, ROUTERS, startTranslator } from "../lab/translator.ts";
import { openIcmp } from "./engines.ts";

testWith(tunMissing, programMissing("tayga"))(
  "IPv4 routers behind a translator are hops",
  async () => {
    await using _ = await startTranslator();
    const engine = openIcmp();
    try {
      const request = { target: parseIpv6(`${PREFIX}c000:250`), maxHops: 12, timeoutMs: 20_000 };
      const outcome = await engine.traceroute(request);
      if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
      const shown = outcome.hops.map(({ ip }) => ip);
      const routers = Array.from({ length: ROUTERS }, (_, at) => `${PREFIX}c000:20${at + 1}`);
      expect(shown.slice(-ROUTERS - 1)).toEqual([...routers, `${PREFIX}c000:250`]);
      expect(outcome.reached).toBe(true);
      expect(engine.counters).toMatchObject({ withoutCookie: ROUTERS, forged: 0 });
    } finally {
      engine.close();
    }
  },
);
