/** The tools as the service sends them with the page. */
import { callerOf } from "../../src/page/caller.ts";
import { parseIpv6 } from "../addr/parse.ts";

export const { tools: pageTools } = callerOf(parseIpv6("::1"), true, {
  config: { familyUrls: null },
});
