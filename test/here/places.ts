/** Two machines of different health: this namespace, where IPv6 works, and its gateway, which has no default route. */
import { startAgent, startNats, untilListed } from "../lab/nats.ts";
import { run, runIp } from "../lab/run.ts";
import { type Service, startService } from "../lab/service.ts";
import { startResolver } from "../tools/check/resolver.ts";

/** The address of this namespace, and that of its gateway. */
export const OWN = "2001:db8:1::5";
export const GATEWAY = "2001:db8:1::1";

/** The command of ip(8) that sets the default route, and the one that takes it away. */
export const [ROUTE, NO_ROUTE] = ["add", "del"].map(
  (verb) => `route ${verb} default via fe80::1 dev eth0`,
) as [string, string];

/** Links this namespace with its gateway. */
export async function linkGateway(): Promise<void> {
  await runIp([
    "netns add gateway",
    "link add eth0 type veth peer name eth0 netns gateway",
    `addr add ${OWN}/64 dev eth0 nodad`,
    "link set eth0 up",
    ROUTE,
  ]);
  await run([
    ...["ip", "netns", "exec", "gateway", "sh", "-ec"],
    `ip link set lo up
     ip addr add fe80::1/64 dev eth0 nodad
     ip addr add ${GATEWAY}/64 dev eth0 nodad
     ip link set eth0 up`,
  ]);
}

/** A service with the location `ams`, and an agent at `fra` on the gateway. */
export interface Places extends AsyncDisposable {
  readonly service: Service;
}

/** Starts the service and the agent on machines that are linked. */
export async function startPlaces(settings: Readonly<Record<string, string>>): Promise<Places> {
  const stack = new AsyncDisposableStack();
  const resolver = stack.use(await startResolver({}));
  const nats = stack.use(await startNats());
  const service = stack.use(
    await startService({
      ...settings,
      SIXSCOPE_RESOLVER_A: resolver.server,
      SIXSCOPE_NATS_URL: nats.url,
      SIXSCOPE_LOCATION: "ams",
    }),
  );
  const agent = {
    SIXSCOPE_RESOLVER_A: `[${GATEWAY}]:1`,
    SIXSCOPE_NATS_URL: `nats://[${OWN}]:${nats.port}`,
    SIXSCOPE_LOCATION: "fra",
  };
  stack.use(await startAgent(agent, ["ip", "netns", "exec", "gateway"]));
  await untilListed(service, "fra");
  return { service, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
