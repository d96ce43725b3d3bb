import { useEffect, useState } from "hono/jsx/dom";
import type { DnsResult } from "../../tools/dns/result.ts";
import { networkSentence } from "../../tools/validate/report.ts";
import type { PageTool } from "../caller.ts";
import { call } from "./api.ts";
import { Below } from "./below.tsx";
import { type Bookmark, pathOf } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { type Conclusion, conclude } from "./connection.ts";
import { measure } from "./measure.ts";
import { Breakable, Copy, Facts } from "./pictures/parts.tsx";
import { Announcement, ReportView } from "./report-view.tsx";
import { noteLimit } from "./state.ts";

/** The name of the caller's address, which is asked for once. */
let asked: Promise<string> | null = null;

/** The conclusion about the caller's connection, which is measured once. */
let measured: Promise<Conclusion> | null = null;

/** The caller: whether the connection is ready for IPv6, the address, its reverse name, and what kind of address it is. */
export function MyIp({ tool, bookmark }: { tool: PageTool; bookmark: Bookmark }) {
  const { ip, label, validation, network, familyUrls } = CALLER;
  const [name, setName] = useState("looking up");
  const [found, setFound] = useState<Conclusion | null>(null);
  useEffect(() => {
    asked ??= reverseName(ip);
    void asked.then(setName);
    measured ??= familyUrls && measure(familyUrls).then(conclude);
    void measured?.then(setFound);
  }, []);
  return (
    <>
      {familyUrls && (
        <section class="connection" aria-label="Your connection">
          <Announcement report={found} waiting="Testing your connection" />
          <p class="soft">{found?.advice}</p>
          {found && (
            <details>
              <summary>Measurements</summary>
              <Facts facts={found.facts} />
            </details>
          )}
        </section>
      )}
      <section class="first" aria-label={label}>
        <p class="label">{label}</p>
        <h1 class="address">
          <Breakable text={ip} />
        </h1>
        <p>
          Name:{" "}
          <span class="mono">
            <Breakable text={name} />
          </span>
        </p>
        <Copy text={() => ip} label="Copy the address" />
        {validation === null && (
          <p class="soft">
            You came over IPv4. From a connection with IPv6, this page shows your IPv6 address.
          </p>
        )}
      </section>
      {validation && (
        <ReportView
          tool="validate"
          document={validation}
          asked={{ all: [validation], values: {}, linkTo: String }}
        />
      )}
      {validation === null && network && (
        <Facts facts={[{ name: "Network", value: networkSentence(network) }]} />
      )}
      <Below {...{ bookmark, path: pathOf(tool, bookmark), needsKey: false, document: null }} />
    </>
  );
}

/** The name of an address; a text that says so if there is none. */
async function reverseName(subject: string): Promise<string> {
  const bookmark = { tool: "dns", subject, options: { type: "PTR" } } as const;
  const path = pathOf({ ...toolOf("dns"), onPage: {} }, bookmark);
  const called = await call(path, new AbortController().signal, noteLimit);
  if ("problem" in called && called.problem.code !== "HOSTNAME_NOT_FOUND") return "not known";
  const { records = [] } = ("result" in called ? called.result : {}) as Partial<DnsResult>;
  return records.find(({ type }) => type === "PTR")?.value ?? "no PTR record";
}
