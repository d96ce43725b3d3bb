/** The broken name that the README shows, and what a check prints of it. */

import { sixscopeProgram } from "../../lab/program.ts";
import { runIp } from "../../lab/run.ts";
import { inTerminal, screenOf } from "../../lab/terminal.ts";
import { pageUrl } from "../../page/stage.ts";
import { startStage } from "./stage.ts";

const reset = (ip: string) => `ip6 daddr ${ip} tcp dport 443 reject with tcp reset`;

/** A site with an IPv6 address whose server accepts connections to port 443 over IPv4 alone. */
const SITES = { www: { rules: (ip: string) => ({ 4: [reset(ip)] }) } };

/** The first router of the laboratory. */
const GATEWAY = "2001:db8:c001:1::2";

/** Starts the laboratory with this site. */
export async function startBrokenSite() {
  const stage = await startStage(SITES);
  // A user's machine has a way to the Internet.
  await runIp([`route add default via ${GATEWAY}`]);
  const service = await stage.service("well");
  const url = pageUrl(service);
  const name = stage.nameOf("www");
  return {
    url,
    name,
    key: service.key,
    /** The lines that `sixscope check` shows in a terminal. */
    async check(): Promise<string> {
      const asked = `SIXSCOPE_SERVER=${url} SIXSCOPE_KEY=${service.key}`;
      const [program] = await sixscopeProgram();
      const command = `${asked} ${program} check ${name} 2>/dev/null || [ $? = 1 ]`;
      return screenOf(await inTerminal(command))
        .join("\n")
        .trimEnd();
    },
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}
