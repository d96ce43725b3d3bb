import { until, value } from "../lab/metrics.ts";
import { patientProgram } from "../lab/program.ts";
import { type Service, startService } from "../lab/service.ts";
import type { ValkeyServer } from "../lab/valkey.ts";

/** Services that share a server, and how to ask them as different clients. */
export interface Instances extends AsyncDisposable {
  readonly services: readonly Service[];
  /** Waits until each says that Valkey answers and has counted all of these, or that it does not. */
  areUp(isUp: boolean): Promise<void>;
}

/** Settings with which a test says in X-Forwarded-For who the client is. */
const SETTINGS = { SIXSCOPE_METRICS_LISTEN: "127.0.0.1:0", SIXSCOPE_TRUSTED_PROXIES: "127.0.0.1" };

/**
 * Starts three instances and waits until each counts all of them.
 *
 * @param program the command that is sixscope, by default one that waits for Valkey on a busy machine too
 */
export async function startInstances(
  server: Pick<ValkeyServer, "url">,
  settings: Readonly<Record<string, string>> = {},
  program?: readonly string[],
): Promise<Instances> {
  const environment = { ...SETTINGS, SIXSCOPE_VALKEY_URL: server.url, ...settings };
  const command = program ?? (await patientProgram());
  const start = () => startService(environment, [], command);
  // The first one gets the key.
  const first = await start();
  const services = [first, ...(await Promise.all([start(), start()]))];
  const all = (name: string, isWanted: (value: number) => boolean) =>
    until(async () => {
      const values = await Promise.all(services.map((service) => value(service, name)));
      return values.every(isWanted);
    });
  // A test may have started another one.
  const areCounted = () => all("sixscope_valkey_instances", (count) => count >= services.length);
  await areCounted();
  return {
    services,
    async areUp(isUp) {
      await all("sixscope_valkey_up", (value) => value === Number(isUp));
      if (isUp) await areCounted();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(services.map((service) => service[Symbol.asyncDispose]()));
    },
  };
}

/** A response to a request that costs a token. */
export interface Charged {
  readonly status: number;
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
}

/** Sends one request as a client of that address, with a key if one is given. */
export async function send({ url }: Service, client: string, key?: string): Promise<Charged> {
  const headers = {
    "X-Forwarded-For": client,
    "X-Forwarded-Proto": "https",
    ...(key !== undefined && { "X-API-Key": key }),
  };
  const response = await fetch(`${url}/validate?address=::1`, { headers });
  await response.arrayBuffer();
  const header = (name: string) => Number(response.headers.get(`x-ratelimit-${name}`));
  return {
    status: response.status,
    limit: header("limit"),
    remaining: header("remaining"),
    resetSeconds: header("reset"),
  };
}

/** Sends requests to each instance over `connections` connections at once, and returns all responses. */
export async function flood(
  services: readonly Service[],
  connections: number,
  requests: number,
  sendOne: (service: Service, connection: number) => Promise<Charged>,
): Promise<Charged[]> {
  const responses: Charged[] = [];
  const clients = services.flatMap((service) =>
    Array.from({ length: connections }, async (_, connection) => {
      for (let count = 0; count < requests; count++)
        responses.push(await sendOne(service, connection));
    }),
  );
  await Promise.all(clients);
  return responses;
}

/** How many of the responses were granted. */
export function granted(responses: readonly Charged[]): number {
  return responses.filter(({ status }) => status === 200).length;
}
