import type { Child } from "hono/jsx/dom";
import type { CheckResult } from "../../tools/check/result.ts";
import type { Report, Tone } from "../../tools/report.ts";
import { forwardText } from "./forward.ts";
import { Copy } from "./pictures/parts.tsx";

type Verdict = CheckResult["details"]["verdict"];

/** The first word of each answer, and its tone. */
const WORDS: Readonly<Record<Verdict["answer"], readonly [word: string, tone: Tone]>> = {
  yes: ["Yes.", "good"],
  no: ["No.", "bad"],
  partly: ["Partly.", "warn"],
  sometimes: ["Sometimes.", "warn"],
  "not-from-here": ["Not from here.", "bad"],
  "not-known": ["Not known.", "warn"],
};

/** Who can mend a fault: the label of the advice, and of the button that copies what to send. */
const READERS: Readonly<Record<NonNullable<Verdict["fault"]>, readonly [string, string]>> = {
  site: ["For the site", "Copy for the site’s operator"],
  dns: ["For the DNS", "Copy for the DNS operator"],
  path: ["For the network", "Copy for your provider"],
  here: ["For this network", "Copy for your provider"],
  unknown: ["To do", "Copy for your provider"],
};

/** An answer with what sets it apart: its first word, one sentence, what it rests on, and what to do. */
interface Parts {
  readonly tone: Tone | null;
  readonly word: string;
  readonly headline: string;
  readonly evidence: string;
}

/** A sentence with a small first letter, behind other words; names and addresses stay as they are. */
const lower = (text: string) =>
  /^[A-Z][a-z]* /.test(text) ? `${text.charAt(0).toLowerCase()}${text.slice(1)}` : text;

/** The parts of the verdict of a report, whose document may state them. */
export function partsOf(
  { tone, text }: NonNullable<Report["verdict"]>,
  stated: Partial<Verdict> | undefined,
  isRunning: boolean,
): Parts {
  const end = text.search(/[^.]\. \S/);
  const [first, rest] = end === -1 ? [text, ""] : [text.slice(0, end + 2), text.slice(end + 3)];
  const { answer, headline = first, evidence = rest } = stated ?? {};
  if (answer === undefined || isRunning) {
    const soFar = isRunning ? "So far," : "";
    const shown = isRunning ? lower(headline) : headline;
    return {
      tone: isRunning ? "warn" : tone,
      word: soFar,
      headline: shown,
      evidence: evidence ?? "",
    };
  }
  const [word, ownTone] = WORDS[answer];
  return { tone: ownTone, word, headline, evidence: evidence ?? "" };
}

interface AnswerProps {
  report: Pick<Report, "verdict" | "facts"> | null;
  /** The verdict of the document, as far as it states its parts. */
  stated?: Partial<Verdict> | undefined;
  isRunning?: boolean;
  /** Said as long as nothing is known; false if nothing is waited for. */
  waiting?: string | false;
  /** Text of the heading for whoever cannot see, where there is no answer. */
  title?: string;
  /** The level of its heading. */
  level?: 1 | 2 | 3;
}

/** The answer as a headline, which screen readers announce: first that a tool is running, then the verdict or the first fact. */
export function Answer(props: AnswerProps) {
  const { report, stated, isRunning = false, waiting = false, title = "", level = 1 } = props;
  const { verdict = null, facts: [fact] = [] } = report ?? {};
  const parts = verdict && partsOf(verdict, stated, isRunning);
  const heading = (about: string, text: Child) =>
    level === 1 ? (
      <h1 class={about}>{text}</h1>
    ) : level === 2 ? (
      <h2 class={about}>{text}</h2>
    ) : (
      <h3 class={about}>{text}</h3>
    );
  if (parts === null) {
    const fallback = fact ? `${fact.name}: ${fact.value}` : "";
    const text = waiting !== false && report === null ? waiting : fallback;
    return (
      <div class="announce" role="status">
        {waiting === false ? heading("unseen", title) : heading("answer soft", title)}
        {text && <p class={waiting === false ? "unseen" : "waiting"}>{text}</p>}
      </div>
    );
  }
  const { tone, word, headline, evidence } = parts;
  return (
    <div class={`announce verdict ${tone ?? ""}`} role="status">
      {heading(
        "answer",
        <>
          {word && <span class={tone ?? ""}>{word} </span>}
          {headline}
        </>,
      )}
      {evidence && <p class="evidence"> {evidence}</p>}
    </div>
  );
}

interface AdviceProps {
  document: CheckResult;
  /** A link to the same answer. */
  linkTo: () => Promise<string>;
}

/** For whom the answer is, what they can do, and what to send them. */
export function Advice({ document, linkTo }: AdviceProps) {
  const { verdict, startedAt } = document.details;
  const { fault, advice } = verdict;
  const [label, copy] = fault ? READERS[fault] : ["To do", null];
  const certificate = document.steps.find((step) => step.certificate)?.certificate;
  const days =
    certificate &&
    Math.floor((Date.parse(certificate.notAfter) - Date.parse(startedAt)) / 86_400_000);
  const nothing =
    days === undefined ? "Nothing." : `Nothing. The certificate ends in ${days} days.`;
  return (
    <section class="part">
      <h2 class="side soft">{label}</h2>
      <div class="advice">
        <p>{advice ?? (fault ? "Send this answer to whoever runs it." : nothing)}</p>
        {copy && <Copy text={async () => forwardText(document, await linkTo())} label={copy} />}
      </div>
    </section>
  );
}
