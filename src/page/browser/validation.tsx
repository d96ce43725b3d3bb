import { Bits } from "./bits.tsx";
import { Facts, Value } from "./parts.tsx";
import { TEXTS } from "./texts.ts";
import type { Network, Validation } from "./types.ts";

const T = TEXTS.validate;

/** `GlobalUnicast` as people write it. */
export function words(name: string): string {
  return name.replace(/(?<=[a-z0-9])(?=[A-Z])/g, " ");
}

/** Everything that can be derived from an address. */
export function ValidationResult({ validation }: { validation: Validation }) {
  const { type, compressed, expanded, details } = validation;
  const { definedBy, scope, allocation, interfaceId, solicitedNode } = details;
  return (
    <>
      <Bits validation={validation} />
      <Facts
        rows={[
          [T.type, <strong>{words(type)}</strong>],
          [T.compressed, <Value text={compressed} />],
          [T.expanded, <Value text={expanded} />],
          [
            T.definedBy,
            <>
              <span class="mono">{definedBy.block}</span>, {definedBy.rfc}
              {definedBy.status && <span class="tag">{definedBy.status}</span>}
            </>,
          ],
          [T.scope, scope ?? null],
          [T.allocation, allocation ? <Allocation allocation={allocation} /> : null],
          [T.network, details.network ? <NetworkOf network={details.network} /> : null],
          [T.registry, details.specialPurpose ? <Registry row={details.specialPurpose} /> : null],
          [T.embedded, details.embeddedIPv4 ? <Embedded rows={details.embeddedIPv4} /> : null],
          [T.interfaceId, interfaceId ? <InterfaceId id={interfaceId} /> : null],
          [T.multicast, details.multicast ? <Multicast multicast={details.multicast} /> : null],
          [T.solicitedNode, solicitedNode ? <Value text={solicitedNode} /> : null],
          [T.reverseName, <Value text={details.reverseName} what={T.reverseName} />],
          [T.integer, <Value text={details.integer} what={T.integer} />],
          [T.snapshot, details.registrySnapshot],
        ]}
      />
    </>
  );
}

type Details = Validation["details"];

function Allocation({ allocation }: { allocation: NonNullable<Details["allocation"]> }) {
  const { status, registry, block } = allocation;
  return (
    <>
      {T.allocationStatus[status]} {registry && <strong>{registry}</strong>}{" "}
      {block && <span class="mono">{block}</span>}
    </>
  );
}

/** Whose network an address belongs to, as the operator's files say. */
export function NetworkOf({ network }: { network: Network }) {
  const { asn, name, prefix, source } = network;
  return (
    <>
      <strong>{TEXTS.network(asn, name)}</strong> <span class="mono">{prefix}</span>,{" "}
      {T.networkSources[source]}
    </>
  );
}

function Registry({ row }: { row: NonNullable<Details["specialPurpose"]> }) {
  const { block, name, rfcs, allocated, terminated } = row;
  const flags = Object.entries(T.flags) as [keyof typeof T.flags, string][];
  return (
    <>
      <strong>{name}</strong> <span class="mono">{block}</span>, {rfcs.join(", ")}
      <br />
      <span class="soft">
        {T.allocated} {allocated}
        {terminated && `, ${T.terminated.toLowerCase()} ${terminated}`}
      </span>
      <ul class="flags">
        {flags
          .filter(([flag]) => row[flag] !== undefined)
          .map(([flag, label]) => (
            <li class={row[flag] ? "on" : "off"}>
              {label}: <b>{answer(row[flag])}</b>
            </li>
          ))}
      </ul>
    </>
  );
}

function answer(flag: boolean | null | undefined): string {
  return flag === null ? TEXTS.notApplicable : flag ? TEXTS.yes : TEXTS.no;
}

function Embedded({ rows }: { rows: NonNullable<Details["embeddedIPv4"]> }) {
  return (
    <ul>
      {rows.map((row) =>
        row.mechanism === "Teredo" ? (
          <li>{T.teredo(row.client, row.port, row.server, row.cone)}</li>
        ) : (
          <li>
            {T.mechanisms[row.mechanism]}: <Value text={row.address} />
          </li>
        ),
      )}
    </ul>
  );
}

function InterfaceId({ id }: { id: NonNullable<Details["interfaceId"]> }) {
  return (
    <>
      <span class="mono">{id.value}</span>, {T.interfaceKinds[id.kind]}
      {id.mac && (
        <>
          <br />
          {T.mac} <Value text={id.mac} />
        </>
      )}
      {id.port !== undefined && `, ${T.port} ${id.port}`}
      {id.ipv4 && (
        <>
          , <Value text={id.ipv4} />
        </>
      )}
    </>
  );
}

function Multicast({ multicast }: { multicast: NonNullable<Details["multicast"]> }) {
  const { group, networkPrefix, rendezvousPointAddress } = multicast;
  const flags = (
    Object.entries(T.multicastFlags) as [keyof typeof T.multicastFlags, string][]
  ).filter(([flag]) => multicast.flags[flag]);
  return (
    <ul>
      {group && (
        <li>
          {T.group}: <strong>{group.name}</strong>
          {group.rfc && `, ${group.rfc}`}
        </li>
      )}
      {flags.map(([, label]) => (
        <li>{label}</li>
      ))}
      {networkPrefix && <li class="mono">{networkPrefix}</li>}
      {rendezvousPointAddress && (
        <li>
          <Value text={rendezvousPointAddress} />
        </li>
      )}
    </ul>
  );
}
