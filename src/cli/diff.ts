/** `sixscope diff`: the differences between results, as watches compare them. */
import { parseForeign } from "../api/foreign.ts";
import { reasonOf } from "../util/errors.ts";
import { quote } from "../util/text.ts";
import { diff, isDocument, toolOf } from "../watch/diff.ts";
import { createScreen } from "./screen.ts";

/** Exit statuses. */
const STATUS = { same: 0, different: 1, wrong: 2 } as const;

/** Bytes of a file or a line; the longest result of a tool has fewer. */
const MAX_BYTES = 64 * 1024 * 1024;

const NO_RESULT = "one of the two is missing, or is not a result of a tool";

/** Two documents, and the name that identifies them in their files. */
interface Pair {
  readonly name: string;
  readonly before?: unknown;
  readonly after?: unknown;
  /** Their targets, if these differ. */
  readonly targets?: readonly string[];
}

/**
 * Compares two files that have one document, or one on each line; documents with the same target are compared. With
 * `-`, it compares the two documents on each line of standard input. Prints the differences, and returns the exit
 * status: 0 without one, 1 with one, 2 if something cannot be read or compared.
 */
export async function runDiff(
  before: string,
  after: string | undefined,
  json: boolean,
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  const gone = new AbortController();
  const screen = createScreen(environment, false, () => gone.abort());
  let status: number = STATUS.same;
  const tell = ({ name, before, after, targets }: Pair) => {
    if (name && (before === undefined || after === undefined)) {
      status = Math.max(status, STATUS.different);
      return screen.complain(`${name} is only in the ${after ? "second" : "first"} file`);
    }
    const differences = differencesOf(before, after);
    if (targets) screen.complain(`the two are about ${targets.map(quote).join(" and ")}`);
    if (differences.length > 0) status = Math.max(status, STATUS.different);
    if (json) return screen.writeJson(JSON.stringify({ ...(name && { name }), differences }));
    screen.print(...differences.map(({ text }) => [`${name && `${name}: `}${text}`]));
  };
  const refuse = (error: unknown) => {
    status = STATUS.wrong;
    screen.complain(reasonOf(error));
  };
  try {
    for await (const pair of after === undefined ? pairsOfInput() : pairsOf(before, after)) {
      if (gone.signal.aborted) break;
      try {
        tell(pair);
      } catch (error) {
        refuse(error);
      }
    }
  } catch (error) {
    refuse(error);
  }
  await screen.flush();
  return status;
}

/** @throws Error if they cannot be compared */
function differencesOf(before: unknown, after: unknown) {
  try {
    return compare(before, after);
  } catch (error) {
    // A part of a document has another type.
    throw error instanceof TypeError ? new Error(NO_RESULT) : error;
  }
}

function compare(before: unknown, after: unknown) {
  if (!isDocument(before) || !isDocument(after)) throw new Error(NO_RESULT);
  const [tool, other] = [toolOf(before), toolOf(after)];
  if (tool === null || other === null || tool === other) return diff(before, after);
  throw new Error(`results of two tools cannot be compared, ${tool} and ${other}`);
}

/** The pairs on the lines of standard input. */
async function* pairsOfInput(): AsyncGenerator<Pair> {
  for await (const line of console) {
    const pair = Object(parseForeign(line, MAX_BYTES)) as Omit<Pair, "name">;
    if (line.trim() !== "") yield { name: "", before: pair.before, after: pair.after };
  }
}

/** The documents of two files in pairs by their names; if each file has one document, these two. */
async function* pairsOf(before: string, after: string): AsyncGenerator<Pair> {
  const [ones, others] = [await read(before), await read(after)];
  const [[first] = [], [second] = []] = [[...ones], [...others]];
  if (first && second && ones.size === 1 && others.size === 1) {
    const [[one, before], [other, after]] = [first, second];
    return yield { name: "", before, after, ...(one !== other && { targets: [one, other] }) };
  }
  for (const name of new Set([...ones.keys(), ...others.keys()])) {
    yield { name, before: ones.get(name), after: others.get(name) };
  }
}

/**
 * The document of a file, or those on its lines, by target.
 *
 * @throws Error if there is none, or one that is not JSON
 */
async function read(path: string): Promise<ReadonlyMap<string, unknown>> {
  const text = await Bun.file(path).text();
  const whole = parseForeign(text, MAX_BYTES);
  const lines =
    whole === undefined ? text.split("\n").filter((line) => line.trim() !== "") : [text];
  if (lines.length === 0) throw new Error(`${path} has no document`);
  const documents = lines.map((line, at): [string, unknown] => {
    const document = parseForeign(line, MAX_BYTES);
    if (document === undefined) throw new Error(`line ${at + 1} of ${path} is not JSON`);
    const { target, hostname = target, name = hostname } = Object(document);
    return [`${name ?? ""}`, document];
  });
  const byName = new Map(documents);
  if (byName.size === documents.length) return byName;
  throw new Error(`${path} has several documents about one target; give diff one of them`);
}
