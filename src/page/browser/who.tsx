import { Breakable } from "./parts.tsx";
import { TEXTS } from "./texts.ts";
import type { Hop } from "./types.ts";

interface WhoProps {
  readonly ip: string | null;
  readonly hostname: string | null;
  /** Others that answered there, as text. */
  readonly branches?: readonly string[];
  /** What else is known, as text. */
  readonly tags?: readonly string[];
}

/** Who answered at a hop. */
export function Who({ ip, hostname, branches = [], tags = [] }: WhoProps) {
  if (ip === null) return <span class="who">{TEXTS.trace.silent}</span>;
  return (
    <span class="who">
      <span class={hostname ? "name" : "name unnamed"}>
        <Breakable text={hostname ?? TEXTS.trace.unnamed} />
      </span>
      <span class="mono ip">
        <Breakable text={ip} />
      </span>
      {branches.map((text) => (
        <span class="mono ip branch">
          <Breakable text={text} />
        </span>
      ))}
      {tags.map((text) => (
        <span class="tag">{text}</span>
      ))}
    </span>
  );
}

/** A hop in one line of text. */
export function whoText({ ip, hostname }: Pick<WhoProps, "ip" | "hostname">): string {
  return ip === null ? TEXTS.trace.unanswered : hostname === null ? ip : `${hostname} (${ip})`;
}

/** What the details of every hop say: its zone, and its network. */
export function placeTags(
  details: Pick<NonNullable<Hop["details"]>, "zone" | "network"> = {},
): string[] {
  const { zone, network } = details;
  return [
    ...(network === undefined ? [] : [TEXTS.network(network.asn, network.name)]),
    ...(zone === undefined ? [] : [TEXTS.trace.zone(zone)]),
  ];
}
