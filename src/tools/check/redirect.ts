import { formatIpv6 } from "../../addr/format.ts";
import { tryParseIp } from "../../addr/ip.ts";
import { lookupAddresses } from "../../dns/client.ts";
import { parseHostname } from "../../dns/hostname.ts";
import { isOwnAddress } from "../../gate/connection.ts";
import { inWords, printable, quote } from "../../util/text.ts";
import type { Services } from "../services.ts";
import type { Finding } from "./findings.ts";
import { judgePolicy } from "./judge.ts";
import {
  hostOf,
  type Part,
  PLAIN_PORT,
  type Service,
  type Through,
  TLS_PORT,
  transact,
} from "./transaction.ts";

/** Redirects that are followed; browsers follow twenty. */
const MAX_REDIRECTS = 5;

/** Addresses of a target that are tried. */
const MAX_TRIED = 2;

const MAX_TEXT = 200;

/** Follows a redirect over IPv6, as a browser does, and says what is wrong with where it leads; null if nothing is. */
export async function followRedirect(
  from: Service,
  location: string,
  through: Omit<Through, "depth">,
  services: Pick<Services, "config" | "resolvers">,
): Promise<{ readonly finding: Finding; readonly text: string } | null> {
  const urlOf = ({ isTls, port, path = "/", ...service }: Service) =>
    new URL(path, `${isTls ? "https" : "http"}://${hostOf(service)}:${port}`).href;
  const seen = new Set([urlOf(from)]);
  let [service, next]: [Service, string] = [from, location];
  for (let count = 1; ; count++) {
    const url = URL.parse(next, urlOf(service));
    const shown = quote(printable((url?.href ?? next).slice(0, MAX_TEXT)));
    const broken = (why: string, finding: Finding = "redirect-broken") => {
      return { finding, text: `It redirects to ${shown}, ${why}.` };
    };
    if (url === null || !/^https?:$/.test(url.protocol))
      return broken("which is no page of the web");
    if (seen.has(url.href)) return broken("where it came from", "redirect-loop");
    if (count > MAX_REDIRECTS)
      return broken(`after ${MAX_REDIRECTS} other redirects`, "redirect-loop");
    seen.add(url.href);
    const isTls = url.protocol === "https:";
    const port = Number(url.port) || (isTls ? TLS_PORT : PLAIN_PORT);
    if (!services.config.probePorts.some(([least, most]) => least <= port && port <= most)) {
      return broken(`and port ${port} is not one that this service may connect to`);
    }
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const name = tryParseIp(host) === null ? host : null;
    const ips = host === service.name ? [service.ip] : await addressesOf(host, through, services);
    if (ips === null) return null;
    if (ips.length === 0) return broken("which has no IPv6 address", "redirect-without-ipv6");
    const allowed: string[] = [];
    for (const ip of ips) {
      const { finding } = judgePolicy(ip, services, await isOwnAddress(ip));
      if (finding === undefined || finding === "special-address") allowed.push(ip);
    }
    if (allowed.length === 0) return broken("whose address this service may not connect to");
    let failure: Part | undefined;
    let to: string | undefined;
    for (const ip of allowed.slice(0, MAX_TRIED)) {
      failure = undefined;
      service = { ip, port, name, isTls, path: url.pathname + url.search };
      to = await transact(service, { ...through, depth: "request" }, (part) => {
        if (part.reason !== null) failure = part;
      });
      if (failure === undefined) break;
    }
    if (failure)
      return broken(
        `and there: ${failure.text ?? `no connection comes about (${inWords(`${failure.reason}`)}).`}`.replace(
          /\.$/,
          "",
        ),
      );
    if (to === undefined) return null;
    next = to;
  }
}

/** The IPv6 addresses of a host in a URL; null if the resolver does not say. */
async function addressesOf(
  host: string,
  { signal }: Pick<Through, "signal">,
  { config, resolvers }: Pick<Services, "config" | "resolvers">,
): Promise<string[] | null> {
  const ip = tryParseIp(host);
  if (ip !== null) return ip.version === 6 ? [host] : [];
  const parsed = parseHostname(host, "AAAA");
  if (!parsed.ok) return null;
  const client = resolvers[config.targetResolver];
  const { outcome, addresses } = await lookupAddresses(client, parsed.name, { signal });
  if (addresses.length > 0) return addresses.map(formatIpv6);
  return ["no-data", "name-error"].includes(outcome.kind) ? [] : null;
}
