/**
 * Controls, line and paragraph separators, and what changes the direction or look of the text around
 * it: nothing that a stranger says shall rearrange a terminal or a page.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu;

const NOT_PRINTABLE_ASCII = /[^\x20-\x7e]/;

/** The text with U+FFFD for each character that is not safe to print. */
export function printable(text: string): string {
  return NOT_PRINTABLE_ASCII.test(text) ? text.replace(UNSAFE, "\ufffd") : text;
}

/**
 * The text of bytes that a stranger sent as UTF-8, without NULs at its end, cut to `maxCharacters` code
 * points; each one that is not safe to print is replaced by U+FFFD, and so is what is no UTF-8.
 */
export function safeText(bytes: Uint8Array, maxCharacters: number): string {
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  const text = printable(new TextDecoder().decode(bytes.subarray(0, end)));
  return [...text].slice(0, maxCharacters).join("");
}

/** More characters of an input than this do not help anybody to recognise it in a message. */
const QUOTED_CHARACTERS = 80;

/** An input as a message shows it: in quotes, control characters escaped, cut where it is long. */
export function quote(input: string): string {
  return JSON.stringify(
    input.length > QUOTED_CHARACTERS ? `${input.slice(0, QUOTED_CHARACTERS)}…` : input,
  );
}
