import {
  formatListenAddress,
  isLoopback,
  type ListenAddress,
} from "../../config/listen-address.ts";
import { listenProblem } from "../../server/server.ts";
import { type Finding, trying } from "./finding.ts";

/** The service answers at once. */
const ANSWER_MS = 2000;

/** Checks that a listener for metrics can be opened or is open, and says who reaches it: it wants no key. */
export async function checkMetricsListener(address: ListenAddress): Promise<Finding> {
  const place = formatListenAddress(address);
  const { ok, problem, warning } = trying(`see who gets metrics at ${place}`);
  const isOpen = await showsMetrics(address);
  const obstacle = isOpen ? null : listenProblem(address);
  if (obstacle !== null) {
    const [outcome = "", ...advice] = obstacle.split("; ");
    return problem(outcome, advice.join("; ") || "correct SIXSCOPE_METRICS_LISTEN");
  }
  const state = isOpen ? "the service answers there" : "the service can listen there";
  return isLoopback(address)
    ? ok(`only this machine; ${state}`)
    : warning(
        `every machine that reaches it, without a key, and it can probe; ${state}`,
        "listen on localhost, or let a firewall pass Prometheus alone",
      );
}

/** True if a sixscope shows its metrics there. */
async function showsMetrics(address: ListenAddress): Promise<boolean> {
  const isUnix = address.kind === "unix";
  const host = isUnix ? "localhost" : formatListenAddress(address);
  try {
    const response = await fetch(`http://${host}/metrics`, {
      ...(isUnix && { unix: address.path }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return (await response.text()).includes("sixscope_build_info");
  } catch {
    return false;
  }
}
