/** Valkey fails in every way that we could think of, and the service does not. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { describeWith, labMissing, programMissing, testWith } from "../lab/lab.ts";
import { until, value } from "../lab/metrics.ts";
import { freePort } from "../lab/port.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";
import { ValkeyServer, valkeyMissing } from "../lab/valkey.ts";
import { flood, granted, type Instances, send, startInstances } from "./instances.ts";

const missing = labMissing ?? valkeyMissing;
const scaleTest = testWith(missing);
const tlsTest = testWith(missing, programMissing("openssl"));

const LIMIT = 36;
const PART = LIMIT / 3;
const SETTINGS = {
  SIXSCOPE_RATE_ANONYMOUS: `${LIMIT}`,
  SIXSCOPE_TRUSTED_PROXIES: "127.0.0.1",
};

interface Failure {
  readonly name: string;
  /** The reason in the log. */
  readonly reason: string;
  break(server: ValkeyServer): Promise<unknown>;
  heal(server: ValkeyServer): Promise<unknown>;
}

const PASSWORD = ["-a", "other", "--no-auth-warning"];

const FAILURES: readonly Failure[] = [
  {
    name: "killed, and started again without its data",
    reason: "the connection was closed",
    break: (server) => server.kill(),
    heal: (server) => server.restart(),
  },
  {
    name: "killed, and started again with its data",
    reason: "the connection was closed",
    break: async (server) => {
      await server.cli("SAVE");
      await server.kill();
    },
    heal: (server) => server.restart(),
  },
  {
    name: "frozen",
    reason: "no answer within",
    break: async (server) => server.signal("SIGSTOP"),
    heal: async (server) => server.signal("SIGCONT"),
  },
  {
    name: "accepting commands that it does not run",
    reason: "no answer within",
    break: (server) => server.cli("CLIENT", "PAUSE", "600000", "WRITE"),
    heal: (server) => server.cli("CLIENT", "UNPAUSE"),
  },
  {
    name: "with another password",
    reason: "NOAUTH",
    break: async (server) => {
      await server.cli("CONFIG", "SET", "requirepass", "other");
      await server.cli(...PASSWORD, "CLIENT", "KILL", "TYPE", "normal");
    },
    heal: (server) => server.cli(...PASSWORD, "CONFIG", "SET", "requirepass", ""),
  },
  {
    name: "full",
    reason: "OOM",
    break: (server) => server.cli("CONFIG", "SET", "maxmemory", "1"),
    heal: (server) => server.cli("CONFIG", "SET", "maxmemory", "0"),
  },
  {
    name: "read-only",
    reason: "READONLY",
    break: (server) => server.cli("REPLICAOF", "::1", "1"),
    heal: (server) => server.cli("REPLICAOF", "NO", "ONE"),
  },
  {
    name: "loading its data",
    reason: "LOADING",
    break: async (server) => {
      await server.cli(
        "EVAL",
        "for i = 1, 30000 do redis.call('SET', 'k' .. i, string.rep('x', 100)) end",
        "0",
      );
      await server.cli("SAVE");
      await server.kill();
      // Microseconds for each key.
      const slow = ["--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"];
      await server.restart(...slow);
    },
    heal: (server) => server.cli("CONFIG", "SET", "key-load-delay", "0"),
  },
];

