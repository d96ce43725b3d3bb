import { existsSync } from "node:fs";
import type { Config } from "../../config/settings.ts";
import { connectToNats, type NatsSettings } from "../../locations/link.ts";
import { SUBJECTS } from "../../locations/protocol.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { reasonOf } from "../../util/errors.ts";
import { listText } from "../../util/text.ts";
import { type Finding, trying } from "./finding.ts";

/** Checks that NATS can be reached and lets this place do its part, and that the credentials are secret. */
export async function checkNats({
  nats,
  location,
}: Pick<Config, "nats" | "location">): Promise<readonly Finding[]> {
  if (nats === null) return [];
  const { credsFile } = nats;
  const isOpen = credsFile !== null && existsSync(credsFile) && everyUserMay("read", credsFile);
  const { warning } = trying(`see who can read ${credsFile}`);
  const open = warning("every user of this machine", `chmod 600 ${credsFile}`);
  return [...(isOpen ? [open] : []), await checkConnection(nats, location)];
}

async function checkConnection(settings: NatsSettings, location: string | null): Promise<Finding> {
  const { ok, problem } = trying(`connect to NATS at ${settings.servers.join(", ")}`);
  try {
    const { connection, service } = await connectToNats(settings);
    const subjects =
      location === null
        ? [SUBJECTS.here("*"), SUBJECTS.inbox(service, "*")]
        : [SUBJECTS.ask(location)];
    let refusal: Error | null = null;
    const callback = (error: Error | null) => {
      refusal ??= error;
    };
    for (const subject of subjects) connection.subscribe(subject, { callback });
    await connection.flush();
    await connection.close();
    return refusal === null
      ? ok(`it lets us subscribe to ${listText(subjects)}`)
      : problem(reasonOf(refusal), "allow it in the configuration of the NATS server");
  } catch (error) {
    const reason = reasonOf(error);
    const remedy = /certificate/i.test(reason)
      ? "set NODE_EXTRA_CA_CERTS to the PEM file of the certificate's authority"
      : "check SIXSCOPE_NATS_URL and SIXSCOPE_NATS_CREDS, and the server's log";
    return problem(reason, `${remedy}; until then, only this place can measure`);
  }
}
