/** The parts that two documents share. This file imports no schemas, so the page can load it. */

interface Hop {
  readonly hop: number;
  readonly ip: string | null;
  readonly hostname: string | null;
  readonly rtt?: number | null;
  /** The median of an mtr, in place of `rtt`. */
  readonly p50?: number | null;
}

interface Path {
  readonly ip?: string | undefined;
  readonly reached?: boolean | undefined;
  readonly hops?: readonly Hop[] | undefined;
}

/** The parts of the documents of all tools that people compare. */
export interface Side extends Path {
  readonly mtu?: number | null;
  readonly steps?: readonly {
    readonly ip?: string;
    readonly certificate?: { readonly sha256: string };
  }[];
  readonly details?: {
    readonly startedAt?: string;
    readonly verdict?: { readonly code: string };
    readonly addresses?: readonly { readonly ip: string }[];
    readonly reached?: boolean;
    /** The path of a check. */
    readonly path?: Path;
  };
}

/** The path in a document, with the medians of an mtr as the times of its hops; without hops if there is none. */
export function pathOf({ ip, hops, details: { reached, path } = {} }: Side) {
  const shown: Path = path ?? { ip, hops, reached };
  const rows = shown.hops ?? [];
  return { ...shown, hops: rows.map((hop) => ({ ...hop, rtt: hop.p50 ?? hop.rtt ?? null })) };
}

/** The parts that two documents share, in words such as `verdict` and `path MTU of 1500 bytes`. */
export function sameParts(before: Side, after: Side): string[] {
  const [parts, others] = [partsOf(before), partsOf(after)];
  return Object.keys(parts).filter((name) => parts[name] && parts[name] === others[name]);
}

/** Parts as texts by their names; an empty text is not known. */
function partsOf(document: Side): Readonly<Record<string, string>> {
  const { ip, mtu, steps = [], details: { verdict, addresses = [] } = {} } = document;
  const ips = [{ ip }, ...addresses, ...steps].flatMap((each) => each.ip ?? []);
  const hops = pathOf(document).hops.map((hop) => hop.ip ?? "");
  return {
    verdict: verdict?.code ?? "",
    addresses: [...new Set(ips)].toSorted().join(" "),
    path: hops.some(Boolean) ? hops.join(" ") : "",
    [`path MTU of ${mtu} bytes`]: `${mtu ?? ""}`,
    certificate: steps.flatMap(({ certificate }) => certificate?.sha256 ?? []).join(" "),
  };
}
