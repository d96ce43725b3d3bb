import { formatIpv6 } from "../addr/format.ts";
import type { Ipv6Address } from "../addr/ipv6.ts";
import type { Call } from "../api/endpoint.ts";
import { ApiError, clientGone, type ErrorCode } from "../api/errors.ts";
import { choiceParameter, integerParameter } from "../api/parameters.ts";
import { textSchema } from "../api/schemas.ts";
import type { Config } from "../config/settings.ts";
import { translationOf } from "../dns/dns64.ts";
import { QUERY_TIMEOUT_MS } from "../dns/inquiry.ts";
import { NEIGHBOUR_MS } from "../gate/bounds.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import type { ProbedPort } from "../icmp/socket/socket.ts";
import { remedyFor } from "../icmp/unavailable.ts";
import { abortedBy } from "../util/abort.ts";
import { newStamp } from "../util/stamp.ts";
import { createBudget } from "./budget.ts";
import type { NoResult, RunOptions, RunRequest } from "./engine.ts";
import { type PortEnd, portOf } from "./port-state.ts";
import type { Services } from "./services.ts";
import { isDeprecated, ownErrorText, sourceText } from "./source.ts";
import { parseTarget, resolveTarget } from "./target.ts";
import { MAX_TURN_MS, noSlot, takeTurn, tooBusy } from "./turn.ts";

/** The parameter of every tool that sends probes. */
export const targetParameter = {
  in: "path",
  schema: textSchema,
  description:
    "An IPv6 address, or a name that is resolved once and then probed at one address only. A link-local address needs its zone: `fe80::1%25eth0`.",
  example: "www.example.com",
  label: "Target",
  hint: "A name or an IPv6 address",
} as const;

/** Ports that are probed if none is named. */
const DEFAULT_PORTS = { tcp: 443, udp: 33_434 } as const;

/** The parameters of every tool that can probe a port. */
export const protocolParameters = {
  protocol: choiceParameter(["icmp", "tcp", "udp"], {
    default: "icmp",
    description:
      "How the probes travel: as ICMPv6 echo requests, as TCP SYNs, which an open port answers with SYN-ACK and a closed one with RST, or as UDP packets, which a closed port answers with Port Unreachable.",
    example: "tcp",
    label: "Protocol",
    switches: {
      tcp: { flags: "--tcp", help: "send TCP SYNs, to port 443 or that of --tcp=PORT" },
      udp: { flags: "--udp", help: "send UDP packets, to port 33434 or that of --udp=PORT" },
    },
  }),
  port: integerParameter({
    minimum: 1,
    maximum: 65_535,
    description:
      "The target's port, one of those that `SIXSCOPE_PROBE_PORTS` allows; by default 443 for TCP and 33434 for UDP.",
    example: 443,
    label: "Port",
    goesWith: "protocol",
  }),
} as const;

/**
 * The port that probes go to; undefined for ICMPv6.
 *
 * @throws ApiError INVALID_PARAMETER for a port without a protocol, or one that the operator does not allow
 */
export function probedPortOf(
  { protocol = "icmp", port }: Omit<Probed, "target">,
  { probePorts }: Pick<Config, "probePorts">,
): ProbedPort | undefined {
  if (protocol === "icmp") {
    if (port === undefined) return undefined;
    const why = "ICMPv6 has no ports; send protocol=tcp or protocol=udp too";
    throw new ApiError("INVALID_PARAMETER", { parameter: "port", value: `${port}` }, why);
  }
  const chosen = port ?? DEFAULT_PORTS[protocol];
  if (probePorts.some(([least, most]) => least <= chosen && chosen <= most)) {
    return { protocol, port: chosen };
  }
  const allowed = probePorts.map((range) => [...new Set(range)].join("-"));
  const why = `${chosen} is not one that this service probes: ${allowed.join(", ")}`;
  throw new ApiError("INVALID_PARAMETER", { parameter: "port", value: `${chosen}`, allowed }, why);
}

/** A target, and how it is probed. */
interface Probed {
  readonly target: string;
  /** SYNs to a TCP port that the run sends; by default as many as a trace does. */
  readonly syns?: number | undefined;
  readonly protocol?: "icmp" | "tcp" | "udp";
  readonly port?: number | undefined;
}

/** Errors of every tool that sends probes. */
const PROBE_ERRORS: readonly ErrorCode[] = [
  "INVALID_ADDRESS",
  "INVALID_HOSTNAME",
  "TARGET_NOT_ALLOWED",
  "HOSTNAME_NOT_FOUND",
  "NO_IPV6_ADDRESS",
  "TOO_MANY_PROBES",
  "RESOLVER_TIMEOUT",
  "RESOLVER_FAILURE",
  "ICMP_UNAVAILABLE",
  "NETWORK_UNREACHABLE",
];

/** The fields that the endpoints of all tools that send probes share. */
export const PROBING = { needsKey: true, runsElsewhere: true, errors: PROBE_ERRORS } as const;

/** The prober of a service. @throws ApiError ICMP_UNAVAILABLE */
export function proberOf({ icmp }: Pick<Services, "icmp">, canDoWithoutRaw: boolean): Prober {
  const missing = "unavailable" in icmp ? icmp : !canDoWithoutRaw && icmp.withoutRaw;
  if (!missing) return icmp as Prober;
  throw new ApiError("ICMP_UNAVAILABLE", { reason: missing.unavailable }, remedyFor(missing));
}

/** The pause in seconds after a run whose packets have waited for too long. */
const RETRY_AFTER_SECONDS = 10;

