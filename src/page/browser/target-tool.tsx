import type { Child } from "hono/jsx/dom";
import { Below } from "./parts.tsx";
import type { Place } from "./place.ts";
import { type Option, RunForm, type StartButtons } from "./run-form.tsx";
import type { Run, Work } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Translation } from "./types.ts";

/** What the tools that probe a target add to its form and its result. */
interface TargetToolProps {
  place: Place;
  current: Run | null;
  /** The endpoint's path below the base path of the API. */
  endpoint: string;
  options: readonly Option[];
  more?: StartButtons;
  /** What a screen reader says: what is waited for, and then what came out. */
  status: Child;
  /** The result as text; null until there is one. */
  text: (() => string) | null;
  children?: Child;
}

/** A tool that probes a target: its inputs, its result, and what can be done with the result. */
export function TargetTool(props: TargetToolProps) {
  const { place, current, endpoint, options, more, status, text, children } = props;
  const workOf = ({ subject, parameters }: Place): Work => {
    const query = new URLSearchParams(parameters).toString();
    const path = `${endpoint}/${encodeURIComponent(subject)}${query && `?${query}`}`;
    return { path, hasParts: true };
  };
  return (
    <>
      <RunForm
        place={place}
        current={current}
        needsKey={true}
        label={TEXTS.target}
        hint={TEXTS.targetHint}
        example={TEXTS.dns.example}
        options={options}
        workOf={workOf}
        {...(more && { more })}
      />
      <div id="result">
        <div class="announce" role="status">
          {status}
        </div>
        {children}
      </div>
      {current && (
        <Below
          place={place}
          path={current.path}
          needsKey={true}
          result={current.result}
          {...(text && { text })}
        />
      )}
    </>
  );
}

/** Which address was probed from where, and whether a translator is in the way. */
export function Route(props: {
  ip: string;
  details: { source: string; flowLabel?: number; dns64?: Translation };
}) {
  const { source, flowLabel, dns64 } = props.details;
  return (
    <>
      {dns64 && <p>{TEXTS.translated(dns64.ip, dns64.ipv4, dns64.prefix)}</p>}
      <p class="route mono">{TEXTS.route(props.ip, source, flowLabel)}</p>
    </>
  );
}
