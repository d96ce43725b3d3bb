import { Below, Value } from "./parts.tsx";
import { type Place, queryOf } from "./place.ts";
import { dnsText } from "./reports.ts";
import { RunForm } from "./run-form.tsx";
import { CALLER, type Run, type Work } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { DnsRecord, DnsReply, DnsResult } from "./types.ts";
import { textOf, type View, Views, viewsOf } from "./views.tsx";

const T = TEXTS.dns;

const OPTIONS = [
  { name: "type", label: T.type, default: "AAAA", choices: CALLER.recordTypes },
  { name: "dnssec", label: T.dnssec, default: "no", choices: ["no", "yes"] },
];

function workOf({ subject, parameters }: Place): Work {
  const query = queryOf({ ...parameters, resolver: "all" });
  return { path: `dns/${encodeURIComponent(subject)}${query}`, hasParts: false };
}

/** The records of a name, from all resolvers side by side. */
export function DnsTool({ place, current }: { place: Place; current: Run | null }) {
  const views = viewsOf(place, current, (run) => viewOf(place.subject, run));
  const text = textOf(views);
  return (
    <>
      <RunForm
        place={place}
        current={current}
        needsKey={false}
        label={T.label}
        hint={T.hint}
        example={T.example}
        options={OPTIONS}
        workOf={workOf}
      />
      <div id="result" aria-live="polite" aria-busy={current?.isRunning ? "true" : "false"}>
        <Views views={views} />
      </div>
      {current && (
        <Below
          place={place}
          path={current.path}
          needsKey={false}
          result={current.result}
          {...(text && { text })}
        />
      )}
    </>
  );
}

function viewOf(name: string, current: Run | null): View {
  // An error has the comparison too: the other resolvers may have an answer.
  const problem = current?.problem as
    | { readonly details?: DnsResult["details"] }
    | null
    | undefined;
  const details = (current?.result as DnsResult | null)?.details ?? problem?.details;
  const replies = details?.resolvers;
  return {
    body: (
      <>
        {current?.isRunning && <p class="waiting">{TEXTS.running}</p>}
        {replies && <Verdict differences={details?.differences ?? []} />}
        {replies && <Replies replies={replies} />}
      </>
    ),
    text: replies ? () => dnsText(name, replies) : null,
  };
}

function Verdict({ differences }: { differences: readonly (keyof typeof T.differences)[] }) {
  const isAlike = differences.length === 0;
  const onlyTtl = differences.length === 1 && differences[0] === "ttl";
  const what = differences.map((difference) => T.differences[difference]).join(", ");
  const text = isAlike ? T.agree : onlyTtl ? T.onlyTtl : T.differ(what);
  return <p class={isAlike || onlyTtl ? "verdict good" : "verdict warn"}>{text}</p>;
}

function Replies({ replies }: { replies: readonly DnsReply[] }) {
  const textOf = ({ type, value }: DnsRecord) => `${type} ${value}`;
  const isEverywhere = (record: DnsRecord) =>
    replies.every(({ records }) => records.some((other) => textOf(other) === textOf(record)));
  return (
    <div class="replies">
      {replies.map((reply) => (
        <Reply reply={reply} isEverywhere={isEverywhere} />
      ))}
    </div>
  );
}

function Reply(props: { reply: DnsReply; isEverywhere: (record: DnsRecord) => boolean }) {
  const { resolver, outcome, records, queryTime, server, transport, rcode } = props.reply;
  const {
    authenticated,
    dnssec,
    soa,
    extendedErrors = [],
    incomplete,
    attempts,
    dns64 = [],
  } = props.reply;
  const isFailure = outcome !== "answer" && outcome !== "no-data" && outcome !== "name-error";
  return (
    <section class="reply">
      <header>
        <h2>{T.resolvers[resolver]}</h2>
        <p class="time">
          {queryTime} {TEXTS.ms}
        </p>
      </header>
      <p class="soft">
        {server && transport && <span class="mono">{T.via(server, transport)}</span>}
        {rcode && <span class={isFailure ? "tag bad" : "tag"}>{rcode}</span>}
      </p>
      {T.outcomes[outcome] && <p class={isFailure ? "problem" : ""}>{T.outcomes[outcome]}</p>}
      <ul class="records">
        {records.map((record) => (
          <li class={props.isEverywhere(record) ? "" : "different"}>
            <span class="type">
              {record.type} <span class="soft">{T.ttl(record.ttl)}</span>
            </span>
            <span class="data">
              <Value text={record.value} />
              {!props.isEverywhere(record) && <span class="tag warn">{T.onlyHere}</span>}
            </span>
          </li>
        ))}
      </ul>
      {dnssec && (
        <p class={dnssec.verdict === "bogus" ? "problem" : "soft"}>{T.verdicts[dnssec.verdict]}</p>
      )}
      {!dnssec && authenticated && <p class="soft">{T.authenticated}</p>}
      {dns64.map(({ ip, ipv4, prefix }) => (
        <p class="soft">{TEXTS.translated(ip, ipv4, prefix)}</p>
      ))}
      {incomplete && <p class="problem">{T.incomplete}</p>}
      {extendedErrors.map(({ code, name, text }) => (
        <p class="problem">{[name ?? T.extendedError(code), text].filter(Boolean).join(": ")}</p>
      ))}
      {soa && <p class="soft">{T.soa(soa.name, soa.ttl)}</p>}
      {attempts.length > 1 && (
        <details>
          <summary>{T.attempts(attempts.length)}</summary>
          <ul class="soft mono">
            {attempts.map((attempt) => (
              <li>{T.attempt(attempt.server, attempt.transport, attempt.outcome, attempt.ms)}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
