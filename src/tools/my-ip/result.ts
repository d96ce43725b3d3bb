import { z } from "zod";
import { flag, ipText, named, network } from "../../api/schemas.ts";

/** The schema of the result. */
export const myIpResult = () =>
  named("MyIp", "The address of a client.", {
    ip: ipText("The address."),
    version: z
      .literal([4, 6])
      .meta({ type: "integer", description: "The IP version of your connection." }),
    isIPv6: flag("Whether your connection is IPv6."),
    details: z
      .strictObject({ network: network() })
      .exactOptional()
      .describe("Your network; absent if the operator's files do not have it."),
  });
