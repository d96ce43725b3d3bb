/** Locations of the stage, which the page can ask. */
import { startAgent, startNats } from "../lab/nats.ts";
import { type Service, startService } from "../lab/service.ts";
import { type Stage, TARGETS } from "./stage.ts";

/** A service on the stage that can ask agents. */
export interface LocatedService extends AsyncDisposable {
  readonly service: Service;
}

/** Starts the service with agents at `ams` and `fra`; the one at `fra` denies the target `told`. */
export async function startLocatedService({ settings }: Stage): Promise<LocatedService> {
  const stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const connected = { ...settings, SIXSCOPE_NATS_URL: nats.url };
  const service = stack.use(await startService({ ...connected, SIXSCOPE_RATE_KEY: "100000" }));
  const agents = await Promise.all([
    startAgent({ ...connected, SIXSCOPE_LOCATION: "ams" }),
    startAgent({
      ...connected,
      SIXSCOPE_LOCATION: "fra",
      SIXSCOPE_RESOLVER_A: settings["SIXSCOPE_RESOLVER_C"] ?? "",
      SIXSCOPE_TARGETS_DENY: `${TARGETS.told}/128`,
    }),
  ]);
  for (const agent of agents) stack.use(agent);
  const known = async () => (await fetch(`${service.url}/locations`)).text();
  while (!/"ams".*"fra"/.test(await known())) await Bun.sleep(50);
  return { service, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}
