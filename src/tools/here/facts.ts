/** What a verdict about this machine is made of. */
import type { DnsServer } from "../../dns/server.ts";
import type { Interface, Way } from "../../here/machine.ts";
import type { Observation } from "../../here/observe.ts";

/** In place of a way that leads nowhere because the destination is no IPv6 address of another machine. */
export const NO_WAY = "EAFNOSUPPORT";

/** What came of asking a resolver. */
export interface ResolverTry {
  readonly server: DnsServer;
  /** The way of the kernel to it, or why there is none. */
  readonly way: Way | string;
  readonly outcome: "answers" | "silent" | "port-closed" | "not-sent";
  /** True if its address answers something else: an echo reply, or that its port is closed. */
  readonly echoes: boolean;
  /** Whether packets of the size that the kernel sends come back; null if that was not tried, or is not known. */
  readonly large: boolean | null;
}

/** All that is known when a verdict is made. */
export interface Facts {
  readonly observation: Observation;
  /** The interface that is judged; null if there is none but loopback. */
  readonly judged: Interface | null;
  /** The way of the kernel to the Internet, or the errno name of why there is none. */
  readonly way: Way | string;
  readonly resolvers: readonly ResolverTry[];
}
