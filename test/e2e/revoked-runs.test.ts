/** Runs end when their key is no longer valid, wherever the keys are and wherever the run is. */
import { describe, expect } from "bun:test";
import { readEvents, type SentEvent } from "../lab/events.ts";
import { sixscopeHere } from "../lab/in-process.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { startAgent, startNats, untilListed } from "../lab/nats.ts";
import { type Service, startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";

const revokedTest = testWith(labMissing);
const valkeyTest = testWith(labMissing ?? valkeyMissing);
const natsTest = testWith(labMissing ?? programMissing("nats-server"));

/** A run of 100 seconds. */
const RUN = "/mtr/::1?rounds=100&intervalMs=1000&names=no";

interface File {
  readonly version: 1;
  readonly keys: readonly { readonly name: string; readonly expires?: string }[];
}

/** Begins a run, ends its key after the first event, and returns the last event. */
async function lastEvent(service: Service, path: string, end: () => Promise<unknown>) {
  const headers = { "X-API-Key": service.key, Accept: "text/event-stream" };
  const events: SentEvent[] = [];
  const begin = () => fetch(service.url + path, { headers });
  let response = await begin();
  // The keys in Valkey are not there until it is connected.
  while (response.status === 500) {
    await Bun.sleep(20);
    response = await begin();
  }
  expect(response.status).toBe(200);
  for await (const event of readEvents(response)) {
    if (events.push(event) === 1) await end();
  }
  // It has not run to its end.
  expect(events.length).toBeLessThan(50);
  return events.at(-1);
}

const UNAUTHORIZED = { event: "error", data: { error: { code: "UNAUTHORIZED", details: {} } } };

const revoke = (settings: Readonly<Record<string, string>>) =>
  sixscopeHere(["keys", "revoke", "test"], settings);

describe("a run ends when its key", () => {
  const change = async ({ keysFile }: Service, edit: (keys: File["keys"]) => File["keys"]) => {
    const { keys }: File = await Bun.file(keysFile).json();
    await Bun.write(keysFile, JSON.stringify({ version: 1, keys: edit(keys) }));
  };
  revokedTest.each<[how: string, end: (service: Service) => Promise<unknown>]>([
    ["is revoked", ({ keysFile }) => revoke({ SIXSCOPE_KEYS_FILE: keysFile })],
    ["is no longer in the file", (service) => change(service, () => [])],
    [
      "expires",
      (service) =>
        change(service, (keys) =>
          keys.map((key) => ({ ...key, expires: new Date(Date.now() + 1500).toISOString() })),
        ),
    ],
  ])("%s, as events and as JSON", async (_, end) => {
    await using service = await startService();
    const headers = { "X-API-Key": service.key };
    const plain = fetch(service.url + RUN, { headers });
    const last = await lastEvent(service, RUN, () => end(service));
    expect(last).toMatchObject(UNAUTHORIZED);
    const response = await plain;
    expect([response.status, response.headers.has("www-authenticate")]).toEqual([401, true]);
    expect(((await response.json()) as { error: { code: string } }).error.code).toBe(
      "UNAUTHORIZED",
    );
    // The slots are free, and nothing of it was a fault.
    expect(service.stderr()).not.toContain("level=error");
  });

  valkeyTest("is revoked in Valkey", async () => {
    await using server = await ValkeyServer.start();
    const settings = { SIXSCOPE_VALKEY_URL: server.url };
    await using service = await startService(settings);
    expect(await lastEvent(service, RUN, () => revoke(settings))).toMatchObject(UNAUTHORIZED);
  });

  natsTest("is revoked, also at another place", async () => {
    await using nats = await startNats();
    const settings = { SIXSCOPE_NATS_URL: nats.url };
    await using service = await startService(settings);
    await using agent = await startAgent({ ...settings, SIXSCOPE_LOCATION: "ams" });
    await untilListed(service, "ams");
    const file = { SIXSCOPE_KEYS_FILE: service.keysFile };
    const path = `${RUN}&from=ams`;
    expect(await lastEvent(service, path, () => revoke(file))).toMatchObject(UNAUTHORIZED);
    await agent.says("endpoint=mtr outcome=aborted");
  });
});
