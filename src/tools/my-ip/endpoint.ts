import { formatIp, type IpAddress } from "../../addr/ip.ts";
import type { Call } from "../../api/endpoint.ts";
import { endpoint } from "../services.ts";
import example from "./example.json" with { type: "json" };
import { myIpResult } from "./result.ts";

/** `GET /myip`: the address that the caller's connection comes from. */
export const myIp = endpoint({
  path: "/myip",
  operationId: "getMyIp",
  summary: "Your public address",
  description: "The address that your connection comes from, and whether it is IPv4 or IPv6.",
  needsKey: false,
  parameters: {},
  response: myIpResult,
  example,
  errors: [],
  handle(_, call, { networks }) {
    const address = addressOf(call);
    const { version } = address;
    const found = { ip: formatIp(address), version, isIPv6: version === 6 };
    const network = networks?.find(address);
    return network ? { ...found, details: { network } } : found;
  },
});

/** The address of the caller. Throws if it is unknown. */
export function addressOf({ address }: Call): IpAddress {
  if (address !== null) return address;
  throw new Error(
    "the proxy on the unix socket sent no valid X-Forwarded-For, so the client's address is unknown",
  );
}
