import { inTheirWords } from "../../util/text.ts";
import type { PageTool } from "../caller.ts";
import { CALLER } from "./caller.ts";
import { choicesFor } from "./from-field.tsx";
import type { Run } from "./run.ts";

/** The name of the field for the subject of a tool. */
export const SUBJECT = "subject";

/** The name of the form as a whole, for errors that no field caused. */
export const FORM = "form";

export const KEY = "key";

export const FROM = CALLER.from.name;

/** The codes of errors about the subject of a tool. */
const ABOUT_SUBJECT =
  /^(?:INVALID_(?:ADDRESS|HOSTNAME)|TARGET_NOT_|HOSTNAME_NOT_|NO_IPV6_|NETWORK_UNREACHABLE)/;

/** Makes the function that returns the message of a run's error for the field that caused it, or for the form. */
export function problemsOf(current: Run | null, { options, needsKey, hasFrom }: PageTool) {
  const { code = null, message = "", details } = current?.problem ?? {};
  const about = code?.startsWith("LOCATION_") ? FROM : code === "UNAUTHORIZED" ? KEY : SUBJECT;
  const named = code === "INVALID_PARAMETER" ? details?.parameter : about;
  const hasChoice = hasFrom && current !== null && choicesFor(current.bookmark).length > 0;
  const isField =
    (named === FROM && hasChoice) ||
    (named === KEY && needsKey) ||
    options.some(({ name }) => name === named);
  const isSubject = ABOUT_SUBJECT.test(code ?? "");
  const cause = isSubject ? SUBJECT : isField ? named : FORM;
  const nameOf = (parameter: string) => options.find(({ name }) => name === parameter)?.label;
  const own = code === "INVALID_PARAMETER" ? inTheirWords(message, nameOf) : message;
  const shown = own.replaceAll("type=PTR", "record type PTR");
  return (field: string) => (field === cause && message ? shown : null);
}
