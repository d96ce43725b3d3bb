import { integerParameter } from "../../api/parameters.ts";
import { textSchema } from "../../api/schemas.ts";
import { abortedBy } from "../../util/abort.ts";
import { newStamp } from "../../util/stamp.ts";
import { DEADLINE_MS, PROBING, probedPortOf } from "../run.ts";
import { endpoint } from "../services.ts";
import { parseTarget } from "../target.ts";
import { MAX_TURN_MS, takeTurn, waitingEvent } from "../turn.ts";
import { LONGEST_MS, takeSteps } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { inOrder } from "./findings.ts";
import { checkBegin, checkResult, checkStep } from "./result.ts";
import { checkVerdict, TLS_PORT } from "./verdict.ts";

/** How many requests a check counts as: two questions to three resolvers, four addresses, and the path. */
const PRICE = 12;

/** `GET /check/{name}`: whether a name works over IPv6, and if not, why. */
export const check = endpoint({
  ...PROBING,
  errors: ["INVALID_ADDRESS", "INVALID_HOSTNAME", "TOO_MANY_PROBES"],
  path: "/check/{name}",
  operationId: "check",
  summary: "Whether a name works over IPv6, and if not, why (beta)",
  description:
    "Looks up the name, connects to each of its first four IPv6 addresses as a browser does and to one IPv4 address for comparison, and measures the path. `details.verdict` says the worst finding first.",
  price: PRICE,
  parameters: {
    name: {
      in: "path",
      schema: textSchema,
      description: "A name, or an IPv6 address.",
      example: "www.example.com",
      label: "Name",
      hint: "The name of a site, or an IPv6 address",
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
  events: () => ({ waiting: waitingEvent(), begin: checkBegin(), step: checkStep() }),
  async handle({ name: subject, port }, call, services) {
    const stamp = newStamp();
    const target = parseTarget(subject);
    probedPortOf({ protocol: "tcp", port }, services.config);
    call.allowSeconds((MAX_TURN_MS + LONGEST_MS + DEADLINE_MS) / 1000);
    using turn = await takeTurn(services, call);
    const limit = abortedBy(call.signal, LONGEST_MS);
    const within = { ...call, signal: limit.signal };
    const taking = takeSteps(target, port, within, services, turn.caller);
    const steps = await taking.finally(() => limit.abort());
    // Whatever ended with the client was cut, not silent.
    call.signal.throwIfAborted();
    return {
      name: subject,
      port,
      steps: inOrder(steps),
      details: { ...stamp, verdict: checkVerdict(subject, port, steps), ...turn.waited() },
    };
  },
});
