import type { Handler } from "hono";
import { classifyIpv6 } from "../addr/classify.ts";
import { describeIpv6 } from "../addr/describe.ts";
import { formatIpv6, formatIpv6Expanded } from "../addr/format.ts";
import { tryParseIpv6 } from "../addr/ipv6.ts";
import type { AppEnv } from "../http/environment.ts";
import { invalidAddress } from "../http/errors.ts";
import { readParameters, textParameter } from "../http/parameters.ts";

/** The query parameters of `/validate`. */
const parameters = { address: textParameter("an IPv6 address") };

/** `GET /validate`: what an IPv6 address is, in both its text forms. */
export function validateRoute(): Handler<AppEnv> {
  return (context) => {
    const text = readParameters(context, parameters).address;
    const address = tryParseIpv6(text);
    if (address === null) throw invalidAddress(text);
    return context.json({
      valid: true,
      type: classifyIpv6(address),
      compressed: formatIpv6(address),
      expanded: formatIpv6Expanded(address),
      details: describeIpv6(address),
    });
  };
}
