import type { Child } from "hono/jsx/dom";
import { type LocatedRun, runsByLocation } from "./by-location.ts";
import type { Place } from "./place.ts";
import type { Run } from "./state.ts";
import { TEXTS } from "./texts.ts";

/** What a tool shows of a run. */
export interface View {
  /** What a screen reader says: what is waited for, and then what came out. */
  readonly status?: Child;
  readonly body: Child;
  /** The result as text; null until there is one. */
  readonly text: (() => string) | null;
}

interface LocatedView extends LocatedRun, View {}

/** The views of a run: one, or one for each location that its place asks. */
export function viewsOf(
  place: Place,
  current: Run | null,
  viewOf: (run: Run | null) => View,
): readonly LocatedView[] {
  return runsByLocation(place, current).map(({ location, run }) => ({
    location,
    run,
    ...viewOf(run),
  }));
}

/** Views side by side, each below the name of its location if it has one. */
export function Views({ views }: { views: readonly LocatedView[] }) {
  const [first] = views;
  if (first?.location === null) return <OneView view={first} />;
  return (
    <div class="locations">
      {views.map((view) => (
        <section key={view.location} class="location" aria-label={headingOf(view)}>
          <h2>{headingOf(view)}</h2>
          {view.run?.problem && (
            <p class="problem" role="alert">
              {view.run.problem.message}
            </p>
          )}
          <OneView view={view} />
        </section>
      ))}
    </div>
  );
}

function OneView({ view: { status, body } }: { view: View }) {
  return (
    <>
      {status !== undefined && (
        <div class="announce" role="status">
          {status}
        </div>
      )}
      {body}
    </>
  );
}

/** All views as text, one below the other; null while one has neither a result nor an error. */
export function textOf(views: readonly LocatedView[]): (() => string) | null {
  const isOpen = ({ location, run, text }: LocatedView) =>
    text === null && (location === null || !run?.problem);
  if (views.some(isOpen)) return null;
  return () =>
    views
      .map((view) => {
        const text = view.text?.() ?? `${view.run?.problem?.message}\n`;
        return view.location === null ? text : `${headingOf(view)}\n${text}`;
      })
      .join("\n");
}

function headingOf({ location }: LocatedView): string {
  return TEXTS.from.heading(location ?? "");
}
