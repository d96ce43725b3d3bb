import { useEffect, useState } from "hono/jsx/dom";
import { call } from "./api.ts";
import { Below, Breakable, Copy, Facts } from "./parts.tsx";
import type { Place } from "./place.ts";
import { CALLER, noteLimit } from "./state.ts";
import { TEXTS } from "./texts.ts";
import type { DnsResult } from "./types.ts";
import { NetworkOf, ValidationResult } from "./validation.tsx";

const T = TEXTS.address;

/** The caller's address, its reverse name, and what kind of address it is. */
export function AddressTool({ place }: { place: Place }) {
  const { ip, validation, network } = CALLER;
  const name = useReverseName(ip);
  return (
    <>
      <section class="first" aria-label={T.label(validation ? 6 : 4)}>
        <p class="label">{T.label(validation ? 6 : 4)}</p>
        <h1 class="address">
          <Breakable text={ip} />
        </h1>
        <p class="reverse">
          {T.reverse}:{" "}
          <span class="mono">
            <Breakable text={name ?? T.asking} />
          </span>
        </p>
        <p class="actions">
          <Copy text={() => ip} label={T.copy} />
        </p>
        {validation === null && <p class="soft">{T.ipv4}</p>}
      </section>
      {validation ? <ValidationResult validation={validation} /> : null}
      {validation === null && network && (
        <Facts rows={[[TEXTS.validate.network, <NetworkOf network={network} />]]} />
      )}
      <Below place={place} path="myip" needsKey={false} result={null} />
    </>
  );
}

let known: string | null = null;

/** The reverse name of an address; null while it is unknown. */
function useReverseName(ip: string): string | null {
  const [name, setName] = useState(known);
  useEffect(() => {
    if (known !== null) return;
    const controller = new AbortController();
    const path = `dns/${encodeURIComponent(ip)}?type=PTR`;
    call(path, controller.signal, noteLimit).then(
      (answer) => {
        const { records } = answer as DnsResult;
        known = records.find(({ type }) => type === "PTR")?.value ?? T.noName;
        setName(known);
      },
      () => {
        if (!controller.signal.aborted) setName(T.noName);
      },
    );
    return () => controller.abort();
  }, []);
  return name;
}
