/** The service as a process: start, output and stop. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sixscopeHere } from "../lab/in-process.ts";
import { startKernelChain } from "../lab/kernel-chain.ts";
import { labMissing, programMissing, testWith, usersMissing } from "../lab/lab.ts";
import { run } from "../lab/run.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";

const labTest = testWith(labMissing);
const listeningTest = testWith(labMissing, programMissing("ss"));

/** No keys file, so that the tests do not read one from the working directory. */
const NO_KEYS = { SIXSCOPE_KEYS_FILE: "/nonexistent" };

describe("start", () => {
  labTest(
    "prints where it listens, raw sockets, keys and a first command, in at most five lines",
    async () => {
      await using service = await startService();
      expect(service.startLines.length).toBeLessThanOrEqual(5);
      expect(service.startLines).toEqual([
        expect.stringMatching(
          /^sixscope \d+\.\d+\.\d+ listens on http:\/\/127\.0\.0\.1:\d+ and http:\/\/\[::1\]:\d+$/,
        ),
        "raw sockets: ready to probe targets",
        `API keys: 1 in ${service.keysFile}`,
        "access: without a key, lookups from this machine; with a key (1 valid), probes of any address, private ones included (SIXSCOPE_TARGETS=any)",
        expect.stringMatching(
          /^next, try a request: curl -s 'http:\/\/127\.0\.0\.1:\d+\/api\/v1\/validate/,
        ),
      ]);
      expect(service.stderr()).toBe("");
    },
  );

  listeningTest("listens on no wildcard address by default", async () => {
    await using service = await startService({ SIXSCOPE_LISTEN: "" });
    expect(service.urls).toEqual(["http://127.0.0.1:8080/api/v1", "http://[::1]:8080/api/v1"]);
    const sockets = await run(["ss", "-Hltn"]);
    const listening = sockets.split("\n").flatMap((line) => line.split(/ +/)[3] ?? []);
    expect(listening.filter((address) => address.endsWith(":8080")).toSorted()).toEqual([
      "127.0.0.1:8080",
      "[::1]:8080",
    ]);
  });

  test("settings that are not valid are all reported at once: status 2", async () => {
    const { status, stdout, stderr } = await sixscope([], {
      ...NO_KEYS,
      SIXSCOPE_MAX_PROBES: "none",
      SIXSCOPE_LISTEN: "nowhere",
    });
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr.trimEnd().split("\n")).toHaveLength(2);
  });

  test("a port in use is named: status 1", async () => {
    using taken = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { status, stderr } = await sixscope([], {
      ...NO_KEYS,
      SIXSCOPE_LISTEN: `127.0.0.1:${taken.port}`,
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(
      new RegExp(
        `cannot listen on 127\\.0\\.0\\.1:${taken.port}: another process uses the port .*; .*SIXSCOPE_LISTEN`,
      ),
    );
  });

  labTest("localhost means both loopback addresses", async () => {
    await using service = await startService({ SIXSCOPE_LISTEN: "localhost:0" });
    expect(service.urls).toEqual([
      expect.stringMatching(/^http:\/\/127\.0\.0\.1:/),
      expect.stringMatching(/^http:\/\/\[::1\]:/),
    ]);
  });

  const listeners: [string, Record<string, string>, boolean][] = [
    ["on all addresses", {}, true],
    ["with a trusted proxy", { SIXSCOPE_TRUSTED_PROXIES: "2001:db8::/32" }, false],
    ["on loopback", { SIXSCOPE_LISTEN: "[::1]:0" }, false],
  ];
  labTest.each(listeners)(
    "plain HTTP %s: it warns if it refuses every other machine",
    async (_, environment, warns) => {
      await using service = await startService({ SIXSCOPE_LISTEN: "[::]:0", ...environment });
      const [example = ""] = service.startLines.slice(-1);
      const command = example.replace("next, try a request: ", "");
      expect(await run(["sh", "-ec", command])).toContain('"valid":true');
      service.signal("SIGTERM");
      await service.exited;
      const warning =
        /level=warning .*\[::\]:0 refuses every other machine, .*; set SIXSCOPE_TLS_CERT/;
      expect(warning.test(service.stderr())).toBe(warns);
    },
  );

  labTest("a second service on the same port or socket reports it: status 1", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-"));
    const socket = join(folder, "socket");
    await using _ = await startService({ SIXSCOPE_LISTEN: `127.0.0.1:9600,unix:${socket}` });
    for (const address of ["127.0.0.1:9600", `unix:${socket}`]) {
      const { status, stderr } = await sixscope([], { ...NO_KEYS, SIXSCOPE_LISTEN: address });
      expect(status).toBe(1);
      expect(stderr).toContain(`cannot listen on ${address}`);
    }
    const twice = { ...NO_KEYS, SIXSCOPE_LISTEN: "127.0.0.1:9601,127.0.0.1:9601" };
    expect((await sixscope([], twice)).status).toBe(1);
    expect(statSync(socket).mode & 0o777).toBe(0o660);
    rmSync(folder, { recursive: true });
  });

  labTest("a socket file of a killed service is replaced", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-"));
    const environment = { SIXSCOPE_LISTEN: `unix:${join(folder, "socket")}` };
    for (let round = 0; round < 2; round++) {
      await using service = await startService(environment);
      service.signal("SIGKILL");
      await service.exited;
    }
    rmSync(folder, { recursive: true });
  });

  labTest("a damaged keys file stops ping, not the service, until it is restored", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-"));
    const file = join(folder, "keys.json");
    await sixscopeHere(["keys", "add", "me"], { SIXSCOPE_KEYS_FILE: file });
    const good = readFileSync(file, "utf8");
    writeFileSync(file, "[]");
    await using service = await startService({ SIXSCOPE_KEYS_FILE: file });
    expect(service.startLines.at(-1)).toBe(
      "next, correct or restore the keys file; doctor says what is wrong with it",
    );
    expect((await fetch(`${service.url}/myip`)).status).toBe(200);
    expect((await fetch(`${service.url}/ping/::1`)).status).toBe(401);
    await service.says(`the keys file ${file} does not parse`);
    await service.says("until it can be used, no key is valid");
    writeFileSync(file, good);
    await service.says('msg="keys file read again"');
    await service.says("active=1");
    rmSync(folder, { recursive: true });
  });
});

