import { FINDINGS, type Kind, WITH_ADDRESS, wordsOf } from "../../../tools/check/findings.ts";
import { isIpv6 } from "../../../tools/check/ledger.ts";
import type { CheckDocument } from "../../../tools/check/report.ts";
import type { CheckResult } from "../../../tools/check/result.ts";
import { inWords } from "../../../util/text.ts";
import { Advice } from "../answer.tsx";
import { HopList } from "./hop-list.tsx";
import type { Asked, View } from "./picture.ts";
import { type Break, tintsOf } from "./segments.ts";
import { Steps } from "./steps.tsx";
import { ByPlace, isUntested, Tried } from "./tried.tsx";
import { ON_ONE_SCALE, type Scale, Way, type WayProps } from "./way.tsx";
import { type End, isMixed, shortMs } from "./way-marks.tsx";

/** The name, the way over each family, the attempts, and behind buttons the steps and the hops. */
export const checkView: View<CheckDocument> = {
  hasOwnFacts: true,
  hasOwnComparison: true,
  insteadOfTables: (document, asked) => <Check {...{ document, asked }} />,
  way: (document, asked, place) => (
    <Way
      {...{ ...wayOf(document, asked.isRunning), ...scaleOf(asked), ...ON_ONE_SCALE }}
      label={place}
    />
  ),
  advice,
  overPlaces: (places) => <ByPlace places={places} />,
  more: (document, { isRunning }) => {
    const steps = endedSteps(document, isRunning);
    const { path } = document.details;
    return (
      <>
        <details>
          <summary>{steps.length === 1 ? "The one step" : `All ${steps.length} steps`}</summary>
          <Steps groups={groupsOf(steps)} isDone />
        </details>
        {path && (
          <details>
            <summary>Hops with addresses</summary>
            <HopList hops={path.hops} brokenAfter={path.brokenAfter} />
          </details>
        )}
      </>
    );
  },
};

/** The steps. After a run that was stopped, the steps that had not ended say so. */
const endedSteps = ({ steps }: CheckDocument, isRunning: boolean) =>
  isRunning
    ? steps
    : steps.map((step) =>
        "status" in step ? step : { ...step, status: "skipped" as const, text: "Not finished." },
      );

type Row = CheckResult["details"]["attempts"][number];

const NOT_BEGUN: End = { text: "not begun", note: "", tone: "warn", ms: null };

const isDnsAtFault = ({ details: { verdict, attempts = [] } }: CheckDocument) =>
  verdict?.fault === "dns" && attempts.every(({ ip }) => !isIpv6(ip));

/** The scale of all ways of a view. */
function scaleOf({ all, isRunning }: Asked<CheckDocument>): Scale {
  const hops = all.flatMap(({ details: { path } }) => path?.hops ?? []);
  const opened = all.flatMap(({ details: { attempts = [] } }) =>
    attempts.flatMap(({ kind, rtt }) => (kind === "connect" && rtt ? rtt.median : [])),
  );
  return {
    tints: tintsOf([hops]),
    mostMs: Math.max(0.1, ...opened, ...hops.flatMap(({ rtt }) => rtt ?? [])),
    beside: all.map((each) => wayOf(each, isRunning)),
  };
}

/** The way over IPv6, and its ends. */
function wayOf(document: CheckDocument, isCheckRunning: boolean): Omit<WayProps, keyof Scale> {
  const { verdict, attempts = [], path } = document.details;
  const ips = Map.groupBy(attempts, ({ ip }) => ip);
  const ends = endsOf([...ips].filter(([ip]) => isIpv6(ip)));
  const isDns = isDnsAtFault(document);
  const hops = path?.hops.filter(({ ip }) => ip !== path.ip) ?? [];
  const isHere = verdict?.answer === "not-from-here";
  const isRunning = verdict === undefined && isCheckRunning;
  const lastHop = path?.hops.at(-1)?.hop ?? 0;
  const running = { text: "", tone: null, ms: null };
  const unknown: End =
    verdict === undefined
      ? { ...running, note: isRunning && path ? `asking hop ${lastHop + 1} …` : "" }
      : { ...NOT_BEGUN, ...(isHere && { text: "not known" }) };
  const [end = unknown, ...others] = isHere ? [] : ends;
  const unreached = isDns ? "not begun: there is no address" : "not reached, so not known";
  return {
    site: path?.hops.find(({ ip }) => ip === path.ip),
    ...{ label: "IPv6", hops, isRunning, ends: [end, ...others] },
    unknown: verdict === undefined ? "" : isDns || isHere ? unreached : undefined,
    break: verdict && !isDns ? breakOf(document as CheckResult, hops.length) : null,
    doubt: verdict?.code === "path-loss" ? { text: "packets are lost somewhere here" } : null,
  };
}

function advice(document: CheckDocument, asked: Asked<CheckDocument>) {
  const { verdict } = document.details;
  return verdict && <Advice document={document as CheckResult} linkTo={asked.linkToAnswer} />;
}

