import { MAX_CHAIN_LINKS } from "./limits.ts";
import type { Message } from "./message.ts";
import type { RecordType, ResourceRecord } from "./record.ts";
import { RCODE } from "./response-code.ts";

/**
 * What a reply says about the question, with the records that belong to it: the CNAME chain from the
 * question's name on, in order, then the records asked for at its end.
 * - `answer`: there are records of the type asked for;
 * - `no-data`: the end of the chain exists without such records; RFC 2308 section 2.2;
 * - `name-error`: the end of the chain does not exist; RFC 6604 section 2;
 * - `failure`: the server did not answer the question;
 * - `malformed`: the chain is a loop or has no end within 16 links.
 */
export interface Interpretation {
  readonly kind: "answer" | "no-data" | "name-error" | "failure" | "malformed";
  readonly records: readonly ResourceRecord[];
}

/** @param name the name that was asked for, in canonical form */
export function interpret(message: Message, name: string, type: RecordType): Interpretation {
  const { rcode } = message;
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return { kind: "failure", records: [] };
  const byOwner = Map.groupBy(message.answers, ({ owner }) => owner.toLowerCase());
  const chain: ResourceRecord[] = [];
  let end = name.toLowerCase();
  for (;;) {
    const records = byOwner.get(end) ?? [];
    const wanted = records.filter((record) => record.type === type);
    if (wanted.length > 0 && rcode === RCODE.NOERROR) {
      return { kind: "answer", records: [...chain, ...wanted] };
    }
    const link = records.find((record) => record.type === "CNAME");
    if (link === undefined) break;
    // A loop has no end either, so that counting finds it.
    if (chain.length === MAX_CHAIN_LINKS) return { kind: "malformed", records: [] };
    chain.push(link);
    end = link.data.toLowerCase();
  }
  return { kind: rcode === RCODE.NXDOMAIN ? "name-error" : "no-data", records: chain };
}
