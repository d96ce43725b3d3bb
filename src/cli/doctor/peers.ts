import { RESOLVER_NAMES, type ResolverName } from "../../config/settings.ts";
import { createDnsClient } from "../../dns/client.ts";
import { certificateFault } from "../../dns/message/codes.ts";
import { type DnsServer, formatDnsServer } from "../../dns/server.ts";
import { connectToNats } from "../../locations/link.ts";
import { ownName } from "../../platform/users.ts";
import { errorCode, reasonOf } from "../../util/errors.ts";
import {
  AUTHORITIES,
  type Finding,
  type Scene,
  type Setting,
  shareWith,
  TRUST_ADVICE,
  trying,
} from "./finding.ts";

/** A nearby resolver answers well within this time. */
const RESOLVER_TIMEOUT_MS = 2000;

/** Checks that each resolver answers, over each family that it has addresses of. */
export async function checkResolvers({ config, setting }: Scene): Promise<readonly Finding[]> {
  const findings = RESOLVER_NAMES.map(async (name) => {
    const byFamily = Map.groupBy(config.resolvers[name], ({ address }) => address.version);
    const found = await Promise.all(
      Array.from(byFamily, ([version, servers]) => checkResolver(name, version, servers, setting)),
    );
    // One family is enough.
    return found.some(({ state }) => state === "ok") ? found.map(asWarning) : found;
  });
  return (await Promise.all(findings)).flat();
}

function asWarning(finding: Finding): Finding {
  const advice = `the other family is used; ${finding.advice}`;
  return finding.state === "problem" ? { ...finding, state: "warning", advice } : finding;
}

async function checkResolver(
  name: ResolverName,
  version: 4 | 6,
  servers: readonly DnsServer[],
  setting: Setting,
) {
  const at = servers.map(formatDnsServer).join(", ");
  const { ok, problem, warning } = trying(`ask ${name} over IPv${version} (${at})`);
  const variable = setting(`SIXSCOPE_${name.toUpperCase()}`);
  const timeoutMs = RESOLVER_TIMEOUT_MS;
  // Every resolver knows the name servers of the root.
  const outcome = await createDnsClient({ servers }).query(".", "NS", { timeoutMs });
  switch (outcome.kind) {
    case "answer":
    case "no-data":
    case "name-error":
      return ok(`${outcome.server} answers in ${outcome.queryTimeMs} ms`);
    case "failure":
    case "malformed": {
      const advice = `ask its operator whether it serves this machine, or set ${variable}`;
      return warning(`${outcome.server} answers ${outcome.rcode}`, advice);
    }
    case "unreachable": {
      const { fault, advice } = certificateFault(outcome.reason) ?? {};
      if (fault && advice) return problem(fault, advice);
      const remedy = `see ip -${version} route and whether a resolver runs there, or set ${variable}`;
      return problem(`it cannot be reached (${outcome.reason})`, remedy);
    }
    case "timeout":
    case "aborted": {
      const advice = `allow UDP and TCP port 53, or name your own resolver: set ${variable}`;
      return problem(`no answer within ${timeoutMs / 1000} s`, advice);
    }
  }
}

/** Checks that NATS can be reached. The log of the service says which subjects the server refuses. */
export async function checkNats({ config, role, setting }: Scene): Promise<readonly Finding[]> {
  const { nats } = config;
  if (nats === null) return [];
  const { ok, problem } = trying(`connect to NATS at ${nats.servers.join(", ")}`);
  try {
    const { connection } = await connectToNats(nats);
    await connection.close();
    return [ok("it accepts us")];
  } catch (error) {
    const reason = reasonOf(error);
    const isAgent = role === "agent";
    const until = `until then, ${isAgent ? "nobody can ask this place" : "only this place can measure"}`;
    const remedy =
      errorCode(error) === "EACCES" && nats.credsFile !== null
        ? `let the service read it: ${shareWith(ownName())}`
        : /certificate/i.test(reason)
          ? `${TRUST_ADVICE}: set ${setting(AUTHORITIES)}`
          : "check SIXSCOPE_NATS_URL and SIXSCOPE_NATS_CREDS, and the server's log";
    return [problem(reason, `${remedy}; ${until}`)];
  }
}
