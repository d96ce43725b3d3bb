import { type Kind, wordsOf } from "../../../tools/check/findings.ts";
import { byFamily, isIpv6 } from "../../../tools/check/ledger.ts";
import type { CheckDocument } from "../../../tools/check/report.ts";
import type { CheckResult } from "../../../tools/check/result.ts";
import { formatMs } from "../../../tools/numbers.ts";
import { networkName } from "../../../tools/report.ts";
import { NearSide } from "./near-side.tsx";

type Row = CheckResult["details"]["attempts"][number];

/** The most attempts that are drawn as bars. */
const MOST_BARS = 20;

const COLUMNS = [
  ["connect", "Connections"],
  ["request", "Requests"],
  ["echo", "Echo"],
] as const satisfies readonly (readonly [Kind, string])[];

interface TriedProps {
  attempts: readonly Row[];
  steps: CheckResult["steps"];
  port: number;
}

/** True for IPv4 if this server has none, which says nothing of the site. */
export const isUntested = (ip: string, rows: readonly Row[]) =>
  !isIpv6(ip) && rows.some(({ failed }) => "not-sent" in failed);

/** The attempts at each address: a bar for each, up if it worked and down if not, and the counts. */
export function Tried({ attempts, steps, port }: TriedProps) {
  const ips = Map.groupBy(attempts, ({ ip }) => ip);
  return (
    <section class="part">
      <h2 class="side soft">Tried</h2>
      <table class="tried">
        <thead>
          <tr>
            <th scope="col">Address</th>
            {COLUMNS.map(([kind, heading]) => (
              <th scope="col" class={kind}>
                {heading}
              </th>
            ))}
            <th scope="col" class="number">
              Median
            </th>
            <th scope="col" class="note">
              <span class="unseen">Note</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {[...ips].map(([ip, rows]) => {
            const of = (kind: Kind) => rows.find((row) => row.kind === kind);
            const ms = of("connect")?.rtt?.median ?? null;
            const isTested = !isUntested(ip, rows);
            const own = steps.filter((step) => step.ip === ip);
            const { text, isBad } = isTested
              ? noteOf(own, port)
              : { text: "this server has no IPv4", isBad: false };
            return (
              <tr>
                <th scope="row" class="mono">
                  {ip}
                </th>
                {COLUMNS.map(([kind]) => (
                  <td class={kind}>
                    <Bars row={isTested ? of(kind) : undefined} />
                  </td>
                ))}
                <td class="number">{ms === null ? "–" : `${formatMs(ms)} ms`}</td>
                <td class={isBad ? "note bad" : "note soft"}>{text}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

interface ByPlaceProps {
  places: readonly { readonly location: string; readonly document: CheckDocument }[];
}

/** The attempts from each place, their times, the last network before the site, and the near side. */
export function ByPlace({ places }: ByPlaceProps) {
  return (
    <>
      <section class="part">
        <h2 class="side soft">By place</h2>
        <table class="tried">
          <thead>
            <tr>
              <th scope="col">Place</th>
              <th scope="col">Connections</th>
              <th scope="col">Requests</th>
              {["Median", "IPv4"].map((heading) => (
                <th scope="col" class="number">
                  {heading}
                </th>
              ))}
              <th scope="col" class="number note">
                Hops
              </th>
              <th scope="col" class="note">
                Network before the site
              </th>
            </tr>
          </thead>
          <tbody>
            {places.map(({ location, document }) => {
              const { attempts = [], path } = document.details;
              const [six, four] = byFamily(attempts);
              const hops = path?.hops.filter(({ ip }) => ip !== null && ip !== path.ip) ?? [];
              const network = hops.findLast(({ details }) => details?.network)?.details?.network;
              return (
                <tr>
                  <th scope="row">{location}</th>
                  <td>
                    <Bars row={sumOf(six, "connect")} />
                  </td>
                  <td>
                    <Bars row={sumOf(six, "request")} />
                  </td>
                  <td class="number">{quickest(six)}</td>
                  <td class="number">{quickest(four)}</td>
                  <td class="number note">{path?.hops.at(-1)?.hop ?? "–"}</td>
                  <td class="note">{network ? networkName(network) : "not known"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
      <NearSide
        places={places.map(({ location, document: { details } }) => ({
          location,
          steps: details.here ?? [],
        }))}
      >
        {places.map(({ location, document }) => {
          const step = document.steps.find(({ name }) => name === "here");
          if (!step || !("status" in step) || !["fail", "warn"].includes(step.status)) return null;
          return (
            <p class="small">
              {location}: {step.text}
            </p>
          );
        })}
      </NearSide>
    </>
  );
}

/** The attempts of a kind at all addresses; undefined if there were none. */
function sumOf(rows: readonly Row[], wanted: Kind) {
  const own = rows.filter(({ kind }) => kind === wanted);
  const sum = (key: "made" | "worked") => own.reduce((sum, row) => sum + row[key], 0);
  return own.length === 0 ? undefined : { made: sum("made"), worked: sum("worked") };
}

/** The median at the address that connects the fastest. */
function quickest(rows: readonly Row[]): string {
  const times = rows.flatMap(({ kind, rtt }) => (kind === "connect" && rtt ? rtt.median : []));
  return times.length === 0 ? "–" : `${formatMs(Math.min(...times))} ms`;
}

/** The note on an address from its steps: what is wrong, or how it answered. */
function noteOf(steps: CheckResult["steps"], port: number): { text: string; isBad: boolean } {
  const bad = steps.find(({ status, finding }) => status === "fail" && finding);
  if (bad?.finding) return { text: wordsOf(bad.finding, port), isBad: true };
  const [tls, http] = ["tls", "http"].map((name) => steps.find((step) => step.name === name));
  const version = /^TLSv[\d.]*\d/.exec(tls?.text ?? "")?.[0].replace("v", " ");
  return { text: [version, http?.httpStatus].filter(Boolean).join(", "), isBad: false };
}

function Bars({ row }: { row: Pick<Row, "made" | "worked"> | undefined }) {
  if (row === undefined) return <span class="soft">not tried</span>;
  const { made, worked } = row;
  const isDrawn = made <= MOST_BARS;
  return (
    <span class="tally">
      {isDrawn && (
        <svg class="bars" width={made * 7} height="20" aria-hidden="true">
          {Array.from({ length: made }, (_, at) => (
            <rect
              class={at < worked ? "up" : "down"}
              x={at * 7}
              y={at < worked ? 1 : 11}
              width="4"
              height="8"
            />
          ))}
        </svg>
      )}
      <span class={worked < made ? "bad" : "soft"}>
        {worked} / {made}
      </span>
    </span>
  );
}
