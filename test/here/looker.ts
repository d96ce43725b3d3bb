/** A process that looks at networks from inside, one after the other: one for each takes three times the processor time. */
import { openHere } from "../../src/cli/call-here.ts";
import { parseResolvConf } from "../../src/dns/server.ts";
import { here } from "../../src/tools/here/endpoint.ts";
import { enterNamespace } from "../lab/namespace.ts";

/** The namespace of a client, and the text of its /etc/resolv.conf. */
export interface Place {
  readonly namespace: string;
  readonly resolvConf: string;
}

process.on("message", async ({ namespace, resolvConf }: Place) => {
  using _ = enterNamespace(namespace);
  const resolvers = { resolver_a: parseResolvConf(resolvConf), resolver_b: [], resolver_c: [] };
  using opened = await openHere({}, { config: { resolvers } });
  const question = { endpoint: here, parameters: {} };
  const { document } = await opened.call(question, new AbortController().signal, () => {});
  process.send?.(JSON.stringify(document));
});
