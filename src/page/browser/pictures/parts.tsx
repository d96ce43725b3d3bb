import type { JSX } from "hono/jsx";
import { useState } from "hono/jsx/dom";
import type { Fact, Host } from "../../../tools/report.ts";
import { bookmarkFor, hashOf } from "../bookmark.ts";

/** Milliseconds for which a button says that it has copied. */
const COPIED_MS = 1500;

/** A text, which may take some time. */
type Text = string | Promise<string>;

/** A button that copies a text, or says why it cannot; its name is the label, or says what it copies. */
export function Copy(props: { text: () => Text; subject?: string; label?: string }) {
  const { text, subject, label } = props;
  const [outcome, setOutcome] = useState("");
  const copy = async () => {
    try {
      await copyText(await text());
      setOutcome("Copied");
      setTimeout(() => setOutcome(""), COPIED_MS);
    } catch (error) {
      setOutcome(error instanceof Error ? error.message : "Not copied");
    }
  };
  return (
    <button
      type="button"
      class={label ? undefined : "copy"}
      aria-label={subject && `Copy ${subject}`}
      onClick={copy}
    >
      <span aria-live="polite">{outcome || (label ?? "Copy")}</span>
    </button>
  );
}

/** Copies a text, also without HTTPS, where browsers have no other clipboard. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const focused = document.activeElement as HTMLElement | null;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  focused?.focus({ preventScroll: true });
}

/** A text whose names and addresses break behind dots and colons, and whose numbers do not break. */
export function Breakable({ text }: { text: string }) {
  return (
    <>
      {text.split(/(?<=[.:])(?!\d{1,3}[, ])/).map((piece) => (
        <>
          {piece}
          <wbr />
        </>
      ))}
    </>
  );
}

/** A value with its button. */
export function Value({ text }: { text: string }) {
  return (
    <span>
      <span class="mono">
        <Breakable text={text} />
      </span>{" "}
      <Copy text={() => text} subject={text} />
    </span>
  );
}

/** Facts: names and their values. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  if (facts.length === 0) return null;
  return (
    <dl class="facts">
      {facts.map(({ name, value, tone, isValue }) => (
        <div>
          <dt>
            <Breakable text={name} />
          </dt>
          <dd class={tone}>{isValue ? <Value text={value} /> : <Breakable text={value} />}</dd>
        </div>
      ))}
    </dl>
  );
}

type TickProps = JSX.IntrinsicElements["input"] & {
  label: string;
  onTick?: (isTicked: boolean) => void;
};

/** A box to tick, with its label behind it. */
export function Tick({ label, onTick, ...input }: TickProps) {
  const tick = ({ target }: Event) => onTick?.((target as HTMLInputElement).checked);
  return (
    <label class="check">
      <input type="checkbox" {...input} onChange={tick} /> {label}
    </label>
  );
}

/** A host on a path: its name, its address, and notes. */
export function Who({ host, notes }: { host: Host; notes: readonly string[] }) {
  const { ip, hostname } = host;
  return (
    <span class="who cluster">
      {ip === null && <span class="silence">no reply</span>}
      {hostname !== null && (
        <span class="name">
          <Breakable text={hostname} />
        </span>
      )}
      {ip !== null && (
        <span class="mono ip">
          <Breakable text={ip} />
        </span>
      )}
      {ip !== null && <Menu ip={ip} />}
      {notes.map((note) => (
        <span class="tag">
          <Breakable text={note} />
        </span>
      ))}
    </span>
  );
}

/** The tools for a host, by their labels. */
const NEXT = { Ping: "ping", Trace: "trace", mtr: "mtr", DNS: "dns" } as const;

/** The menu of a host: its address, and the tools. */
function Menu({ ip }: { ip: string }) {
  return (
    <details class="menu" name="host">
      <summary aria-label={`Tools for ${ip}`}>⋯</summary>
      <Copy text={() => ip} subject={ip} />
      {Object.entries(NEXT).map(([label, tool]) => (
        <a href={hashOf(bookmarkFor(tool, ip))}>{label}</a>
      ))}
    </details>
  );
}