describe("command line", () => {
  const rows: [string[], number, RegExp][] = [
    [["--version"], 0, /^sixscope \d+\.\d+\.\d+\n$/],
    [["-v"], 0, /^sixscope \d+\.\d+\.\d+\n$/],
    [["--help"], 0, /^ {2}keys +create, list and revoke API keys$/m],
    [["help", "keys", "add"], 0, /^Example: sixscope keys add me/m],
    [
      ["serv"],
      2,
      /^sixscope: unknown command 'serv'\n\(Did you mean serve\?\)\nusage: sixscope .*; see sixscope --help\n$/,
    ],
    [
      ["serve", "--port", "1"],
      2,
      /^sixscope: unknown option '--port'\nusage: sixscope serve \[options\]; see sixscope serve --help\n$/,
    ],
    [
      ["serve", "now"],
      2,
      /^sixscope: too many arguments for 'serve'.*\nusage: sixscope serve \[options\]; see sixscope serve --help\n$/,
    ],
    [
      ["doctor", "--yaml"],
      2,
      /^sixscope: unknown option '--yaml'\nusage: sixscope doctor \[options\]; see sixscope doctor --help\n$/,
    ],
    [["completion", "tcsh"], 2, /^sixscope: shell: one of bash, zsh, fish\.\nusage: .*\n$/],
  ];
  test.each(rows)("%p ends with status %d", async (args, status, said) => {
    const result = await sixscope(args);
    expect(result.status).toBe(status);
    expect(result.stdout + result.stderr).toMatch(said);
  });
});

