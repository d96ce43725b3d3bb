/** Bytes of a label; RFC 1035 section 2.3.4. */
export const MAX_LABEL_BYTES = 63;

/** Bytes of a name on the wire, with length bytes and the root; RFC 1035 section 2.3.4. */
export const MAX_NAME_BYTES = 255;

/** Characters of a host name without its trailing dot: what 255 bytes on the wire leave. */
export const MAX_HOSTNAME_LENGTH = 253;

/** Compression pointers in one name: a name of 255 bytes has at most 127 labels, so more never help. */
export const MAX_POINTERS = 126;

/** UTF-16 code units of a name beyond ASCII: above all that can end in 253 characters; bounds the work of converting it. */
export const MAX_UNICODE_HOSTNAME_LENGTH = 1024;

/** Bytes of a message: what the length field of TCP can say; RFC 1035 section 4.2.2. */
export const MAX_MESSAGE_BYTES = 65_535;

/** Bytes of a query: header, the longest question, and an OPT record without options, rounded up. */
export const MAX_QUERY_BYTES = 320;

/** Bytes of a datagram that we ask for: passes every usual path without fragments; dnsflagday.net/2020. */
export const EDNS_PAYLOAD_BYTES = 1232;

/** CNAME records followed in one answer; what common resolvers follow at most. */
export const MAX_CHAIN_LINKS = 16;

/** Extended errors kept of one reply; resolvers send one to three. */
export const MAX_EXTENDED_ERRORS = 8;

/** Characters kept of an extended error's text, which RFC 8914 section 2 wants to be short. */
export const MAX_EXTENDED_TEXT_LENGTH = 256;

/**
 * Characters of all values that are shown of one answer: every byte of the largest message as `\DDD`.
 * Only compressed names get beyond it, two bytes of which can stand for a thousand characters.
 */
export const MAX_ANSWER_CHARACTERS = 4 * 65_536;

/** Servers of one client; a system's resolver configuration has three. */
export const MAX_SERVERS = 16;

/** Sockets that one client holds open at the same time, of UDP and TCP together. */
export const MAX_OPEN_SOCKETS = 256;

/** Milliseconds from a question to its outcome, whatever the servers do. */
export const QUERY_TIMEOUT_MS = 5000;

/** The same for the name of a hop, which nobody wants to wait for. */
export const HOP_NAME_TIMEOUT_MS = 2000;

/**
 * Within how many milliseconds the same question is asked but once, for everybody: such as ask later
 * would get less than their time.
 */
export const SHARED_MS = 500;

/** Milliseconds that TCP gets to confirm an answer which came over UDP with its question in other case. */
export const CONFIRM_TIMEOUT_MS = 1000;

/** When the attempts begin, in milliseconds after the question, as long as none was answered. */
export const ATTEMPT_STARTS_MS: readonly number[] = [0, 1000, 2500];
