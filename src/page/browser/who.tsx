import { Breakable } from "./parts.tsx";
import { TEXTS } from "./texts.ts";
import type { Hop } from "./types.ts";

const T = TEXTS.trace;

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
  if (ip === null) return <span class="who">{T.silent}</span>;
  return (
    <span class="who">
      <span class={hostname ? "name" : "name unnamed"}>
        <Breakable text={hostname ?? T.unnamed} />
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
  return ip === null ? T.unanswered : hostname === null ? ip : `${hostname} (${ip})`;
}

/** What else a hop said. */
export function hopTags(details: Hop["details"]): string[] {
  const { network, zone, mpls = [], mtu, interfaces = [], asymmetry = 0 } = details ?? {};
  return [
    ...(network === undefined ? [] : [TEXTS.network(network.asn, network.name)]),
    ...(zone === undefined ? [] : [T.zone(zone)]),
    ...mpls.map(({ label, ttl, trafficClass }) => T.mpls(label, ttl, trafficClass)),
    ...(mtu === undefined ? [] : [T.mtu(mtu)]),
    // Some routers count themselves, and some do not.
    ...(Math.abs(asymmetry) > 1 ? [T.asymmetry(asymmetry)] : []),
    ...interfaces.map(({ role, name, address, index, mtu: bytes }) => {
      const what = name ?? address ?? (index === null ? "" : T.index(index));
      return [T.interface[role], what, bytes !== null && TEXTS.linkMtu(bytes)]
        .filter(Boolean)
        .join(" ");
    }),
  ];
}
