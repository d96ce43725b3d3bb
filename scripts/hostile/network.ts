/** A network that does everything which the rules forbid, beside a part that keeps them. */
import type {
  AnswerRule,
  Change,
  Destination,
  InternetDescription,
  Router,
} from "../../test/lab/internet-description.ts";
import { below, pick, type Random, randomBytes } from "./random.ts";

/** An address that answers as it should, behind routers that do. */
export const HONEST_TARGET = "2001:db8:600d::1";

const MOST_ROUTERS = 64;

/** Errors in place of an answer: every type and code, defined or not. */
const ERROR_TYPES = [0, 1, 2, 3, 4, 5, 100, 127] as const;
const MOST_CODES = 10;

/** A new network, and targets in its hostile part. */
export function hostileNetwork(random: Random): {
  readonly description: InternetDescription;
  readonly targets: readonly string[];
} {
  const chain = (part: number, about: (at: number) => Partial<Router>, length = MOST_ROUTERS) =>
    Array.from({ length }, (_, at) => ({
      address: `2001:db8:bad:${part}:${at + 1}::1`,
      ...about(at),
    }));
  const extensions = () =>
    random() < 0.5
      ? randomBytes(random, 4 * below(random, 64))
      : Array.from({ length: 16 }, () => ({
          label: below(random, 2 ** 20),
          trafficClass: below(random, 8),
          hopLimit: below(random, 256),
        }));
  const kinds: readonly Omit<Destination, "to">[] = [
    { routers: chain(1, () => ({ isMany: true, extensions: extensions() })), end: "blackhole" },
    { routers: chain(2, () => ({ isMany: true, rules: [lie(random), lie(random)] })) },
    {
      routers: chain(3, () => ({ rules: [lie(random)], lengthField: below(random, 256) })),
      end: { loopOf: 1 + below(random, 8) },
    },
    {
      routers: chain(4, () => ({ claimedMtu: pick(random, [0, 68, 1279, 70_000]), mtu: 1280 }), 8),
    },
    ...ERROR_TYPES.map((type, at) => ({
      routers: chain(5 + at, () => ({
        isMany: random() < 0.5,
        error: { type, code: below(random, MOST_CODES) },
      })),
    })),
    {
      balanceBy: "checksum" as const,
      equalPaths: Array.from({ length: 16 }, (_, way) => ({
        routers: chain(32 + way, () => ({ isMany: true, extensions: extensions() }), 16),
      })),
    },
    { end: { rules: [{ copies: 64, beside: true }] } },
  ];
  const evil = kinds.map((kind, at) => ({ to: `2001:db8:e${at.toString(16)}::/48`, ...kind }));
  const honest = chain(0, () => ({}), 3);
  const destinations = [...evil, { to: HONEST_TARGET, routers: honest }] as Destination[];
  return { description: { destinations }, targets: evil.map(({ to }) => to.replace("/48", "1")) };
}

/** Something that a router sends beside its answer, or in place of it. */
function lie(random: Random): AnswerRule {
  return {
    change: pick<Change>(random, [
      "garbage",
      "cookie",
      "destination",
      { cutTo: below(random, 100) },
    ]),
    copies: 1 + below(random, 4),
    afterMs: below(random, 3000),
    beside: random() < 0.5,
  };
}
