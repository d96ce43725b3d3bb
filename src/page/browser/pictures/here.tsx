import type { HereDocument } from "../../../tools/here/report.ts";
import type { View } from "./picture.ts";
import { Steps } from "./steps.tsx";

/** The steps as one list. */
export const hereView: View<HereDocument> = {
  insteadOfTables: ({ steps, details: { verdict } }) => (
    <Steps groups={[["Steps", steps]]} isDone={verdict !== undefined} />
  ),
};