function Check({ document, asked }: { document: CheckDocument; asked: Asked<CheckDocument> }) {
  const { steps, details } = document;
  const { attempts = [] } = details;
  const names = steps.find(({ name }) => name === "names");
  const nameText = names && "text" in names ? names.text : null;
  const ipv4 = [...Map.groupBy(attempts, ({ ip }) => ip)].filter(([ip]) => !isIpv6(ip));
  const isDns = isDnsAtFault(document);
  const scale = scaleOf(asked);
  return (
    <>
      {advice(document, asked)}
      {isDns ? (
        <Way
          {...scale}
          label="Name"
          hops={[]}
          ends={[{ text: "no address", note: "", tone: "bad", ms: null }]}
          unknown=""
          break={{ after: 0, text: lastSentence(nameText ?? "") }}
        />
      ) : (
        // Its place is there as soon as the resolvers are asked.
        names &&
        (nameText !== null || asked.isRunning) && (
          <section class="part">
            <h2 class="side">Name</h2>
            <p class="small">{nameText ?? "…"}</p>
          </section>
        )
      )}
      <Way {...wayOf(document, asked.isRunning)} {...scale} />
      {(isDns && ipv4.length === 0 ? [NOT_BEGUN] : ipv4.map(([ip, rows]) => endOf(ip, rows))).map(
        (end) => (
          <Way {...scale} label="IPv4" hops={[]} ends={[{ ...end, note: "" }]} isThin />
        ),
      )}
      {attempts.length > 0 && (
        <Tried {...{ attempts, steps: steps as CheckResult["steps"], port: document.port ?? 0 }} />
      )}
      {asked.isRunning && <Steps groups={groupsOf(steps)} isDone={false} />}
    </>
  );
}

/** The last sentence of a text, without its full stop. */
const lastSentence = (text: string) =>
  text
    .split(/(?<=\.) /)
    .at(-1)
    ?.replace(/\.$/, "") ?? "";

/** Ends that are drawn at most; the table has all. */
const MOST_ENDS = 5;

/** The parts of a transaction, in their order. */
const PARTS: readonly Kind[] = ["connect", "handshake", "request"];

/** The outcome at an address: the time of its connections, or the failure of the first part that failed. */
function endOf(ip: string, rows: readonly Row[]): End {
  const parts = PARTS.flatMap((kind) => rows.find((row) => row.kind === kind) ?? []);
  const [connect] = parts;
  const ms = connect?.rtt?.median ?? null;
  const made = connect?.made ?? 0;
  // A part is tried only after the part before it has worked.
  const failed = parts.reduce((sum, part) => sum + part.made - part.worked, 0);
  const shared = { note: ip, ms, attempts: { made, failed } };
  if (made > 0 && failed === 0) return { ...shared, text: `${shortMs(ms ?? 0)} ms`, tone: null };
  if (isUntested(ip, rows)) return { ...shared, text: "not tested", tone: "warn" };
  const first = parts.find((part) => part.worked < part.made);
  if (first === undefined) return { ...shared, text: "not tried", tone: "warn" };
  return {
    ...shared,
    text: failed < made ? `${made - failed} of ${made}` : reasonWord(first),
    tone: "bad",
  };
}

/** The ends of a way: first the addresses that work, as one, then the others; like ends are one. */
function endsOf(addresses: readonly (readonly [ip: string, rows: readonly Row[]])[]): End[] {
  const ends = addresses.map(([ip, rows]) => endOf(ip, rows));
  const hasMixed = ends.some(isMixed);
  const groups = Map.groupBy(ends, (end) =>
    hasMixed || isMixed(end) ? end.note : end.tone === null ? "" : end.text,
  );
  const joined = [...groups.values()].map((alike): End => {
    const best = alike.toSorted((a, b) => (a.ms ?? 0) - (b.ms ?? 0))[0] as End;
    const note = alike.length > 1 ? `${alike.length} of ${ends.length} addresses` : best.note;
    const { made, failed } = best.attempts ?? { made: 0, failed: 0 };
    const text = hasMixed && failed === 0 ? `${made} of ${made}` : best.text;
    return { ...best, note, text };
  });
  const isWhole = ({ tone }: End) => Number(tone !== null);
  return joined.toSorted((a, b) => isWhole(a) - isWhole(b)).slice(0, MOST_ENDS);
}

/** How the attempts of a kind failed most often, in a word. */
function reasonWord({ kind, failed }: Row): string {
  const [reason = ""] = Object.entries(failed).toSorted(([, a], [, b]) => b - a)[0] ?? [];
  if (reason === "timeout") return "silent";
  if (reason === "refused") return "refused";
  if (reason === "not-sent") return "not sent";
  if (kind === "connect") return reason in FINDINGS ? "no connection" : inWords(reason);
  return kind === "handshake" ? "no TLS" : "hangs";
}

/** The break of the way: at the place in the document, before the site, or on this side; null if the way does not break. */
function breakOf({ port, details }: CheckResult, hops: number): Break | null {
  const { code, fault, answer } = details.verdict;
  if (code === "works" || fault === null || !["no", "not-from-here"].includes(answer)) return null;
  if (fault === "here") return { after: 0, text: "The fault is on this side" };
  const after = details.path?.brokenAfter ?? hops;
  if (code === "mtu-black-hole")
    return { after, text: "Large packets vanish here", isNarrow: true };
  return { after, text: wordsOf(code, port) };
}

const HEADINGS: Readonly<Record<string, string>> = {
  here: "This machine",
  names: "Name",
  zone: "Name",
  compare: "IPv6 and IPv4",
};

/** Steps by subject, in the order of the first step of each. */
function groupsOf<Each extends CheckDocument["steps"][number]>(steps: readonly Each[]) {
  const of = ({ name, ip }: Each) =>
    HEADINGS[name] ?? (WITH_ADDRESS.includes(name) ? (ip ?? "") : `Path to ${ip}`);
  return Map.groupBy(steps, of);
}
