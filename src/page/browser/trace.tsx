import { formatMs, roundUp } from "./numbers.ts";
import { Below, Breakable } from "./parts.tsx";
import type { Place } from "./place.ts";
import { traceText } from "./reports.ts";
import { RunForm } from "./run-form.tsx";
import type { Run, Work } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { Hop, TraceResult } from "./types.ts";

const T = TEXTS.trace;

const OPTIONS = [{ name: "maxHops", label: T.maxHops, default: "30" }];

function workOf({ subject, parameters }: Place): Work {
  const query = new URLSearchParams(parameters).toString();
  const path = `traceroute/${encodeURIComponent(subject)}${query && `?${query}`}`;
  return { path, hasParts: true };
}

/** The hops on the path to a target, as they answer. */
export function TraceTool({ place, current }: { place: Place; current: Run | null }) {
  const result = current?.result as TraceResult | null;
  const hops = result?.hops ?? hopsOf(current);
  return (
    <>
      <RunForm
        place={place}
        current={current}
        needsKey={true}
        label={TEXTS.target}
        hint={TEXTS.targetHint}
        example={TEXTS.dns.example}
        options={OPTIONS}
        workOf={workOf}
      />
      <div id="result">
        <div class="announce" role="status">
          {current?.isRunning && hops.length === 0 && <p>{T.waiting}</p>}
          {result && <Ending result={result} />}
        </div>
        {hops.length > 0 && <Hops hops={hops} />}
      </div>
      {current && (
        <Below
          place={place}
          path={current.path}
          needsKey={true}
          result={result}
          {...(result && { text: () => traceText(result) })}
        />
      )}
    </>
  );
}

/** The hops until now; a part replaces an earlier one of the same hop. */
function hopsOf(current: Run | null): Hop[] {
  const hops: Hop[] = [];
  for (const hop of (current?.parts ?? []) as readonly Hop[]) hops[hop.hop - 1] = hop;
  return hops.filter(() => true);
}

/** Why the trace ended. */
function Ending({ result }: { result: TraceResult }) {
  const { ip, details } = result;
  const { reached, reason, error, otherSource, refused = [], dns64, source, flowLabel } = details;
  return (
    <>
      <p class={reached ? "verdict good" : "verdict bad"}>
        {T.reasons[reason]} {error && T.error(error.name, error.from, error.fromTarget)}{" "}
        {otherSource && T.otherSource(otherSource)}
      </p>
      {refused.map(({ hop, errno }) => (
        <p class="problem">{T.refused(hop, errno)}</p>
      ))}
      {dns64 && <p>{TEXTS.translated(dns64.ip, dns64.ipv4, dns64.prefix)}</p>}
      <p class="route mono">{T.from(ip, source, flowLabel)}</p>
    </>
  );
}

function Hops({ hops }: { hops: readonly Hop[] }) {
  const scale = roundUp(Math.max(0.01, ...hops.map(({ rtt }) => rtt ?? 0)));
  return (
    <ol class="hops" aria-label={T.hops}>
      {hops.map((hop) => (
        <HopRow key={hop.hop} hop={hop} scale={scale} />
      ))}
    </ol>
  );
}

function HopRow({ hop, scale }: { hop: Hop; scale: number }) {
  const { ip, hostname, rtt, details } = hop;
  if (ip === null) {
    return (
      <li class="hop silent">
        <span class="position">{hop.hop}</span>
        <span class="who">{T.silent}</span>
      </li>
    );
  }
  const others = details?.addresses?.filter((address) => address !== ip) ?? [];
  return (
    <li class="hop">
      <span class="position">{hop.hop}</span>
      <span class="who">
        <span class={hostname ? "name" : "name unnamed"}>
          <Breakable text={hostname ?? T.unnamed} />
        </span>
        <span class="mono ip">
          <Breakable text={ip} />
        </span>
        {others.map((address) => (
          <span class="mono ip branch">{address}</span>
        ))}
        {details && <Told details={details} />}
      </span>
      <span class="bar">
        <svg aria-hidden="true">
          <rect class="track" width="100%" height="100%" rx="3" />
          <rect class="fill" width={`${((rtt ?? 0) / scale) * 100}%`} height="100%" rx="3" />
        </svg>
      </span>
      <span class="time">
        {rtt !== null && formatMs(rtt)} <span class="soft">{TEXTS.ms}</span>
      </span>
    </li>
  );
}

/** What else a hop said. */
function Told({ details }: { details: NonNullable<Hop["details"]> }) {
  const { network, zone, mpls = [], mtu, interfaces = [] } = details;
  const told = [
    ...(network === undefined ? [] : [TEXTS.network(network.asn, network.name)]),
    ...(zone === undefined ? [] : [T.zone(zone)]),
    ...mpls.map(({ label, ttl, trafficClass }) => T.mpls(label, ttl, trafficClass)),
    ...(mtu === undefined ? [] : [T.mtu(mtu)]),
    ...interfaces.map(({ role, name, address, index, mtu: bytes }) => {
      const what = name ?? address ?? (index === null ? "" : T.index(index));
      return [T.interface[role], what, bytes !== null && TEXTS.mtu(bytes)]
        .filter(Boolean)
        .join(" ");
    }),
  ];
  return (
    <>
      {told.map((text) => (
        <span class="tag">{text}</span>
      ))}
    </>
  );
}
