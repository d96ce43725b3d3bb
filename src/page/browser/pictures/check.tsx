import { WITH_ADDRESS } from "../../../tools/check/findings.ts";
import type { CheckDocument } from "../../../tools/check/report.ts";
import type { View } from "./picture.ts";
import { Steps } from "./steps.tsx";

/** The steps as lists: of this machine, of the name, of each address, and of the path. */
export const checkView: View<CheckDocument> = {
  insteadOfTables: ({ steps, details: { verdict } }) => (
    <Steps groups={groupsOf(steps)} isDone={verdict !== undefined} />
  ),
};

const HEADINGS: Readonly<Record<string, string>> = {
  here: "This machine",
  names: "Name",
  zone: "Name",
  compare: "IPv6 and IPv4",
};

/** Steps by what they are about, in the order of the first of each. */
function groupsOf(steps: CheckDocument["steps"]) {
  const of = ({ name, ip }: CheckDocument["steps"][number]) =>
    HEADINGS[name] ?? (WITH_ADDRESS.includes(name) ? (ip ?? "") : `Path to ${ip}`);
  return Map.groupBy(steps, of);
}