describeWith(missing)("instances that share a Valkey", () => {
  let server: ValkeyServer;
  let instances: Instances;

  beforeAll(async () => {
    server = await ValkeyServer.start();
    instances = await startInstances(server, SETTINGS);
  });

  afterAll(async () => {
    await instances[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  test("answer requests that wait when it freezes", async () => {
    const client = newClient();
    const stopped = flood(instances.services, 16, 5, (service) => send(service, client));
    server.signal("SIGSTOP");
    const responses = await stopped;
    expect(responses.length).toBe(3 * 16 * 5);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 429]));
    // An instance divides what it last knew to be left; of what Valkey granted to others since, it has not heard.
    const unheard = 2 * 16;
    expect(granted(responses)).toBeLessThanOrEqual(LIMIT + unheard);
    server.signal("SIGCONT");
    await instances.areUp(true);
  });

  test("that is frozen refuse no client its share of what was left", async () => {
    const client = newClient();
    const [service] = instances.services as [Service];
    const ask = (requests: number) => flood([service], 1, requests, () => send(service, client));
    expect(granted(await ask(24))).toBe(24);
    server.signal("SIGSTOP");
    await instances.areUp(false);
    const before = granted(await ask(16));
    // A third of the 12 that were left is four.
    expect(before).toBe(4);
    server.signal("SIGCONT");
    await instances.areUp(true);
    expect(24 + before + granted(await ask(16))).toBeLessThanOrEqual(LIMIT);
  });

  test("keep a client to its limit though it has lost all counts", async () => {
    const client = newClient();
    const [service] = instances.services as [Service];
    const before = await flood([service], 1, 24, () => send(service, client));
    await server.kill();
    await instances.areUp(false);
    await server.restart();
    await instances.areUp(true);
    const after = await flood([service], 1, 24, () => send(service, client));
    // On a machine so slow that the window of the first request has ended, there are new tokens.
    const isOver = Date.now() / 1000 >= (before[0]?.resetSeconds ?? 0);
    if (!isOver) expect(granted([...before, ...after])).toBe(LIMIT);
  });

  // The last one has changed how long a start takes.
  test.each([...FAILURES])("keep to the limit while it is $name", async (failure) => {
    const { services } = instances;
    const floodAnew = () => {
      const client = newClient();
      return flood(services, 8, 5, (service) => send(service, client));
    };
    const before = services.map((service) => said(service).length);
    await failure.break(server);
    await instances.areUp(false);
    // Each instance allows exactly its part, and every request has an answer.
    const responses = await floodAnew();
    expect(responses.length).toBe(3 * 8 * 5);
    expect(granted(responses)).toBe(3 * PART);
    expect(new Set(responses.map(({ limit }) => limit))).toEqual(new Set([LIMIT]));
    for (const [at, service] of services.entries()) {
      await until(async () => said(service).slice(before[at]).includes(failure.reason));
    }

    await failure.heal(server);
    await instances.areUp(true);
    expect(granted(await floodAnew())).toBe(LIMIT);
  });
});

let clients = 0;

/** The address of a client that has asked for nothing yet. */
const newClient = () => `192.0.2.${++clients}`;

/** The lines of the log about Valkey. */
function said(service: Service): string {
  const lines = service.stderr().split("\n");
  return lines.filter((line) => line.includes('msg="Valkey')).join("\n");
}

scaleTest("a Valkey that is too slow is not waited for, and the log says it once", async () => {
  await using server = await ValkeyServer.start();
  const proxy = startSlowProxy(server.port, 200);
  const url = `valkey://[::1]:${proxy.port}`;
  await using instances = await startInstances({ url }, SETTINGS, await sixscopeProgram());
  const { services } = instances;
  await instances.areUp(false);
  const responses = await flood(services, 8, 5, (service) => send(service, "192.0.2.1"));
  expect(granted(responses)).toBe(3 * PART);
  // Each tries again and again.
  await until(async () => proxy.connections() > 3 * 4);
  for (const service of services) {
    // An instance that does not get the processor for as long may have an answer in between.
    const states = said(service)
      .split("\n")
      .map((line) => /reason="[^"]*"/.exec(line)?.[0]);
    expect(states.filter((state, at) => at > 0 && state === states[at - 1])).toEqual([]);
    expect(said(service)).toContain("no answer within");
  }
  proxy.stop();
});

/** Forwards bytes to a server on this machine, and its answers after `delayMs` milliseconds. */
function startSlowProxy(port: number, delayMs: number) {
  let connections = 0;
  const listener = Bun.listen<{
    server: Promise<{ write(bytes: Uint8Array): number; end(): void }>;
  }>({
    hostname: "::1",
    port: 0,
    socket: {
      open(client) {
        connections += 1;
        const answer = (_: unknown, bytes: Uint8Array) => {
          const copy = bytes.slice();
          setTimeout(() => client.write(copy), delayMs);
        };
        const socket = { data: answer, close: () => void client.end() };
        client.data = { server: Bun.connect({ hostname: "::1", port, socket }) };
      },
      async data(client, bytes) {
        const copy = bytes.slice();
        (await client.data.server).write(copy);
      },
      async close(client) {
        (await client.data.server).end();
      },
    },
  });
  return {
    port: listener.port,
    connections: () => connections,
    stop: () => listener.stop(true),
  };
}

