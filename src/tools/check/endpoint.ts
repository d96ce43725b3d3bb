import { isLinkLocal } from "../../addr/ipv6.ts";
import { ApiError } from "../../api/errors.ts";
import { integerParameter } from "../../api/parameters.ts";
import { textSchema } from "../../api/schemas.ts";
import { DEADLINE_MS, PROBING, probedPortOf } from "../run.ts";
import { endpoint } from "../services.ts";
import { createRunSharing } from "../sharing.ts";
import { parseTarget } from "../target.ts";
import { MAX_TURN_MS, takeTurn, waitingEvent } from "../turn.ts";
import { runCheck } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { inOrder } from "./findings.ts";
import { attemptsOf, withRetransmitted } from "./ledger.ts";
import { pathOf } from "./path.ts";
import { checkBegin, checkPath, checkResult, checkStep } from "./result.ts";
import { LONGEST_MS } from "./running.ts";
import { TLS_PORT } from "./service.ts";
import { checkVerdict } from "./verdict.ts";
import { viewsOf } from "./views.ts";

/** Why a link-local address is not checked. */
const LINK_LOCAL =
  "a link-local address has no name, and no other machine's way to compare; ping it: sixscope ping fe80::1%eth0 --tcp=443";

/** Requests that a check counts as: two questions to three resolvers, the addresses, and the path. */
const PRICE = 12;

/** Milliseconds after its start in which a check is joined by others of the same name and port. */
const JOINED_MS = 5_000;

const share = createRunSharing<Awaited<ReturnType<typeof runCheck>>>();

/** `GET /check/{name}`: whether a name works over IPv6, and if not, why. */
export const check = endpoint({
  ...PROBING,
  errors: ["INVALID_ADDRESS", "INVALID_HOSTNAME", "TOO_MANY_PROBES"],
  path: "/check/{name}",
  operationId: "check",
  summary: "Whether a name works over IPv6, and if not, why (beta)",
  description:
    "Looks up the name, makes ten transactions as a browser does with each of up to eight IPv6 addresses, and some with one IPv4 address for comparison, and measures the path. `details.verdict` says the worst finding first, and `details.attempts` what it rests on.",
  price: PRICE,
  parameters: {
    name: {
      in: "path",
      schema: textSchema,
      description: "A name, or an IPv6 address.",
      example: "www.example.com",
      label: "Name",
      hint: "A name or an IPv6 address. Opens it as a browser does, from this server, and says where it breaks.",
    },
    port: integerParameter({
      minimum: 1,
      maximum: 65_535,
      default: TLS_PORT,
      description:
        "The TCP port, one of those that `SIXSCOPE_PROBE_PORTS` allows. HTTP is expected on 80 and 443 alone; TLS is tried on all but 80.",
      example: 443,
      option: { flags: "-p, --port", help: "the TCP port" },
      label: "Port",
    }),
  },
  response: checkResult,
  example,
  events: () => ({
    waiting: waitingEvent(),
    begin: checkBegin(),
    step: checkStep(),
    path: checkPath(),
  }),
  async handle({ name: subject, port }, call, services) {
    const target = parseTarget(subject);
    if ("address" in target && isLinkLocal(target.address)) {
      const details = { parameter: "name", value: subject };
      throw new ApiError("INVALID_PARAMETER", details, LINK_LOCAL);
    }
    probedPortOf({ protocol: "tcp", port }, services.config);
    call.allowSeconds((MAX_TURN_MS + LONGEST_MS + DEADLINE_MS) / 1000);
    using turn = await takeTurn(services, call);
    const startMs = performance.now();
    const measured = await share(
      services.gate,
      JSON.stringify([subject, port]),
      call,
      (shared) => runCheck(target, port, shared, services, turn.caller),
      // Nobody joins a check that waits for the packets of its own client.
      () => performance.now() - startMs < JOINED_MS && !turn.waited(),
    );
    const { stamp, near, way, ...hearing } = measured;
    const { steps, rows } = hearing;
    const verdict = checkVerdict(subject, port, hearing, near);
    const path = way && pathOf(way, verdict);
    return {
      name: subject,
      port,
      steps: inOrder([...steps, ...viewsOf(rows)]),
      details: {
        ...stamp,
        verdict,
        attempts: attemptsOf(withRetransmitted(rows)),
        ...(path && { path }),
        ...(near.steps.length > 0 && {
          here: near.steps.map(({ name, status }) => ({ name, status })),
        }),
        ...turn.waited(),
      },
    };
  },
});
