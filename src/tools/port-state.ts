/** The state of the port that a run probed, and how it differs from the answers to echo requests. */
import { formatIpv6 } from "../addr/format.ts";
import type { Caller } from "../gate/gate.ts";
import type { Prober } from "../icmp/prober/prober.ts";
import type { PortState, ProbedPort } from "../icmp/socket/socket.ts";
import { errorMeaning } from "../icmp/wire/icmp-error.ts";
import { inWords } from "../util/text.ts";
import { ping } from "./ping/engine.ts";
import type { resolveTarget } from "./target.ts";

/** The echo requests to a target with a silent port. For other ports, `waitMs` is the wait of each to the last hop. */
const ECHO = { count: 3, intervalMs: 50, timeoutMs: 1000, waitMs: 333 } as const;

/** The target of the echo requests, and the client that they are for. */
interface Asked {
  readonly prober: Prober;
  readonly destination: Awaited<ReturnType<typeof resolveTarget>>["destination"];
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

/** The name of a port for people. */
const portName = ({ protocol, port }: ProbedPort) => `${protocol.toUpperCase()} port ${port}`;

/** What a port answers, by its state. */
const ANSWERS = {
  tcp: { open: "SYN-ACK", closed: "RST" },
  udp: { open: "a UDP packet", closed: "Port Unreachable, which systems send only so often" },
} as const;

/** The state of a port by its answers, and a sentence about it; null without any. */
export function portStateOf(probedPort: ProbedPort, answers: readonly PortState[]) {
  const [first] = answers;
  if (first === undefined) return null;
  const [port, words] = [portName(probedPort), ANSWERS[probedPort.protocol]];
  const open = answers.filter((answer) => answer === "open").length;
  const closed = answers.length - open;
  const state = open > 0 && closed > 0 ? ("mixed" as const) : first;
  const counts = `${open} ${words.open} and ${closed} ${words.closed}`;
  const evidence =
    state === "mixed" ? `: of ${answers.length} answers, ${counts}` : ` (${words[state]})`;
  return { state, text: `${port} is ${state}${evidence}.` };
}

/** A sentence about an answer that a nearer router may have sent in the target's name. */
const proxyText = (router: string, hop: number) =>
  `But an echo request ends at hop ${hop} (${router}) before the target: a firewall may have answered in its name.`;

/** A clause about a port that has not answered, though the server answers ping. */
function silenceText(probedPort: ProbedPort, { hop, error }: PortEnd): string {
  const port = portName(probedPort);
  if (error) return `${error.from} answers ${port} with ${inWords(error.name)}`;
  const where = hop ? `; such packets are last seen at hop ${hop}` : "";
  const doubt = probedPort.protocol === "udp" ? ", as an open one may be silent" : "";
  return `nothing on ${port}${doubt}${where}`;
}

/** What is known of how far the probes of a port came. */
export interface PortEnd {
  /** The state by each answer, in any order. */
  readonly answers?: readonly PortState[];
  /** The last hop that answered. */
  readonly hop?: number | undefined;
  /** True if nothing behind that hop answered. */
  readonly isSilent?: boolean;
  readonly error?: { readonly name: string; readonly from: string } | undefined;
}

/** The router at which an echo request to the target ends with this hop limit; null if none says so. */
async function routerAt(hopLimit: number, { prober, destination, caller, signal }: Asked) {
  const { count, waitMs: timeoutMs } = ECHO;
  const way = prober.route(destination.target, destination.scopeId);
  for (let turn = 1; turn <= count && typeof way !== "string"; turn++) {
    const probe = { ...destination, ...way, caller, hopLimit, turn, timeoutMs, signal };
    const answer = await prober.probe(probe);
    if (answer.kind === "reply") return null;
    if (answer.kind !== "error") continue;
    return errorMeaning(answer.type, answer.code) === "hop" ? formatIpv6(answer.from) : null;
  }
  return null;
}

/**
 * The state of the port for the details, and sentences for the end of the verdict. They compare the port with echo
 * requests: whether the target answers them if the port is silent, and whether a nearer router has answered for it.
 */
export async function portOf(probedPort: ProbedPort | undefined, end: PortEnd, asked: Asked) {
  if (probedPort === undefined) return { text: "" };
  const answered = portStateOf(probedPort, end.answers ?? []);
  if (answered) {
    const { state } = answered;
    const text = ` ${answered.text}`;
    const nearer = probedPort.protocol === "tcp" && end.hop && (await routerAt(end.hop, asked));
    const port = { ...probedPort, state };
    return { text: nearer ? `${text} ${proxyText(nearer, end.hop)}` : text, port };
  }
  const { prober, destination, caller, signal } = asked;
  const echo = await ping(prober, { ...destination, ...ECHO, caller }, { signal });
  const isAlive = echo.kind === "done" && echo.results.length > 0;
  const text = isAlive
    ? ` The server answers ping, but ${silenceText(probedPort, end)}.`
    : " Echo requests are not answered either.";
  return { text, port: { ...probedPort, echo: isAlive } };
}
