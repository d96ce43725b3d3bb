import type { DIFFERENCES } from "../../api/dns-schemas.ts";
import { clientGone } from "../../api/errors.ts";
import { detailsOf, type Reply } from "./reply.ts";

type Difference = (typeof DIFFERENCES)[number];

/** Replies of several resolvers side by side, and what differs. */
export function compareReplies(replies: readonly Reply[]) {
  const differences = differencesOf(replies);
  return {
    agree: differences.every((difference) => difference === "ttl"),
    differences,
    resolvers: replies.map((reply) => {
      const { outcome, resolver } = reply;
      if (outcome.kind === "aborted") throw clientGone();
      return {
        resolver,
        outcome: outcome.kind,
        records: recordsOf(reply),
        queryTime: outcome.queryTimeMs,
        ...detailsOf(reply),
      };
    }),
  };
}

/** The part of a reply that each kind of difference compares; the order of a list does not matter. */
const VIEWS: Readonly<Record<Difference, (reply: Reply) => string | readonly string[]>> = {
  records: (reply) => recordsOf(reply).map(({ type, value }) => `${type} ${value}`),
  ttl: (reply) => recordsOf(reply).map(({ type, value, ttl }) => `${type} ${value} ${ttl}`),
  rcode: ({ outcome }) => ("rcode" in outcome ? outcome.rcode : outcome.kind),
  dnssec: ({ outcome, verdict }) =>
    verdict ?? String("authenticated" in outcome && outcome.authenticated),
};

function differencesOf(replies: readonly Reply[]): Difference[] {
  const differs = (view: Difference) =>
    new Set(replies.map((reply) => JSON.stringify([VIEWS[view](reply)].flat().toSorted()))).size >
    1;
  const found = (Object.keys(VIEWS) as Difference[]).filter(differs);
  // Other records have other TTLs.
  return found.includes("records") ? found.filter((difference) => difference !== "ttl") : found;
}

function recordsOf({ outcome }: Reply) {
  return "records" in outcome ? outcome.records : [];
}
