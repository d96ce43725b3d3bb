/** Characters of an input that a message repeats at most. */
const QUOTED_CHARACTERS = 60;

/** Where and why a parser stopped; a parser fills it in for a caller that wants to know. */
export interface Stop {
  reason: string;
  /** Offset into the input, in UTF-16 code units from 0. */
  position: number;
}

/** Text that is not what it should be: the message quotes it and says where and why parsing stopped. */
export class AddressError extends Error {
  override readonly name = "AddressError";
  /** The text as it was received. */
  readonly input: string;
  /** Why parsing stopped, without the input: `"::" stands twice`. */
  readonly reason: string;
  /** Where parsing stopped: an offset into `input`, in UTF-16 code units from 0. */
  readonly position: number;

  /** @param expected what the text should have been, with its article: `an IPv6 address` */
  constructor(expected: string, input: string, { reason, position }: Readonly<Stop>) {
    super(`${quote(input)} is not ${expected}: ${reason} (at character ${position + 1})`);
    this.input = input;
    this.reason = reason;
    this.position = position;
  }
}

/** Notes where and why a parser stopped, if anybody asks; returns null, the failed parser's result. */
export function stopped(stop: Stop | null, reason: string, position: number): null {
  if (stop !== null) {
    stop.reason = reason;
    stop.position = position;
  }
  return null;
}

/** What `read` makes of the text; throws AddressError where it stops. `expected` is as in AddressError. */
export function readOrThrow<Value>(
  read: (text: string, stop: Stop) => Value | null,
  text: string,
  expected: string,
): Value {
  const stop: Stop = { reason: "", position: 0 };
  const value = read(text, stop);
  if (value === null) throw new AddressError(expected, text, stop);
  return value;
}

/** The input in quotes, cut to a bounded length, with everything but printable ASCII escaped. */
function quote(input: string): string {
  const start = input.slice(0, QUOTED_CHARACTERS);
  const safe = JSON.stringify(start).replace(/[^\x20-\x7e]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
  return start.length < input.length ? `${safe}… (${input.length} characters)` : safe;
}
