import type { HereDocument } from "../../../tools/here/report.ts";
import type { View } from "./picture.ts";
import { Outcome, Steps } from "./steps.tsx";

type Step = HereDocument["steps"][number];

/** The steps as one list, and those of several places as a table. */
export const hereView: View<HereDocument> = {
  insteadOfTables: ({ steps, details: { verdict } }) => (
    <Steps groups={[["Steps", steps]]} isDone={verdict !== undefined} />
  ),
  overPlaces(places) {
    const names = [...new Set(places.flatMap(({ document }) => document.steps.map(nameOf)))];
    return (
      <section class="part">
        <h2 class="side soft">Near side</h2>
        <table class="tried near">
          <thead>
            <tr>
              <th scope="col">Place</th>
              {names.map((name) => (
                <th scope="col">{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {places.map(({ location, document: { steps } }) => (
              <tr>
                <th scope="row">{location}</th>
                {names.map((name) => (
                  <td>
                    <Outcome steps={steps.filter((step) => nameOf(step) === name)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    );
  },
};

const nameOf = ({ name }: Step) => name;