scaleTest("each change of state is one line in the log", async () => {
  await using server = await ValkeyServer.start();
  await using instances = await startInstances(server, SETTINGS);
  await server.kill();
  await instances.areUp(false);
  const [service] = instances.services as [Service];
  await flood([service], 4, 5, () => send(service, "192.0.2.1"));
  await server.restart();
  await instances.areUp(true);
  // The log is written a moment later.
  while (said(service).split("\n").length < 3) await Bun.sleep(20);
  const lines = said(service).split("\n");
  expect(lines.map((line) => /Valkey (answers|does not answer)/.exec(line)?.[1])).toEqual([
    "answers",
    "does not answer",
    "answers",
  ]);
});

scaleTest("a service starts and stops while Valkey is away, frozen or slow", async () => {
  await using server = await ValkeyServer.start();
  server.signal("SIGSTOP");
  for (const url of [server.url, `valkey://[::1]:${await freePort()}`]) {
    await using service = await startService({ ...SETTINGS, SIXSCOPE_VALKEY_URL: url });
    expect((await send(service, "192.0.2.1")).status).toBe(200);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  }
});

describe("a server with TLS and a password", () => {
  tlsTest(
    "is used with a certificate that is trusted, and its password is never shown",
    async () => {
      await using server = await ValkeyServer.startTls("--requirepass", "s3cret");
      const url = `valkeys://:s3cret@[::1]:${server.port}`;
      const trusted = { NODE_EXTRA_CA_CERTS: join(server.folder, "cert.pem") };
      await using instances = await startInstances({ url }, { ...SETTINGS, ...trusted });
      const { services } = instances;
      const responses = await flood(services, 2, 10, (service) => send(service, "192.0.2.1"));
      expect(granted(responses)).toBe(LIMIT);
      const doctor = await sixscope(["doctor"], { ...trusted, SIXSCOPE_VALKEY_URL: url });
      expect(doctor.stdout).toMatch(
        /^\w+ +read the keys in valkeys:..\[::1\]:\d+: (active keys: |no key is active)/m,
      );
      const all = services.map((service) => service.stderr() + service.startLines.join());
      expect(all.join() + doctor.stdout + doctor.stderr).not.toContain("s3cret");
    },
  );

  const WRONG: [name: string, password: string, isTrusted: boolean, reason: string][] = [
    ["a certificate that is not trusted", "s3cret", false, "self signed certificate"],
    ["a wrong password", "wr0ng", true, "WRONGPASS"],
  ];
  tlsTest.each(WRONG)(
    "%s: the service says why, and answers",
    async (_, password, isTrusted, reason) => {
      await using server = await ValkeyServer.startTls("--requirepass", "s3cret");
      const environment = {
        ...SETTINGS,
        ...(isTrusted && { NODE_EXTRA_CA_CERTS: join(server.folder, "cert.pem") }),
        SIXSCOPE_VALKEY_URL: `valkeys://:${password}@[::1]:${server.port}`,
      };
      await using service = await startService(environment);
      await service.says(reason);
      expect((await send(service, "192.0.2.1")).status).toBe(200);
      const doctor = await sixscope(["doctor"], environment);
      expect(doctor.status).toBe(1);
      expect(doctor.stdout).toMatch(
        new RegExp(`^problem +read the keys in valkeys:.*${reason}.*SIXSCOPE_VALKEY_URL`, "m"),
      );
      const added = await sixscope(["keys", "add", "one"], environment);
      expect([added.status, added.stdout]).toEqual([1, ""]);
      expect(added.stderr).toContain(reason);
      expect(service.stderr() + doctor.stdout + added.stderr).not.toContain(password);
    },
  );
});

scaleTest("calls are counted by outcome", async () => {
  await using server = await ValkeyServer.start();
  await using instances = await startInstances(server, SETTINGS);
  const [service] = instances.services as [Service];
  const calls = (outcome: string) =>
    value(service, "sixscope_valkey_call_duration_seconds_count", { outcome });
  await send(service, "192.0.2.1");
  await until(async () => (await calls("answered")) + (await calls("given_up")) === 1);
  server.signal("SIGSTOP");
  while ((await calls("given_up")) + (await calls("failed")) === 0) {
    await send(service, "192.0.2.1");
    if ((await value(service, "sixscope_valkey_up")) === 0) break;
  }
  await instances.areUp(false);
  expect(await value(service, "sixscope_valkey_instances")).toBe(3);
});
