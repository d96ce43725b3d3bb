import { formatSocketAddress, type SocketAddress } from "../../addr/socket-address.ts";
import { type Config, RESOLVER_NAMES, type ResolverName } from "../../config/settings.ts";
import { createDnsClient } from "../../dns/client.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** A resolver that is near enough answers well within this. */
const TIMEOUT_MS = 2000;

/** Every resolver knows the name servers of the root. */
const QUESTION = { name: ".", type: "NS" } as const;

/** Whether each resolver answers, over each family that it has addresses of. */
export async function checkResolvers(resolvers: Config["resolvers"]): Promise<readonly Finding[]> {
  const findings = await Promise.all(
    RESOLVER_NAMES.map(async (name) => {
      const found = await Promise.all(
        ([6, 4] as const).flatMap((version) => {
          const servers = resolvers[name].filter(({ address }) => address.version === version);
          return servers.length === 0 ? [] : [checkResolver(name, version, servers)];
        }),
      );
      const isAnswered = found.some(({ state }) => state === "ok");
      // One family is enough, and a resolver without an answer is a problem once.
      return isAnswered ? found.map(lessGrave) : found;
    }),
  );
  return findings.flat();
}

async function checkResolver(
  name: ResolverName,
  version: 4 | 6,
  servers: readonly SocketAddress[],
): Promise<Finding> {
  const tried = `ask ${name} over IPv${version} (${servers.map(formatSocketAddress).join(", ")})`;
  const variable = `SIXSCOPE_${name.toUpperCase()}`;
  const client = createDnsClient({ servers });
  const outcome = await client.query(QUESTION.name, QUESTION.type, { timeoutMs: TIMEOUT_MS });
  switch (outcome.kind) {
    case "answer":
    case "no-data":
    case "name-error":
      return ok(tried, `${outcome.server} answers in ${outcome.queryTimeMs} ms`);
    case "failure":
    case "malformed":
      return warning(
        tried,
        `${outcome.server} answers ${outcome.rcode}`,
        `ask its operator whether it serves this machine, or set ${variable}`,
      );
    case "unreachable":
      return problem(
        tried,
        `it cannot be reached (${outcome.reason})`,
        outcome.reason === "ECONNREFUSED"
          ? `start a resolver there, or set ${variable}`
          : `see ip -${version} route, or set ${variable} to a resolver of yours`,
      );
    case "timeout":
    case "aborted":
      return problem(
        tried,
        `no answer within ${TIMEOUT_MS / 1000} s`,
        `let UDP and TCP port 53 through, or set ${variable} to a resolver of yours`,
      );
  }
}

function lessGrave(finding: Finding): Finding {
  return finding.state === "problem"
    ? { ...finding, state: "warning", advice: `the other family is used; ${finding.advice}` }
    : finding;
}

/** Whether other machines can use what the service listens on: plain HTTP is for proxies alone. */
export function checkListeners({ listen, tls }: Config): Finding {
  const tried = "see who may connect";
  const open = listen.flatMap((address) =>
    address.kind === "tcp" && !isLoopback(address.hostname) ? [address.hostname] : [],
  );
  if (open.length === 0) return ok(tried, "this machine alone, and so a proxy on it");
  return tls !== null
    ? ok(tried, `other machines, over HTTPS on ${open.join(", ")}`)
    : warning(
        tried,
        `other machines, over plain HTTP on ${open.join(", ")}, which only a proxy may use`,
        "set SIXSCOPE_TLS_CERT and SIXSCOPE_TLS_KEY, or name the proxy in SIXSCOPE_TRUSTED_PROXIES",
      );
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname.startsWith("127.");
}
