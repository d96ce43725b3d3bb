import { z } from "zod";
import type { Call } from "../../api/endpoint.ts";
import { ApiError } from "../../api/errors.ts";
import type { Parameter } from "../../api/parameters.ts";
import { once } from "../../api/schemas.ts";
import { FairSlots } from "../../gate/fair-slots.ts";
import { readMachine } from "../../here/machine.ts";
import { orThrow } from "../../util/errors.ts";
import { newStamp } from "../../util/stamp.ts";
import { PROBING } from "../run.ts";
import { endpoint, type Services } from "../services.ts";
import { createRunSharing } from "../sharing.ts";
import { MAX_TURN_MS, takeTurn, waitingEvent } from "../turn.ts";
import { candidatesOf, lookHere } from "./engine.ts";
import example from "./example.json" with { type: "json" };
import { hereBegin, hereResult, hereStep } from "./result.ts";

/** Requests that a look counts as: its questions to the resolvers, and its solicitations. */
const PRICE = 4;

/** The longest time of a run in seconds. */
const LONGEST_SECONDS = 10;

/** Looks at once: one listens, because there is one pair of sockets, and the other one is next. */
const AT_ONCE = 2;

const turns = new FairSlots(AT_ONCE);

/** The looks under way of each service, by the interface that is judged. */
const share = createRunSharing<Awaited<ReturnType<typeof take>>>();

const interfaceParameter: Parameter<string | undefined> = {
  in: "query",
  schema: once(() => z.string().optional()),
  description: "The interface that is judged; by default that of the way to the first resolver.",
  example: "eth0",
};

/** `GET /here`: why IPv6 works or does not work on the machine itself. */
export const here = endpoint({
  ...PROBING,
  errors: ["TOO_MANY_PROBES", "ICMP_UNAVAILABLE"],
  path: "/here",
  operationId: "here",
  summary: "Why IPv6 works or does not work on the machine of this service (beta)",
  description:
    "Reads the kernel's tables, solicits the routers and gateways of the links, and asks the resolvers. `details.verdict` says the nearest cause.",
  price: PRICE,
  parameters: { interface: interfaceParameter },
  response: hereResult,
  example,
  events: () => ({ waiting: waitingEvent(), begin: hereBegin(), step: hereStep() }),
  async handle({ interface: wanted }, call, services) {
    const unreadable = (reason: string) =>
      new ApiError("ICMP_UNAVAILABLE", { reason }, "allow AF_NETLINK");
    const machine = orThrow(readMachine, unreadable);
    const allowed = candidatesOf(machine).map(({ name }) => name);
    if (wanted !== undefined && !allowed.includes(wanted)) {
      const details = { parameter: "interface", value: wanted, allowed };
      const none = allowed.length === 0 ? "there is none but the loopback" : undefined;
      throw new ApiError("INVALID_PARAMETER", details, none);
    }
    call.allowSeconds(MAX_TURN_MS / 1000 + AT_ONCE * LONGEST_SECONDS);
    return share(services.gate, wanted ?? "", call, (shared) =>
      take(wanted ?? null, shared, services),
    );
  },
});

async function take(wanted: string | null, call: Call, services: Services) {
  using turn = await takeTurn({ ...services, probeSlots: turns }, call);
  const { config, icmp, look = lookHere } = services;
  const stamp = newStamp();
  const { verdict, ...found } = await look(
    config.resolvers[config.targetResolver],
    wanted,
    "unavailable" in icmp ? null : icmp,
    call.signal,
    call.onEvent,
  );
  return { ...found, details: { ...stamp, verdict, ...turn.waited() } };
}
