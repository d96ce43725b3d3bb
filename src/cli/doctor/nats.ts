import { existsSync } from "node:fs";
import type { Config } from "../../config/settings.ts";
import { connectToNats, type NatsSettings } from "../../locations/link.ts";
import { SUBJECTS } from "../../locations/protocol.ts";
import { everyUserMay } from "../../platform/regular-file.ts";
import { ownName } from "../../platform/users.ts";
import { errorCode, reasonOf } from "../../util/errors.ts";
import { listText } from "../../util/text.ts";
import { type Finding, trying } from "./finding.ts";
import { AUTHORITIES, type SetVariable, shareWith, TRUST_ADVICE } from "./repair.ts";

/** Checks that NATS can be reached and lets this place do its part, and that the credentials are secret. */
export async function checkNats(
  { nats, location }: Pick<Config, "nats" | "location">,
  set: SetVariable,
): Promise<readonly Finding[]> {
  if (nats === null) return [];
  const { credsFile } = nats;
  const isOpen = credsFile !== null && existsSync(credsFile) && everyUserMay("read", credsFile);
  const { warning } = trying(`see who can read ${credsFile}`);
  // The service reads it as a member of its group if root owns it.
  const share = shareWith(ownName(), credsFile ?? "");
  const open = warning("every user of this machine", "keep it to the service", share);
  return [...(isOpen ? [open] : []), await checkConnection(nats, location, set)];
}

async function checkConnection(settings: NatsSettings, location: string | null, set: SetVariable) {
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
      : problem(
          reasonOf(refusal),
          "allow it in the configuration of the NATS server, or name the place that it allows",
          location && set("SIXSCOPE_LOCATION", "PLACE"),
        );
  } catch (error) {
    const reason = reasonOf(error);
    const until = "until then, only this place can measure";
    const { credsFile } = settings;
    if (errorCode(error) === "EACCES" && credsFile !== null) {
      return problem(reason, `let the service read it; ${until}`, shareWith(ownName(), credsFile));
    }
    if (/certificate/i.test(reason)) {
      return problem(reason, `${TRUST_ADVICE}; ${until}`, set(AUTHORITIES, "AUTHORITY.pem"));
    }
    const remedy = "check SIXSCOPE_NATS_URL and SIXSCOPE_NATS_CREDS, and the server's log";
    return problem(reason, `${remedy}; ${until}`);
  }
}
