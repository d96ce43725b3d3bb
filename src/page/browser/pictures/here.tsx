import type { HereDocument } from "../../../tools/here/report.ts";
import { NearSide } from "./near-side.tsx";
import type { View } from "./picture.ts";
import { Steps } from "./steps.tsx";

/** The steps as one list, and those of several places as a table. */
export const hereView: View<HereDocument> = {
  insteadOfTables: ({ steps, details: { verdict } }) => (
    <Steps groups={[["Steps", steps]]} isDone={verdict !== undefined} />
  ),
  overPlaces: (places) => (
    <NearSide places={places.map(({ location, document: { steps } }) => ({ location, steps }))} />
  ),
};