describe("without CAP_NET_RAW", () => {
  const dropTest = testWith(labMissing, programMissing("setpriv"));
  dropTest(
    "the service says so once, serves the other endpoints, and answers ICMP_UNAVAILABLE",
    async () => {
      await using service = await startService({}, [
        "setpriv",
        "--bounding-set=-net_raw",
        "--inh-caps=-net_raw",
        "--",
      ]);
      const about = service.startLines.filter((line) => line.includes("raw socket"));
      expect(about).toEqual([
        expect.stringMatching(
          /^raw sockets: none \(socket.*: EPERM\), so all probes answer ICMP_UNAVAILABLE; grant CAP_NET_RAW$/,
        ),
      ]);
      expect((await fetch(`${service.url}/myip`)).status).toBe(200);
      expect((await fetch(`${service.url}/validate?address=::1`)).status).toBe(200);
      for (const path of ["ping", "traceroute", "mtr", "mtu"]) {
        const response = await fetch(`${service.url}/${path}/::1`, {
          headers: { "X-API-Key": service.key },
        });
        expect(response.status).toBe(500);
        expect(await response.json()).toMatchObject({
          error: {
            code: "ICMP_UNAVAILABLE",
            details: { reason: expect.stringMatching(/: EPERM$/) },
          },
        });
      }
    },
  );

  const groupTest = testWith(usersMissing, programMissing("setpriv"));
  groupTest("ping works where ping_group_range includes its group", async () => {
    const range = "/proc/sys/net/ipv4/ping_group_range";
    const before = readFileSync(range, "utf8");
    writeFileSync(range, "0 65535");
    await using service = await startService({}, [
      ...["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"],
    ]);
    writeFileSync(range, before);
    expect(service.startLines).toContainEqual(
      expect.stringMatching(
        /^raw sockets: none \(.*: EPERM\), so all probes but pings answer ICMP_UNAVAILABLE; /,
      ),
    );
    const headers = { "X-API-Key": service.key };
    const ping = await fetch(`${service.url}/ping/::1?count=2`, { headers });
    expect(await ping.json()).toMatchObject({ stats: { received: 2 } });
    for (const path of ["traceroute", "mtr", "mtu"]) {
      const trace = await fetch(`${service.url}/${path}/::1`, { headers });
      expect(await trace.json()).toMatchObject({ error: { code: "ICMP_UNAVAILABLE" } });
    }
  });
});

/** How many echo requests were sent or received in this network namespace. */
function echoRequests(way: "In" | "Out"): number {
  const counters = readFileSync("/proc/net/snmp6", "utf8");
  return Number(new RegExp(`^Icmp6${way}Echos\\s+(\\d+)`, "m").exec(counters)?.[1]);
}

describe("stop", () => {
  labTest.each(["SIGTERM", "SIGINT"] as const)(
    "after %s running requests finish, then the service exits with status 0",
    async (signal) => {
      await using service = await startService();
      const before = echoRequests("In");
      const running = fetch(`${service.url}/ping/::1?count=4`, {
        headers: { "X-API-Key": service.key },
      });
      while (echoRequests("In") === before) await Bun.sleep(10);
      service.signal(signal);
      const response = await running;
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ stats: { received: 4 } });
      expect(await service.exited).toBe(0);
      expect(service.stderr()).toMatch(/msg="probes since the start" sent=4 .*answered=4 /);
    },
  );

  labTest("under load, every accepted request gets its response", async () => {
    await using service = await startService({ SIXSCOPE_RATE_ANONYMOUS: "1000000" });
    let answered = 0;
    let isOver = false;
    const clients = Array.from({ length: 16 }, async (_, client) => {
      while (!isOver) {
        // A refused or reset connection was never accepted; a response that is cut short was.
        const response = await fetch(`${service.url}/myip`, { keepalive: client % 2 === 0 }).catch(
          () => null,
        );
        if (response === null) continue;
        expect(await response.json()).toMatchObject({ ip: "127.0.0.1" });
        answered += 1;
      }
    });
    while (answered < 200) await Bun.sleep(10);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    isOver = true;
    await Promise.all(clients);
    expect(service.stderr().match(/ msg=request /g)).toHaveLength(answered);
  });

  labTest("a second signal ends running requests at once", async () => {
    await using chain = await startKernelChain({ routers: 0 });
    await chain.exec(1, ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/icmp/echo_ignore_all"]);
    await using service = await startService({ SIXSCOPE_PROBE_TIMEOUT_MS: "10000" });
    const before = echoRequests("Out");
    const running = fetch(`${service.url}/ping/${chain.target}?count=10`, {
      headers: { "X-API-Key": service.key },
    }).then(
      ({ status }) => status,
      () => "closed",
    );
    while (echoRequests("Out") === before) await Bun.sleep(10);
    service.signal("SIGTERM");
    await service.says("running requests may finish");
    service.signal("SIGTERM");
    expect(await running).toBe("closed");
    expect(await service.exited).toBe(0);
  });

  labTest("SIXSCOPE_STOP_GRACE_MS bounds how long it waits for them", async () => {
    await using chain = await startKernelChain({ routers: 0 });
    await chain.exec(1, ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/icmp/echo_ignore_all"]);
    const environment = { SIXSCOPE_PROBE_TIMEOUT_MS: "10000", SIXSCOPE_STOP_GRACE_MS: "50" };
    await using service = await startService(environment);
    const before = echoRequests("Out");
    const running = fetch(`${service.url}/ping/${chain.target}?count=10`, {
      headers: { "X-API-Key": service.key },
    }).then(
      ({ status }) => status,
      () => "closed",
    );
    while (echoRequests("Out") === before) await Bun.sleep(10);
    service.signal("SIGTERM");
    expect(await running).toBe("closed");
    expect(await service.exited).toBe(0);
    expect(service.stderr()).toContain("graceSeconds=0.05");
  });

  labTest("a log that is not read does not delay it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sixscope-"));
    const fullPipe = `mkfifo "$0"; exec 3<>"$0"
      dd if=/dev/zero of="$0" oflag=nonblock 2> /dev/null
      exec "$@" 2>&3`;
    const wrapper = ["sh", "-c", fullPipe, join(folder, "pipe")];
    await using service = await startService({}, wrapper);
    expect((await fetch(`${service.url}/myip`)).status).toBe(200);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    rmSync(folder, { recursive: true });
  });

  labTest("an idle connection does not delay it", async () => {
    await using service = await startService();
    await fetch(`${service.url}/myip`, { keepalive: true });
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  });
});

