import { TEXTS } from "./texts.ts";
import type { Validation } from "./types.ts";

type Part = keyof typeof TEXTS.validate.parts;

/** Hex digits of an address from one to before another, and what they are. */
type Span = readonly [from: number, to: number, part: Part];

const DIGITS = 32;

/** What surrounds an embedded IPv4 address, and where that is. */
const EMBEDDED: Readonly<Record<string, readonly Span[]>> = {
  IPv4Mapped: [[24, 32, "ipv4"]],
  IPv4Translated: [[24, 32, "ipv4"]],
  IPv4Compatible: [[24, 32, "ipv4"]],
  Nat64: [[24, 32, "ipv4"]],
  SixToFour: [[4, 12, "ipv4"]],
  Isatap: [[24, 32, "ipv4"]],
  Teredo: [
    [8, 16, "server"],
    [16, 20, "flags"],
    [20, 24, "port"],
    [24, 32, "client"],
  ],
};

/** What each hex digit of an address is part of; later spans cover earlier ones. */
export function partsOf({ type, details }: Validation): Part[] {
  const spans: Span[] = [[0, DIGITS, "prefix"]];
  if (type === "Multicast") {
    spans.push([2, 3, "flags"], [3, 4, "scope"], [4, DIGITS, "group"]);
  }
  // Sites usually have a /48, or a /8 and 40 random bits; link-local addresses have no subnets.
  if (details.interfaceId) {
    if (type !== "LinkLocal") spans.push([12, 16, "subnet"]);
    spans.push([16, DIGITS, "interface"]);
  }
  if (details.interfaceId?.kind === "Eui64") {
    spans.push([16, DIGITS, "mac"], [22, 26, "eui64"]);
  }
  if (details.interfaceId?.ipv4 !== undefined && details.interfaceId.kind === "EmbeddedIPv4") {
    const value = details.interfaceId.value.replaceAll(":", "");
    if (value.startsWith("00000000")) spans.push([24, DIGITS, "ipv4"]);
  }
  for (const { mechanism } of details.embeddedIPv4 ?? [])
    spans.push(...(EMBEDDED[mechanism] ?? []));
  return spans.reduce<Part[]>(
    (digits, [from, to, part]) => digits.fill(part, from, to),
    new Array<Part>(DIGITS),
  );
}

/** The 128 bits of an address: eight groups of hex digits, and the bits of each below it. */
export function Bits({ validation }: { validation: Validation }) {
  const parts = partsOf(validation);
  const digits = [...validation.expanded.replaceAll(":", "")];
  const groups = Array.from({ length: 8 }, (_, group) => group * 4);
  const shown = [...new Set(parts)];
  return (
    <figure class="bits" aria-label={TEXTS.validate.bits}>
      <div class="groups" aria-hidden="true">
        {groups.map((first) => (
          <div class="group">
            {digits.slice(first, first + 4).map((digit, index) => (
              <div class={`digit part-${parts[first + index]}`}>
                <span>{digit}</span>
                <Nibble digit={digit} />
              </div>
            ))}
          </div>
        ))}
      </div>
      <figcaption>
        <ul class="legend">
          {shown.map((part) => (
            <li>
              <span class={`swatch part-${part}`} aria-hidden="true" /> {TEXTS.validate.parts[part]}{" "}
              <span class="mono">{textOf(digits, parts, part)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

/** Four bits: those that are set are filled. */
function Nibble({ digit }: { digit: string }) {
  const value = Number.parseInt(digit, 16);
  return (
    <svg viewBox="0 0 17 5" class="nibble" aria-hidden="true">
      {[8, 4, 2, 1].map((bit, index) => (
        <rect
          x={index * 4 + 0.5}
          y={0.5}
          width={3.4}
          height={4}
          rx={0.6}
          class={value & bit ? "set" : "clear"}
        />
      ))}
    </svg>
  );
}

/** The digits of a part, with colons where groups end. */
function textOf(digits: readonly string[], parts: readonly Part[], part: Part): string {
  let text = "";
  for (const [index, digit] of digits.entries()) {
    if (parts[index] !== part) continue;
    const hasColon = text !== "" && (index % 4 === 0 || parts[index - 1] !== part);
    text += hasColon ? `:${digit}` : digit;
  }
  return text;
}
