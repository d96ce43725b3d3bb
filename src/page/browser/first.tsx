import { useEffect, useState } from "hono/jsx/dom";
import { networkName } from "../../tools/report.ts";
import { Answer } from "./answer.tsx";
import { hashOf } from "./bookmark.ts";
import { CALLER } from "./caller.ts";
import { type Conclusion, conclude } from "./connection.ts";
import { measure } from "./measure.ts";
import { Breakable, Copy, Facts } from "./pictures/parts.tsx";

/** The conclusion about the caller's connection; the page measures it once. */
let measured: Promise<Conclusion> | null = null;

/** The first page below the question: the caller's address and line, and the watches. */
export function First() {
  const { ip, family, prefix, network, familyUrls, watches } = CALLER;
  const [found, setFound] = useState<Conclusion | null>(null);
  useEffect(() => {
    measured ??= familyUrls && measure(familyUrls).then(conclude);
    void measured?.then(setFound);
  }, []);
  const from = network ? `, from ${networkName(network)}` : "";
  return (
    <>
      <section class="part">
        <h2 class="side soft">You</h2>
        <div>
          <p class="soft">
            You come over IPv{family}
            {from}
          </p>
          <p class="address mono">
            <span class="prefix">
              <Breakable text={prefix} />
            </span>
            <Breakable text={ip.slice(prefix.length)} />
          </p>
          {family === 4 && (
            <p class="soft">From a connection with IPv6, this page shows your IPv6 address.</p>
          )}
          <p class="links">
            <Copy text={() => ip} label="Copy" />
            {family === 6 && (
              <a href={hashOf({ tool: "validate", subject: ip, options: {} })}>
                What this address says
              </a>
            )}
          </p>
        </div>
      </section>
      {familyUrls && (
        <section class="part connection">
          <h2 class="side soft">Your line</h2>
          <div>
            <Answer report={found} waiting="Testing your connection" level={3} />
            <p class="soft">{found?.advice}</p>
            {found && (
              <details>
                <summary>Measurements</summary>
                <Facts facts={found.facts} />
              </details>
            )}
          </div>
        </section>
      )}
      {watches > 0 && (
        <section class="part">
          <h2 class="side soft">Watched</h2>
          <p>
            <a href="#/watch">{watches === 1 ? "One target" : `${watches} targets`}</a>
          </p>
        </section>
      )}
    </>
  );
}
