/**
 * Controls, line and paragraph separators, and characters that change the direction or look of the
 * text around them: text from other machines must not rearrange a terminal or a page.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu;

/** The text with U+FFFD in place of each character that is not safe to print. */
export function printable(text: string): string {
  return text.replace(UNSAFE, "\ufffd");
}

/**
 * Decodes UTF-8 from another machine, without NULs at its end, and cuts it to `maxCharacters` code
 * points. U+FFFD replaces invalid UTF-8 and characters that are not safe to print.
 */
export function safeText(bytes: Uint8Array, maxCharacters: number): string {
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  const text = printable(new TextDecoder().decode(bytes.subarray(0, end)));
  return [...text].slice(0, maxCharacters).join("");
}

/** Characters of an input in a message: enough to recognise it. */
const QUOTED_CHARACTERS = 80;

/** An input as messages show it: in quotes, cut if it is long. Characters that are not safe to print are escaped. */
export function quote(input: string): string {
  const shown = input.length > QUOTED_CHARACTERS ? `${input.slice(0, QUOTED_CHARACTERS)}…` : input;
  return printableJson(JSON.stringify(shown));
}

/** JSON in which characters that are not safe to print are escaped; line breaks stay. */
export function printableJson(json: string): string {
  return json.replace(UNSAFE, (character) =>
    character === "\n" ? character : character.split("").map(escaped).join(""),
  );
}

/** A UTF-16 code unit as JSON escapes it. */
function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const pluralOf = (noun: string) => `${noun}${noun.endsWith("s") ? "es" : "s"}`;

/** A count with its noun, whose plural ends in s. */
export const plural = (count: number, noun: string) =>
  `${count} ${count === 1 ? noun : pluralOf(noun)}`;

/** A part of a count: `0 of 1 SYNs`, `17 of 20 SYNs`. */
export const shareText = (some: number, all: number, noun: string) =>
  `${some} of ${all} ${pluralOf(noun)}`;

/**
 * A message of the API about a parameter, `maxHops: a number from 1 to 64.`, for people.
 *
 * @param nameOf the name of the parameter at a face: its label or its option; null for its main parameter, whose name is left out
 */
export function inTheirWords(
  message: string,
  nameOf: (parameter: string) => string | null | undefined,
): string {
  const [parameter = ""] = message.split(": ", 1);
  const name = nameOf(parameter);
  const needed = message.slice(parameter.length + 2);
  if (name === undefined) return message;
  return name === null ? capitalized(needed) : `${name}: ${needed}`;
}

/** A code for programs, such as `no-route` or `LOCATION_TIMEOUT`, in words for people. */
export function inWords(code: string): string {
  const words = code.replace(/[-_]/g, " ");
  return code.includes("_") ? words.toLowerCase() : words;
}

/** A text that begins with a capital letter. */
export const capitalized = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

/** Splits a text into its first sentence with the full stop, and the others. */
export function splitSentence(text: string): readonly [first: string, others: string] {
  const end = text.search(/[^.]\. \S/);
  return end === -1 ? [text, ""] : [text.slice(0, end + 2), text.slice(end + 3)];
}

/** A time of a document for people: `2026-11-22 08:00:00 UTC`. */
export const utcText = (iso: string, unit: "second" | "minute" = "second") =>
  `${iso.slice(0, unit === "second" ? 19 : 16).replace("T", " ")} UTC`;

const NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** A small count as a word, a large one in digits. */
export const numberText = (count: number): string => NUMBERS[count] ?? `${count}`;

const LIST = new Intl.ListFormat("en-GB");

/** `1`, `1 and 2`, `1, 2 and 3`. */
export function listText(items: readonly unknown[]): string {
  return LIST.format(items.map(String));
}

/** A percentage with at most one decimal, never 0 or 100 if that is not exact. */
export function formatPercent(percent: number): string {
  if (percent > 0 && percent < 0.05) return "<0.1 %";
  if (percent < 100 && percent >= 99.95) return ">99.9 %";
  return `${Number(percent.toFixed(1))} %`;
}

/** The first name whose condition is true; the last one must be. */
export function firstTrue<Name extends string>(conditions: Readonly<Record<Name, boolean>>): Name {
  const names = Object.keys(conditions) as Name[];
  return names.find((name) => conditions[name]) as Name;
}
