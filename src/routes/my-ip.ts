import type { Handler } from "hono";
import { formatIp } from "../addr/ip.ts";
import type { AppEnv } from "../http/environment.ts";

/** `GET /myip`: the address that the caller's connection comes from. */
export function myIpRoute(): Handler<AppEnv> {
  return (context) => {
    const { address } = context.var.caller;
    if (address === null) {
      throw new Error(
        "the proxy on the unix socket sent no X-Forwarded-For, so the client's address is unknown",
      );
    }
    return context.json({
      ip: formatIp(address),
      version: address.version,
      isIPv6: address.version === 6,
    });
  };
}
