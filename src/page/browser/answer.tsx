import type { CheckResult } from "../../tools/check/result.ts";
import type { Report, Tone } from "../../tools/report.ts";
import { DAY_MS } from "../../util/clock.ts";
import { capitalized, inWords, splitSentence } from "../../util/text.ts";
import { forwardText } from "./forward.ts";
import { Copy } from "./pictures/parts.tsx";

type Verdict = CheckResult["details"]["verdict"];

/** The tone of each answer. */
const TONES: Readonly<Record<Verdict["answer"], Tone>> = {
  yes: "good",
  no: "bad",
  partly: "warn",
  sometimes: "warn",
  "not-from-here": "bad",
  "not-known": "warn",
};

/** The labels by the one who can mend a fault: of the advice, and of the button that copies what to send. */
const READERS: Readonly<Record<NonNullable<Verdict["fault"]>, readonly [string, string]>> = {
  site: ["For the site", "Copy for the site’s operator"],
  dns: ["For the DNS", "Copy for the DNS operator"],
  path: ["For the network", "Copy for your provider"],
  here: ["For this network", "Copy for your provider"],
  unknown: ["To do", "Copy for your provider"],
};

/** An answer: its tone, its first word, one sentence, and the evidence. */
interface Parts {
  readonly tone: Tone | null;
  readonly word: string;
  readonly headline: string;
  readonly evidence: string;
}

/** A sentence with a small first letter, to follow other words; names and addresses keep theirs. */
const lower = (text: string) =>
  /^[A-Z][a-z]* /.test(text) ? `${text.charAt(0).toLowerCase()}${text.slice(1)}` : text;

/** The parts of a report's verdict; a document may state them itself. */
export function partsOf(
  { tone, text }: NonNullable<Report["verdict"]>,
  stated: Partial<Verdict> | undefined,
  isRunning: boolean,
): Parts {
  const [first, rest] = splitSentence(text);
  const { answer, headline = first, evidence } = stated ?? {};
  const shown = { headline, evidence: (evidence === undefined ? rest : evidence) ?? "" };
  if (isRunning) return { ...shown, tone: "warn", word: "So far,", headline: lower(headline) };
  if (answer === undefined) return { ...shown, tone, word: "" };
  return { ...shown, tone: TONES[answer], word: `${capitalized(inWords(answer))}.` };
}

interface HeadlineProps extends Parts {
  /** The level of the heading. */
  level?: 1 | 2 | 3;
}

/** An answer: its first word in its tone, the sentence, and the evidence below. */
export function Headline({ tone, word, headline, evidence, level = 1 }: HeadlineProps) {
  const Heading = `h${level}` as const;
  return (
    <>
      <Heading class="answer">
        {word && <span class={tone ?? ""}>{word}</span>}
        {word && " "}
        {headline}
      </Heading>
      {evidence && " "}
      {evidence && <p class="evidence">{evidence}</p>}
    </>
  );
}

interface AnswerProps {
  report: Pick<Report, "verdict" | "facts"> | null;
  /** The parts that the document's verdict states. */
  stated?: Partial<Verdict> | undefined;
  isRunning?: boolean;
  /** The text while nothing is known; false if no answer is awaited. */
  waiting?: string | false;
  /** The heading for screen readers if there is no answer. */
  title?: string;
  /** The level of its heading. */
  level?: 1 | 2 | 3;
}

/** The answer as a headline. Screen readers announce that a tool is running, and then the verdict or the first fact. */
export function Answer(props: AnswerProps) {
  const { report, stated, isRunning = false, waiting = false, title = "", level = 1 } = props;
  const { verdict = null, facts: [fact] = [] } = report ?? {};
  const parts = verdict && partsOf(verdict, stated, isRunning);
  if (parts === null) {
    const fallback = fact ? `${fact.name}: ${fact.value}` : "";
    const text = waiting !== false && report === null ? waiting : fallback;
    const Heading = `h${level}` as const;
    return (
      <div class="announce" role="status">
        <Heading class={waiting === false ? "unseen" : "answer soft"}>{title}</Heading>
        {text && <p class={waiting === false ? "unseen" : "waiting"}>{text}</p>}
      </div>
    );
  }
  return (
    <div
      class={`announce verdict ${parts.tone ?? ""}`}
      role="status"
      aria-live={isRunning ? "off" : "polite"}
    >
      <Headline {...parts} level={level} />
    </div>
  );
}

interface AdviceProps {
  document: CheckResult;
  /** A link to the same answer. */
  linkTo: () => Promise<string>;
}

/** The advice: who can mend the fault, what they can do, and a text to send them. */
export function Advice({ document, linkTo }: AdviceProps) {
  const { verdict, startedAt } = document.details;
  const { fault, advice } = verdict;
  const [label, copy] = fault ? READERS[fault] : ["To do", null];
  const certificate = document.steps.find((step) => step.certificate)?.certificate;
  const days =
    certificate && Math.floor((Date.parse(certificate.notAfter) - Date.parse(startedAt)) / DAY_MS);
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
