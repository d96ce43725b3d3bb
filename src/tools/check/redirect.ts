import { formatIpv6 } from "../../addr/format.ts";
import { tryParseIp } from "../../addr/ip.ts";
import { lookupAddresses } from "../../dns/client.ts";
import { parseHostname } from "../../dns/hostname.ts";
import { isDecisive } from "../../dns/outcome.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { inWords, quote } from "../../util/text.ts";
import type { Services } from "../services.ts";
import { type Finding, isFailure } from "./findings.ts";
import { type Found, hasFailed } from "./ledger.ts";
import { judgePolicy } from "./policy.ts";
import { authorityOf, PLAIN_PORT, type Service, TLS_PORT } from "./service.ts";
import { clip, type Redirect, type Through, transact } from "./transaction.ts";

/** Redirects that are followed; browsers follow twenty. */
const MAX_REDIRECTS = 5;

/** Addresses of a target that are tried. */
const MAX_TRIED = 2;

/** The services that decide where a redirect may lead. */
type Asked = Pick<Services, "config" | "resolvers">;

const urlOf = (service: Service) =>
  new URL(service.path ?? "/", `${service.isTls ? "https" : "http"}://${authorityOf(service)}`)
    .href;

/** Follows a redirect over IPv6, as a browser does, and says what is wrong at its destination; null if nothing is. */
export async function followRedirect(
  from: Service,
  redirect: Redirect,
  through: Omit<Through, "depth">,
  services: Asked,
): Promise<Found | null> {
  const seen = new Set([urlOf(from)]);
  let [service, { to: next, setsCookie }] = [from, redirect];
  while (true) {
    const url = URL.parse(next, urlOf(service));
    const broken = (why: string, finding: Finding = "redirect-broken") => {
      return { finding, text: `It redirects to ${quote(clip(url?.href ?? next))}, ${why}.` };
    };
    if (url === null || !/^https?:$/.test(url.protocol))
      return broken("which is no page of the web");
    // With its cookie, a server may answer differently for the same page.
    if (seen.has(url.href) && setsCookie) return null;
    if (seen.has(url.href)) return broken("where it came from", "redirect-loop");
    if (seen.size > MAX_REDIRECTS)
      return broken(`after ${MAX_REDIRECTS} other redirects`, "redirect-loop");
    seen.add(url.href);
    const isTls = url.protocol === "https:";
    const port = Number(url.port) || (isTls ? TLS_PORT : PLAIN_PORT);
    if (!services.config.probePorts.some(([least, most]) => least <= port && port <= most)) {
      return broken(`and port ${port} is not one that this service may connect to`);
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const name = tryParseIp(host) === null ? host : null;
    const ips =
      host === service.name ? [service.ip] : await addressesOf(host, services, through.signal);
    if (ips === null) return null;
    if (ips.length === 0) return broken("which has no IPv6 address", "redirect-without-ipv6");
    let why: string | null = "whose address this service may not connect to";
    let behind: Redirect | undefined;
    let left = MAX_TRIED;
    for (const ip of ips) {
      if (left === 0 || why === null) break;
      if (isFailure(judgePolicy(ip, services, await isOwnAddress(ip)).finding)) continue;
      left--;
      why = null;
      service = { ip, port, name, isTls, path: url.pathname + url.search };
      behind = await transact(service, { ...through, depth: "request" }, (part) => {
        const silence = `no connection comes about (${inWords(`${part.reason}`)})`;
        if (hasFailed(part)) why = `and there: ${(part.text ?? silence).replace(/\.$/, "")}`;
      });
    }
    if (why !== null) return broken(why);
    if (behind === undefined) return null;
    next = behind.to;
    setsCookie ||= behind.setsCookie;
  }
}

/** The IPv6 addresses of a host in a URL; null if the resolver does not say. */
async function addressesOf(host: string, { config, resolvers }: Asked, signal: AbortSignal) {
  const ip = tryParseIp(host);
  if (ip !== null) return ip.version === 6 ? [host] : [];
  const parsed = parseHostname(host, "AAAA");
  if (!parsed.ok) return null;
  const client = resolvers[config.targetResolver];
  const { outcome, addresses } = await lookupAddresses(client, parsed.name, { signal });
  if (addresses.length > 0) return addresses.map(formatIpv6);
  return isDecisive(outcome) ? [] : null;
}
