import { Below } from "./parts.tsx";
import { type Place, queryOf } from "./place.ts";
import { type Option, RunForm, type StartButtons } from "./run-form.tsx";
import type { Run, Work } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Translation } from "./types.ts";
import { textOf, type View, Views, viewsOf } from "./views.tsx";

/** What the tools that probe a target add to its form and its result. */
interface TargetToolProps {
  place: Place;
  current: Run | null;
  /** The endpoint's path below the base path of the API. */
  endpoint: string;
  options: readonly Option[];
  more?: StartButtons;
  viewOf: (run: Run | null) => View;
}

/** A tool that probes a target: its inputs, its result, and what can be done with the result. */
export function TargetTool(props: TargetToolProps) {
  const { place, current, endpoint, options, more, viewOf } = props;
  const views = viewsOf(place, current, viewOf);
  const text = textOf(views);
  const workOf = ({ subject, parameters }: Place): Work => {
    const path = `${endpoint}/${encodeURIComponent(subject)}${queryOf(parameters)}`;
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
        <Views views={views} />
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
