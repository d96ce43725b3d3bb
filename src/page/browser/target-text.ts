/** Characters that people write around a host: quotes, brackets, and punctuation. */
const BEFORE = /^[\s<"'`(“„‘«»]+/;
const BEHIND = /[\s>"'`),;”“’»«]/;

/** DNS names that may contain such characters: escaped ones, and reverse names of parts of a network (RFC 2317). */
const ODD_NAME = /\\|\.arpa\.?$/i;

/**
 * The name or the address in a pasted text: a URL, an address with brackets, a port or a prefix length, an e-mail
 * address. Any other text is the target itself.
 */
export function targetIn(pasted: string): string {
  const characters = [...pasted.replace(BEFORE, "")];
  const end = characters.findLastIndex((character) => !BEHIND.test(character));
  const text = characters.slice(0, end + 1).join("");
  if (ODD_NAME.test(text)) return pasted.trim();
  const host = text
    .replace(/^(?:[a-z][a-z\d+.-]*:\/\/|(?:mailto|sips?|xmpp):)/i, "")
    .replace(/[/?#].*/s, "")
    .replace(/^.*@/s, "")
    .replace(/^\[([^\]]*)\](?::\d*)?$/, "$1")
    // A text with several colons is an address.
    .replace(/^([^:]+):\d{1,5}$/, "$1")
    .replace("%25", "%");
  return host === "" ? pasted.trim() : host;
}