/** SYNs that reach the port in a trace. */
export const TRACE_SYNS = 10;

/** Milliseconds that a run may wait: for the resolver, a slot, a port, and other probes to the same /64. */
const LONGEST_WAIT_MS = QUERY_TIMEOUT_MS + 2 * MAX_TURN_MS + 2 * NEIGHBOUR_MS;

/** Milliseconds between the end of a run and the time at which its connection may close. */
export const DEADLINE_MS = 2_000;

/** Milliseconds before its end at which a run stops sending, to end with the results so far. */
const ENDING_MS = 500;

const FULL = "As many probes are under way as the service has memory for";

/** The last sentence of a verdict on a run that met its budget. */
const EARLY = "The run met its budget and ended, so this may not be all.";

/**
 * Resolves a target, checks it against the policy, and waits for a probe slot, which the run holds until it is
 * disposed of. The run ends two seconds before its connection may close.
 *
 * @param longestMs the longest time of the run itself, for which the connection stays open
 * @param canDoWithoutRaw true if echo requests to the target are enough, as for a ping
 * @throws ApiError TOO_MANY_PROBES, ICMP_UNAVAILABLE, and those of `parseTarget` and `resolveTarget`
 */
export async function openRun(
  { target, syns = TRACE_SYNS, ...over }: Probed,
  longestMs: number,
  call: Call,
  services: Services,
  canDoWithoutRaw = false,
) {
  const { signal: gone, enough, client, allowSeconds, onEvent, onAddress } = call;
  const stamp = newStamp();
  const { config, resolvers } = services;
  const parsed = parseTarget(target);
  const probedPort = probedPortOf(over, config);
  const prober = proberOf(services, canDoWithoutRaw && probedPort === undefined);
  if (prober.isFull) throw noSlot(services.probeSlots, FULL);
  const beganMs = performance.now();
  const deadlineMs = LONGEST_WAIT_MS + longestMs;
  allowSeconds((deadlineMs + DEADLINE_MS) / 1000);
  // Before a slot is taken: a silent resolver must not keep others out.
  const asking = { signal: gone, client };
  const { destination, addresses } = await resolveTarget(parsed, services, asking, prober);
  const ip = formatIpv6(destination.target);
  onAddress?.(ip);
  const bounds = createBudget(client);
  const late = abortedBy(gone);
  const { signal } = late;
  using opened = new DisposableStack();
  const turn = opened.use(await takeTurn(services, call));
  const { caller } = turn;
  if (probedPort?.protocol === "tcp") turn.expect({ ...destination, probedPort }, syns, longestMs);
  const atDeadline = (action: () => void, beforeMs = 0) => {
    const leftMs = beganMs + deadlineMs - beforeMs - performance.now();
    opened.defer(clearTimeout.bind(null, setTimeout(action, leftMs)));
  };
  atDeadline(() => bounds.end("time"), ENDING_MS);
  atDeadline(() => late.abort());
  const { probeTimeoutMs: timeoutMs, targetResolver } = config;
  const asked = { prober, destination, caller, signal };
  const resources = opened.move();
  const budget = enough ? { ...bounds, enough: AbortSignal.any([bounds.enough, enough]) } : bounds;
  return {
    /** The address of the target. */
    ip,
    prober,
    /** The part of an engine's request that all runs share. */
    request: { ...destination, timeoutMs, probedPort, caller } satisfies RunRequest,
    options: { signal, budget } satisfies RunOptions,
    budget,
    /** The call's `onEvent`, within the budget. */
    onEvent: onEvent && ((name: string, data: object) => onEvent(name, data, budget.tell)),
    /**
     * Waits for the engine.
     *
     * @throws ApiError NETWORK_UNREACHABLE if this machine cannot send a single packet; TOO_MANY_PROBES at the deadline
     */
    async outcome<Outcome extends { readonly kind: "done" }>(
      ended: Promise<Outcome | NoResult>,
    ): Promise<Outcome> {
      const outcome = await ended;
      if (gone.aborted) throw clientGone();
      if (late.signal.aborted) throw tooBusy(RETRY_AFTER_SECONDS);
      if (outcome.kind === "aborted") throw clientGone();
      if (outcome.kind === "done") return outcome;
      throw new ApiError("NETWORK_UNREACHABLE", { target, ip }, outcome.code);
    },
    /** The part of the result's details that `runDetailFields` and `portField` describe. */
    async details<Verdict extends { readonly text: string }>(
      { source }: { readonly source: Ipv6Address },
      verdict: Verdict,
      end: PortEnd = {},
    ) {
      const { text: ofPort, port } = await portOf(probedPort, end, asked);
      const ofSource = sourceText(source, destination.target, isDeprecated(source));
      // The sentence about the port says that silence already.
      const isSaid = end.isSilent && port && "echo" in port && port.echo;
      const own = isSaid ? "" : verdict.text;
      const more = ofPort + ofSource + ownErrorText(source, end.error?.from);
      const text = `${own}${more}`.trimStart();
      const dns64 = translationOf(resolvers[targetResolver], ip);
      const cutShort = budget.cutShort();
      return {
        ...stamp,
        verdict: { ...verdict, text: cutShort ? `${text} ${EARLY}` : text },
        ...(dns64 && { dns64 }),
        ...(addresses && { addresses }),
        source: formatIpv6(source),
        ...turn.waited(),
        ...(cutShort && { cutShort }),
        ...(port && { port }),
      };
    },
    [Symbol.dispose]: () => resources.dispose(),
  };
}