describe("keys of a running service", () => {
  labTest("without a restart, a new key works and a revoked key does not", async () => {
    await using service = await startService();
    const environment = { SIXSCOPE_KEYS_FILE: service.keysFile };
    const { stdout } = await sixscopeHere(["keys", "add", "second"], environment);
    const key = stdout.split("\n")[0] ?? "";
    await statusBecomes(service, key, 200);
    await sixscopeHere(["keys", "revoke", "second"], environment);
    await statusBecomes(service, key, 401);
  });

  labTest(
    "after a file breaks or vanishes, the old keys work, and an error is logged",
    async () => {
      await using service = await startService();
      const good = readFileSync(service.keysFile, "utf8");
      writeFileSync(service.keysFile, "{");
      await service.says("does not parse");
      await statusBecomes(service, service.key, 200);
      rmSync(service.keysFile);
      await service.says("has vanished");
      await statusBecomes(service, service.key, 200);
      writeFileSync(service.keysFile, good);
      await service.says("keys file read again");
    },
  );

  labTest("SIGHUP reads the file at once", async () => {
    await using service = await startService();
    service.signal("SIGHUP");
    await service.says("keys file read again");
  });

  labTest("the rate limit headers show a key's own limit", async () => {
    await using service = await startService();
    const { stdout } = await sixscopeHere(["keys", "add", "big", "--limit", "5000"], {
      SIXSCOPE_KEYS_FILE: service.keysFile,
    });
    const key = stdout.split("\n")[0] ?? "";
    await statusBecomes(service, key, 200);
    const limits = [];
    for (const header of [key, service.key, "sx_wrong"]) {
      const response = await fetch(`${service.url}/myip`, { headers: { "X-API-Key": header } });
      limits.push(response.headers.get("x-ratelimit-limit"));
    }
    expect(limits).toEqual(["5000", "1000", "100"]);
  });
});

async function statusBecomes(service: Service, key: string, status: number): Promise<void> {
  for (;;) {
    const response = await fetch(`${service.url}/ping/::1?count=1`, {
      headers: { "X-API-Key": key },
    });
    if (response.status === status) return;
    await Bun.sleep(50);
  }
}

test("killing what started it ends the service", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sixscope-test-"));
  symlinkSync(process.execPath, join(folder, "bun"));
  const PATH = `${folder}:${process.env["PATH"]}`;
  const parent = Bun.spawn(["sh", "-c", 'bun run start 2>&1; echo "ended"'], {
    env: { ...process.env, PATH, SIXSCOPE_LISTEN: "[::1]:0" },
    cwd: join(import.meta.dir, "../.."),
    stdio: ["ignore", "pipe", "inherit"],
  });
  // Only the end of all that has it open ends the output.
  let said = "";
  for await (const text of parent.stdout.pipeThrough(new TextDecoderStream())) {
    said += text;
    if (said.includes("next, ")) parent.kill("SIGKILL");
  }
  expect(said).toContain("listens on http://[::1]:");
  expect(said).not.toContain("ended");
  rmSync(folder, { recursive: true });
});

labTest(
  "targets, their addresses and places are in the log if the operator wants them",
  async () => {
    for (const [wish, expected] of [
      ["no", "key=test\n"],
      ["yes", "key=test target=::1 from=here ip=::1\n"],
    ] as const) {
      await using service = await startService({
        SIXSCOPE_LISTEN: "[::1]:0",
        SIXSCOPE_LOG_TARGETS: wish,
        SIXSCOPE_LOCATION: "here",
      });
      const headers = { "X-API-Key": service.key };
      await fetch(`${service.url}/ping/::1?count=1&from=here`, { headers });
      await service.says(expected);
    }
  },
);
