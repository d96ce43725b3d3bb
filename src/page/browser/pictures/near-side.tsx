import type { Child } from "hono/jsx/dom";
import { STEPS } from "../../../tools/here/codes.ts";
import { Outcome, type Step } from "./steps.tsx";

interface NearSideProps {
  places: readonly { readonly location: string; readonly steps: readonly Step[] }[];
  /** Below the table. */
  children?: Child;
}

/** The steps of `here` by place; nothing if no place has looked. */
export function NearSide({ places, children }: NearSideProps) {
  const names = STEPS.filter((name) =>
    places.some(({ steps }) => steps.some((step) => step.name === name)),
  );
  if (names.length === 0) return null;
  return (
    <section class="part">
      <h2 class="side soft">Near side</h2>
      <div>
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
            {places.map(({ location, steps }) => (
              <tr>
                <th scope="row">{location}</th>
                {names.map((name) => (
                  <td>
                    <Outcome steps={steps.filter((step) => step.name === name)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
        {children}
      </div>
    </section>
  );
}
