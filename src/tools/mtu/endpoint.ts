import { hopEvents, named, openPathRun, pathParameters } from "../hops.ts";
import { PROBING, targetParameter } from "../run.ts";
import { endpoint } from "../services.ts";
import { waitingEvent } from "../turn.ts";
import { LONGEST_SEARCH_MS, measureMtu } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { type MtuHop, mtuHop, mtuResult } from "./result.ts";
import { mtuText } from "./verdict.ts";

/** The last hop that is measured, as for a trace by default. */
const LAST_HOP = 30;

const { flowLabel, names } = pathParameters;

/** `GET /mtu/{target}`: the largest packet that reaches the target, and where larger ones stop. */
export const mtu = endpoint({
  path: "/mtu/{target}",
  operationId: "mtu",
  summary: "The path MTU, and where the path narrows (beta)",
  description:
    "Sends echo requests of growing size. Where a router says Packet Too Big, that tells the next size; where larger packets vanish without a word, the sizes that are answered decide. The target's replies are as large as the requests, so a narrow return path counts too; where larger ones are not answered, up to 20 UDP packets to a closed port tell the way there.",
  ...PROBING,
  parameters: { target: targetParameter, flowLabel, names },
  response: mtuResult,
  example,
  events: () => ({ waiting: waitingEvent(), hop: mtuHop() }),
  async handle({ flowLabel: label, ...probed }, call, services) {
    const { target } = probed;
    const rows = new Map<number, MtuHop>();
    const shown = (row: MtuHop) => named(row, run.names.names, services);
    const send = hopEvents(shown, call);
    using run = await openPathRun(probed, LONGEST_SEARCH_MS, call, services, (ip) =>
      send([...rows.values()], ip),
    );
    const onHop = (row: MtuHop) => {
      rows.set(row.hop, row);
      send([row]);
      if (row.ip) run.names.ask(row.ip);
    };
    const request = { ...run.request, maxHops: LAST_HOP, flowLabel: label };
    const outcome = await run.outcome(measureMtu(run.prober, request, { ...run.options, onHop }));
    const { mtu, atMost, packetTooBig, lastLarge, firstSmall } = outcome;
    const { verdict: code, cause, error, doubtful, flowLabel } = outcome;
    // A name that becomes known now changes these rows.
    for (const row of outcome.hops) rows.set(row.hop, row);
    send(outcome.hops);
    await run.names.known();
    const hops = outcome.hops.map(shown);
    const found = { mtu, atMost, packetTooBig, lastLarge, firstSmall };
    const about = { ...(cause && { cause }), ...(error && { error }), doubtful, flowLabel };
    const verdict = { code, text: mtuText(code, found, hops, about) };
    const details = { ...about, ...(await run.details(outcome, verdict, about)) };
    return { target, ip: run.ip, ...found, hops, details };
  },
});
