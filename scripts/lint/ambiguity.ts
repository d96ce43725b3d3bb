/**
 * Finds regular expressions that take more than linear time for some text: those where a repetition can begin at
 * several places of one text and end at the same one, so that a text that does not match at last is tried each way.
 */
import { CharSet, JS } from "refa";

/** A character class of the expression; states of its automaton are the classes that have just matched. */
interface Place {
  readonly characters: CharSet;
  /** What can match next, twice if there are two ways to it. */
  readonly next: Place[];
  /** True if the expression matches once this has, whatever follows. */
  isEnd: boolean;
}

/** A part of an expression: where it begins and ends, and whether it can match nothing. */
interface Part {
  readonly first: readonly Place[];
  readonly last: readonly Place[];
  readonly isNullable: boolean;
  /** As `last` and `isNullable`, where no assertion follows that could fail. */
  readonly freeLast: readonly Place[];
  readonly isFree: boolean;
}

type Elements = ReturnType<JS.Parser["parse"]>["expression"]["alternatives"];
type Element = Elements[number]["elements"][number];

const NOTHING: Part = { first: [], last: [], isNullable: true, freeLast: [], isFree: true };

/** Counted repetitions have as many states as this, because more of them only multiply the time by a constant. */
const MAX_COPIES = 2;

const join = (from: readonly Place[], to: readonly Place[]) => {
  for (const place of from) place.next.push(...to);
};

function sequence(a: Part, b: Part): Part {
  join(a.last, b.first);
  return {
    first: a.isNullable ? [...a.first, ...b.first] : a.first,
    last: b.isNullable ? [...a.last, ...b.last] : b.last,
    isNullable: a.isNullable && b.isNullable,
    freeLast: b.isFree ? [...a.freeLast, ...b.freeLast] : b.freeLast,
    isFree: a.isFree && b.isFree,
  };
}

function either(alternatives: Elements): Part {
  const parts = alternatives.map(({ elements }) => elements.map(partOf).reduce(sequence, NOTHING));
  return {
    first: parts.flatMap(({ first }) => first),
    last: parts.flatMap(({ last }) => last),
    isNullable: parts.some(({ isNullable }) => isNullable),
    freeLast: parts.flatMap(({ freeLast }) => freeLast),
    isFree: parts.some(({ isFree }) => isFree),
  };
}

function partOf(element: Element): Part {
  switch (element.type) {
    case "CharacterClass": {
      const places = [{ characters: element.characters, next: [], isEnd: false }];
      return { first: places, last: places, isNullable: false, freeLast: places, isFree: false };
    }
    case "Alternation":
      return either(element.alternatives);
    case "Assertion": {
      // It is tried where it stands, and then the rest is tried from there.
      const { first } = either(element.alternatives);
      return { first, last: [], isNullable: true, freeLast: [], isFree: false };
    }
    case "Quantifier": {
      const { min, max, alternatives } = element;
      const copies = Math.min(max === Infinity ? Math.max(min, 1) : max, MAX_COPIES);
      let whole = NOTHING;
      for (let copy = 1; copy <= copies; copy++) {
        const once = either(alternatives);
        if (max === Infinity && copy === copies) join(once.last, once.first);
        const isOptional = copy > min;
        whole = sequence(whole, {
          ...once,
          isNullable: once.isNullable || isOptional,
          isFree: once.isFree || isOptional,
        });
      }
      return whole;
    }
    default:
      throw new Error(`cannot judge ${element.type}`);
  }
}

/** The characters behind which a match can begin: none with `^`, the ends of lines with its flag m, else all. */
function charactersBefore(alternatives: Elements, all: CharSet): CharSet {
  const sets = alternatives.map(({ elements: [head] }) => {
    if (head?.type !== "Assertion" || head.kind !== "behind" || !head.negate) return all;
    const [only, ...others] = head.alternatives.flatMap(({ elements }) => elements);
    return only?.type === "CharacterClass" && others.length === 0 ? only.characters.negate() : all;
  });
  return sets.reduce((union, set) => union.union(set));
}

/** The places of a search, which can begin anywhere in a text. */
function placesOf(source: string, flags: string): readonly Place[] {
  const { expression } = JS.Parser.fromLiteral({ source, flags }).parse();
  const whole = either(expression.alternatives);
  for (const place of whole.freeLast) place.isEnd = true;
  const all = CharSet.all(/[uv]/.test(flags) ? 0x10ffff : 0xffff);
  const before = charactersBefore(expression.alternatives, all);
  const behind: Place = { characters: before, next: [...whole.first], isEnd: false };
  const skipped: Place = { characters: all, next: [behind], isEnd: false };
  skipped.next.push(skipped);
  return reachable(before.isEmpty ? whole.first : [skipped, ...whole.first], ({ next }) => next);
}

/** All that can be reached from some, themselves included. */
function reachable<T>(begin: readonly T[], next: (one: T) => Iterable<T>): readonly T[] {
  const found = new Set(begin);
  for (const one of found) for (const other of next(one)) found.add(other);
  return [...found];
}

/** Several ways of one text: the place of each, and whether they have parted. */
interface Ways {
  readonly at: readonly Place[];
  readonly haveParted: boolean;
}

/**
 * Says how long a search can take, by the criteria of Weber and Seidl, "On the degree of ambiguity of finite
 * automata" (1991): `exponential` if some text leads from a place to itself in two ways; `polynomial` if some text
 * leads from one place to itself, from there to another, and from that to itself; null if neither is true, and the
 * time is linear.
 *
 * @throws Error for an expression with a backreference
 */
export function ambiguityOf(source: string, flags: string): "exponential" | "polynomial" | null {
  const places = placesOf(source, flags);
  const ids = new Map(places.map((place, index) => [place, index]));
  const lead = (from: readonly Place[], to: readonly Place[]) => {
    const known = new Map<string, Ways>();
    /** The ways on by one more character; the last one does not cross an end, where nothing fails any more. */
    const steps = function* ({ at, haveParted }: Ways) {
      const branches = at.reduce<number[][]>(
        (all, { next }) => all.flatMap((ways) => [...next.keys()].map((way) => [...ways, way])),
        [[]],
      );
      for (const ways of branches) {
        const on = ways.map((way, index) => at[index]?.next[way] as Place);
        const common = on.map(({ characters }) => characters).reduce((a, b) => a.intersect(b));
        if (common.isEmpty || on.at(-1)?.isEnd) continue;
        const parted = haveParted || new Set(at).size > 1 || new Set(ways).size > 1;
        const key = `${on.map((place) => ids.get(place))} ${parted}`;
        yield known.getOrInsertComputed(key, () => ({ at: on, haveParted: parted }));
      }
    };
    const found = reachable([...steps({ at: from, haveParted: false })], steps);
    return found.some(
      ({ at, haveParted }) => haveParted && at.every((place, index) => place === to[index]),
    );
  };
  const repeated = places.filter((place) =>
    reachable(place.next, ({ next }) => next).includes(place),
  );
  if (repeated.some((place) => lead([place, place], [place, place]))) return "exponential";
  const isPolynomial = repeated.some((one) =>
    repeated.some((other) => one !== other && lead([one, one, other], [one, other, other])),
  );
  return isPolynomial ? "polynomial" : null;
}
