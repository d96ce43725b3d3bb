import type { Validation } from "../../../tools/validate/result.ts";
import { digitsOf, PARTS, partsOf } from "./address-parts.ts";
import type { View } from "./picture.ts";

/** The 128 bits of an address: eight groups of hex digits, and the bits of each below it. */
export const validateView: View<Validation> = {
  figure(validation) {
    const parts = partsOf(validation);
    const groups = validation.expanded.split(":");
    return (
      <figure class="bits" aria-label="The 128 bits">
        <div class="groups" aria-hidden="true">
          {groups.map((group, at) => (
            <div class="group">
              {[...group].map((digit, index) => (
                <div class={`digit part-${parts[4 * at + index]}`}>
                  <span>{digit}</span>
                  <Nibble digit={digit} />
                </div>
              ))}
            </div>
          ))}
        </div>
        <figcaption>
          <ul class="legend cluster">
            {[...new Set(parts)].map((part) => (
              <li>
                <span class={`swatch part-${part}`} aria-hidden="true" /> {PARTS[part]}{" "}
                <span class="mono">{digitsOf(part, groups.join(""), parts)}</span>
              </li>
            ))}
          </ul>
        </figcaption>
      </figure>
    );
  },
};

/** Four bits: those that are set are filled. */
function Nibble({ digit }: { digit: string }) {
  const value = Number.parseInt(digit, 16);
  return (
    <svg viewBox="0 0 17 5" class="nibble" aria-hidden="true">
      {[8, 4, 2, 1].map((bit, index) => (
        <rect x={index * 4 + 0.5} class={value & bit ? "set" : "clear"} />
      ))}
    </svg>
  );
}
