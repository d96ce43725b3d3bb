/** The tools over a real engine, without HTTP. */

import { alone, readTexts } from "../../../src/api/parameters.ts";
import { parseConfig } from "../../../src/config/settings.ts";
import { FairSlots } from "../../../src/gate/fair-slots.ts";
import { Gate } from "../../../src/gate/gate.ts";
import { mtr } from "../../../src/tools/mtr/endpoint.ts";
import type { MtrResult } from "../../../src/tools/mtr/result.ts";
import { ping } from "../../../src/tools/ping/endpoint.ts";
import type { PingResult } from "../../../src/tools/ping/result.ts";
import type { Endpoint } from "../../../src/tools/services.ts";
import { traceroute } from "../../../src/tools/trace/endpoint.ts";
import type { TraceResult } from "../../../src/tools/trace/result.ts";
import type { IcmpEngine } from "../engines.ts";

/** The parameters of a call as texts. */
type Texts = Readonly<Record<string, string>>;

/** The tools that can probe a port, each with the defaults of its parameters. */
export function portTools(icmp: IcmpEngine, settings: Texts = {}) {
  const ask = async (endpoint: Endpoint, texts: Texts) => {
    const nobody = { query: async () => ({ kind: "answer", records: [] }) } as never;
    const call = { address: null, client: "", allowSeconds() {}, onEvent() {} };
    return await endpoint.handle(
      readTexts(alone(endpoint.parameters), texts),
      { ...call, signal: new AbortController().signal },
      {
        config: parseConfig({
          SIXSCOPE_RESOLVER_A: "::1",
          SIXSCOPE_PROBE_PORTS: "any",
          SIXSCOPE_PING_INTERVAL_MS: "110",
          SIXSCOPE_PROBE_TIMEOUT_MS: "600",
          ...settings,
        }),
        resolvers: { resolver_a: nobody, resolver_b: nobody, resolver_c: nobody },
        icmp: icmp.prober,
        gate: new Gate(),
        probeSlots: new FairSlots(8),
        querySlots: new FairSlots(8),
      },
    );
  };
  return {
    ping: (texts: Texts) => ask(ping, texts) as Promise<PingResult>,
    trace: (texts: Texts) => ask(traceroute, { names: "no", ...texts }) as Promise<TraceResult>,
    mtr: (texts: Texts) => ask(mtr, { names: "no", ...texts }) as Promise<MtrResult>,
  };
}
