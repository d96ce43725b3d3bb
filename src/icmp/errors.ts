import { TYPE } from "./message.ts";

/**
 * Names of ICMPv6 errors by type and code: RFC 4443 section 3, RFC 6550, RFC 7112, RFC 8754 and RFC
 * 8883, as the IANA registry of ICMPv6 codes has them.
 */
const NAMES: Readonly<
  Record<number, { readonly other: string; readonly codes: readonly string[] }>
> = {
  [TYPE.destinationUnreachable]: {
    other: "destination-unreachable",
    codes: [
      "no-route",
      "prohibited",
      "beyond-scope",
      "address-unreachable",
      "port-unreachable",
      "source-policy",
      "reject-route",
      "source-routing-error",
      "headers-too-long",
    ],
  },
  [TYPE.packetTooBig]: { other: "packet-too-big", codes: [] },
  [TYPE.timeExceeded]: {
    other: "time-exceeded",
    codes: ["hop-limit-exceeded", "reassembly-time-exceeded"],
  },
  [TYPE.parameterProblem]: {
    other: "parameter-problem",
    codes: [
      "erroneous-header",
      "unrecognized-next-header",
      "unrecognized-option",
      "incomplete-header-chain",
      "segment-routing-upper-layer-error",
      "unrecognized-next-header-by-intermediate-node",
      "extension-header-too-big",
      "extension-header-chain-too-long",
      "too-many-extension-headers",
      "too-many-options",
      "option-too-big",
    ],
  },
};

/** The name of an ICMPv6 error, such as `no-route` for type 1 code 0; the type's name for a code not in the table. */
export function errorName(type: number, code: number): string {
  const names = NAMES[type];
  return names?.codes[code] ?? names?.other ?? `type-${type}`;
}

/** What an error means for a trace: its sender is a hop, it is no answer at all, or the way ends there and why. */
export type TraceMeaning =
  | "hop"
  | "none"
  | "unreachable"
  | "prohibited"
  | "packet-too-big"
  | "parameter-problem";

/** Codes of Destination Unreachable that speak of a policy, not of a missing way. */
const POLICY_CODES: readonly number[] = [1, 5, 6];

/** Reads an error as an answer to a probe of a trace; RFC 4443 section 3. */
export function traceMeaning(type: number, code: number): TraceMeaning {
  switch (type) {
    case TYPE.timeExceeded:
      return code === 0 ? "hop" : "none";
    case TYPE.destinationUnreachable:
      return POLICY_CODES.includes(code) ? "prohibited" : "unreachable";
    case TYPE.packetTooBig:
      return "packet-too-big";
    case TYPE.parameterProblem:
      return "parameter-problem";
    default:
      return "none";
  }
}
