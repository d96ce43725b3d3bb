/** The walkthrough "Several places" of docs/operations.md, word for word, and what its server configuration forbids. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { connect, nkeyAuthenticator, nkeys } from "@nats-io/transport-node";
import { makeCertificate } from "../lab/certificate.ts";
import { readEvents } from "../lab/events.ts";
import { describeWith, labMissing, programMissing } from "../lab/lab.ts";
import { value } from "../lab/metrics.ts";
import { type Agent, type NatsServer, startAgent, startNats } from "../lab/nats.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";

const missing =
  labMissing ??
  programMissing("nats-server") ??
  programMissing("openssl") ??
  programMissing("curl");

const page = readFileSync(join(import.meta.dir, "../../docs/operations.md"), "utf8");
const [, section = ""] = /\n## Several places\n(.*?)\n## /s.exec(page) ?? [];
const [makeKeys = "", startAgents = "", startInstance = "", ask = ""] = [
  ...section.matchAll(/```sh\n(.*?)```/gs),
].map(([, script = ""]) => script);
const [, configuration = ""] = /```\n(listen:.*?)```/s.exec(section) ?? [];

/** The variables in front of each command of a script. */
function settingsOf(script: string): Record<string, string>[] {
  return script
    .trimEnd()
    .split("\n")
    .map((line) =>
      Object.fromEntries([...line.matchAll(/(SIXSCOPE_\w+)=(\S+)/g)].map(([, a, b]) => [a, b])),
    );
}

describeWith(missing)("the walkthrough, with the compiled executable", () => {
  let folder: string;
  let executable: string;
  let nats: NatsServer;
  let service: Service;
  const agents: Agent[] = [];
  let pem: { readonly cert: string; readonly key: string };

  /** Its settings, with the files and the address of this test. */
  const here = (settings: Readonly<Record<string, string>> = {}) => ({
    ...settings,
    SIXSCOPE_NATS_URL: `tls://localhost:${nats.port}`,
    SIXSCOPE_NATS_CREDS: join(folder, settings["SIXSCOPE_NATS_CREDS"] ?? ""),
    SIXSCOPE_RESOLVER_A: "[::1]:1",
    NODE_EXTRA_CA_CERTS: pem.cert,
  });

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "several-places-"));
    [executable = ""] = await sixscopeProgram();
    pem = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
    await makeCertificate({
      commonName: "localhost",
      alternatives: "DNS:localhost,IP:::1",
      days: 1,
      certFile: pem.cert,
      keyFile: pem.key,
    });
    const make = `${makeKeys}\nsixscope agent --new-key second.nk`;
    const printed = await run([
      "sh",
      "-ec",
      `cd ${folder}\nPATH=${dirname(executable)}:$PATH\n${make}`,
    ]);
    const [ofService = "", ofAms = "", ofFra = "", ofSecond = ""] = printed.split("\n");
    const [entry = ""] =
      / {4}\{\n {6}nkey: PUBLIC_KEY_OF_SERVICE\n.*?\n {4}\}\n/s.exec(configuration) ?? [];
    const second = entry.replaceAll("PUBLIC_KEY_OF_SERVICE", ofSecond);
    expect(second.split(ofSecond).length).toBe(5);
    const configured = configuration
      .replace(entry, entry + second)
      .replaceAll("PUBLIC_KEY_OF_SERVICE", ofService)
      .replaceAll("PUBLIC_KEY_OF_AMS", ofAms)
      .replaceAll("PUBLIC_KEY_OF_FRA", ofFra);
    expect(configured).not.toContain("PUBLIC_KEY");
    nats = await startNats(configured, {
      "cert.pem": readFileSync(pem.cert, "utf8"),
      "key.pem": readFileSync(pem.key, "utf8"),
    });
    for (const settings of settingsOf(startAgents)) {
      agents.push(await startAgent(here(settings), [], [executable]));
    }
    const [settings] = settingsOf(startInstance);
    service = await startService(
      {
        ...here(settings),
        SIXSCOPE_LISTEN: "[::1]:0",
        SIXSCOPE_METRICS_LISTEN: "[::1]:0",
      },
      [],
      [executable],
    );
  });

  afterAll(async () => {
    for (const each of [service, ...agents, nats]) await each?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  test("its last commands give an answer from both places", async () => {
    const [who = "", curl = "", tool = ""] = ask.split("\n");
    const paste = (command: string) => {
      const mine = command.replace("http://[::1]:8080", service.url.replace("/api/v1", ""));
      const key = `key=${service.key}\nexport SIXSCOPE_KEY=$key PATH=${dirname(executable)}:$PATH`;
      return run(["sh", "-ec", `${key}\n${mine}`]);
    };
    await service.says("connected to NATS");
    let there = [];
    // Each agent announces itself within five seconds.
    for (; there.length < 2; await Bun.sleep(200)) {
      there = JSON.parse(await paste(who)).locations.map(
        (each: { location: string }) => each.location,
      );
    }
    expect(there).toEqual(["ams", "fra"]);
    const { locations } = JSON.parse(await paste(curl));
    expect(
      locations.map((each: { result: { details: object } }) => each.result.details),
    ).toMatchObject([{ location: "ams" }, { location: "fra" }]);
    expect(await paste(tool)).toMatch(
      /^location +verdict +loss +median\nams +no loss +0% .* ms\nfra +no loss .*\n\nams\nseq .*\n::1\nThe target replied to all 4 requests\.\n.*\nfra\nseq .*\nReplies +4 of 4, 0 % lost\n/s,
    );
    expect(await value(service, "sixscope_nats_connected")).toBe(1);
    expect(await value(service, "sixscope_location_asks_total", { outcome: "result" })).toBe(4);
  });

  test("the tools need a service for --from, and say when a location fails", async () => {
    const program = [executable];
    const alone = await sixscope(["ping", "::1", "--from", "ams"], {}, program);
    expect([alone.status, alone.stderr.split("\n")[0]]).toEqual([
      2,
      "sixscope: only a service knows other locations; name one with --server URL",
    ]);
    const server = service.url.replace("/api/v1", "");
    const variables = { SIXSCOPE_SERVER: server, SIXSCOPE_KEY: service.key };
    const one = await sixscope(["trace", "::1", "--from", "ams"], variables, program);
    expect([one.status, one.stdout]).toEqual([
      0,
      expect.stringContaining("\nThe target replied at hop 1.\n"),
    ]);
    const some = await sixscope(["ping", "::1", "--from", "ams,gone"], variables, program);
    expect([some.status, some.stdout]).toEqual([
      1,
      expect.stringContaining('There is no location "gone"'),
    ]);
    const json = await sixscope(["ping", "::1", "--from", "all", "--json"], variables, program);
    expect(JSON.parse(json.stdout).locations).toHaveLength(2);
  });

  test("an agent needs its settings", async () => {
    const { status, stderr } = await sixscope(["agent"], {}, [executable]);
    expect(status).toBe(2);
    expect(stderr).toContain("SIXSCOPE_NATS_URL is not set");
    expect(stderr).toContain("SIXSCOPE_LOCATION is not set");
    const again = await sixscope(["agent", "--new-key", join(folder, "ams.nk")], {}, [executable]);
    expect([again.status, again.stderr]).toEqual([
      1,
      expect.stringContaining("file already exists"),
    ]);
  });

  test.each<[what: string, change: Record<string, string>, state: string, says: string]>([
    ["the right key", {}, "ok ", "it accepts us"],
    [
      "the service's key",
      { SIXSCOPE_LOCATION: "", SIXSCOPE_NATS_CREDS: "service.nk" },
      "ok ",
      "it accepts us",
    ],
    ["no file", { SIXSCOPE_NATS_CREDS: "/none" }, "problem", "/none"],
    ["what is not a key", { SIXSCOPE_NATS_CREDS: "not-a.key" }, "problem", "not-a.key is neither"],
    ["no authority", { NODE_EXTRA_CA_CERTS: "" }, "problem", "set NODE_EXTRA_CA_CERTS"],
  ])("doctor tries the connection, with %s", async (_, change, state, says) => {
    await Bun.write(join(folder, "not-a.key"), "SUSECRET\n");
    const settings = { ...here({ ...settingsOf(startAgents)[0], ...change }), ...change };
    settings["SIXSCOPE_NATS_CREDS"] = resolve(folder, settings["SIXSCOPE_NATS_CREDS"] ?? "");
    const { stdout } = await sixscope(["doctor"], settings, [executable]);
    const line = stdout.split("\n").find((each) => each.includes("connect to NATS at tls://"));
    expect(line).toStartWith(state);
    expect(line).toContain(says);
    expect(stdout).not.toContain(readFileSync(join(folder, "ams.nk"), "utf8").trim());
    expect(stdout).not.toContain("SECRET");
  });

  /** Logs in with a key of the walkthrough, and collects what the server refuses. */
  const logIn = async (file: string) => {
    const seed = new Uint8Array(Buffer.from(readFileSync(join(folder, file), "utf8").trim()));
    const connection = await connect({
      servers: [`localhost:${nats.port}`],
      authenticator: nkeyAuthenticator(seed),
      tls: { caFile: pem.cert },
    });
    const refused: string[] = [];
    void (async () => {
      for await (const status of connection.status()) {
        if (status.type === "error") refused.push(status.error.message);
      }
    })();
    const publicKey = nkeys.fromSeed(seed).getPublicKey();
    return { connection, refused, publicKey };
  };
  const subjectsOf = (refused: readonly string[]) =>
    refused.map((text) => /(Subscription|Publish)[a-z ]*"([^"]+)"/.exec(text)?.[2]).toSorted();

  test("its configuration gives a second service nothing of the first one's runs", async () => {
    const { publicKey: first, ...own } = await logIn("service.nk");
    await own.connection.close();
    const { connection, refused, publicKey } = await logIn("second.nk");
    const heard: string[] = [];
    const SUBSCRIBE = [
      `_INBOX.${first}.*`,
      `_INBOX.${first}.>`,
      "_INBOX.*",
      "_INBOX.*.*",
      "_INBOX.>",
      ">",
      "sixscope.ask.*.*",
      `sixscope.ask.*.${publicKey}`,
      "sixscope.cancel.*.*",
      "sixscope.here.>",
      "sixscope.>",
    ];
    const OWN = [`_INBOX.${publicKey}.*`, "sixscope.here.*.*"];
    for (const subject of [...SUBSCRIBE, ...OWN]) {
      connection.subscribe(subject, {
        callback: (error, message) => {
          if (error === null && !message.subject.startsWith("sixscope.here.")) heard.push(subject);
        },
      });
    }
    await connection.flush();
    while (refused.length < SUBSCRIBE.length) await Bun.sleep(10);
    expect(subjectsOf(refused)).toEqual(SUBSCRIBE.toSorted());

    const headers = { "X-API-Key": service.key, Accept: "text/event-stream" };
    const path = "/ping/::1?count=5&from=ams,fra";
    const names: string[] = [];
    for await (const { event } of readEvents(await fetch(service.url + path, { headers }))) {
      // Nothing that it may publish ends a run: it does not know the token.
      for (const place of ["ams", "fra"]) {
        for (const guess of [`_INBOX.${first}.*`, "*", "", crypto.randomUUID()]) {
          connection.publish(`sixscope.cancel.${place}`, guess);
        }
      }
      names.push(event);
    }
    expect(names.filter((name) => name === "sample").length).toBe(10);
    expect(names.at(-1)).toBe("result");
    expect(heard).toEqual([]);
    await connection.close();
  });

  test("its configuration gives a second service one share, and lets it do nothing in another's name", async () => {
    const { publicKey: first, ...own } = await logIn("service.nk");
    await own.connection.close();
    const { connection, refused, publicKey } = await logIn("second.nk");
    // Another's name, names that mean several, its own with more behind it, and what only agents may say.
    const PUBLISH = [
      `sixscope.ask.ams.${first}`,
      `sixscope.cancel.ams.${first}`,
      "sixscope.ask.ams.invented",
      "sixscope.ask.ams.*",
      "sixscope.ask.ams.>",
      "sixscope.ask.ams",
      `sixscope.ask.ams.x.${publicKey}`,
      `sixscope.ask.ams.${publicKey}.x`,
      "sixscope.here.ams.00000000",
      "sixscope.here.mine.00000000",
      `_INBOX.${first}.run`,
    ];
    for (const subject of PUBLISH) connection.publish(subject, "{}");
    await connection.flush();
    while (refused.length < PUBLISH.length) await Bun.sleep(10);
    expect(subjectsOf(refused)).toEqual(PUBLISH.toSorted());

    const said: { result?: object }[] = [];
    // An inbox for each question: the server lets an agent send a thousand replies to one.
    const inboxes = `_INBOX.${publicKey}.*`;
    connection.subscribe(inboxes, { callback: (_, message) => void said.push(message.json()) });
    const ask = (at: number, change: object = {}, reply = inboxes.replace("*", `${at}`)) => {
      const question = {
        ...{ version: 4, endpoint: "mtr", token: crypto.randomUUID(), events: false },
        parameters: { target: "::1", rounds: "100", intervalMs: "1000", names: "no" },
        targets: { mode: "any", allow: [], deny: [] },
        owner: at.toString(16).padStart(16, "0"),
        ...change,
      };
      connection.publish(`sixscope.ask.ams.${publicKey}`, JSON.stringify(question), { reply });
      return question.token;
    };
    // An agent's answer to another one's inbox, which it has the right to send, would be read there.
    const short = { endpoint: "ping", parameters: { target: "::1", count: "1" } };
    ask(10_000, short, `_INBOX.${first}.guess`);
    ask(10_000, short);
    while (!said.some(({ result }) => result)) await Bun.sleep(10);
    await agents[0]?.says(`service=${publicKey}`);
    expect(agents[0]?.stderr().split(`service=${publicKey}`)).toHaveLength(2);

    // 2,000 invented clients, in flocks that the server does not take for a slow consumer.
    const tokens: string[] = [];
    for (let flock = 0; flock < 4; flock++) {
      for (let at = 0; at < 500; at++) tokens.push(ask(flock * 500 + at));
      await connection.flush();
    }
    // It has half of the agent's 64 probe slots; as many wait for more, and then are refused too.
    const ended = () => said.filter((reply) => !("alive" in reply)).length;
    while (ended() < 1 + 2_000 - 64) await Bun.sleep(10);
    const headers = { "X-API-Key": service.key };
    const honest = await fetch(`${service.url}/ping/::1?count=1&from=ams`, { headers });
    expect(honest.status).toBe(200);
    while (ended() < 1 + 2_000 - 32) await Bun.sleep(10);
    expect(ended()).toBe(1 + 2_000 - 32);
    for (const token of tokens) connection.publish(`sixscope.cancel.ams.${publicKey}`, token);
    await connection.flush();
    await connection.close();
  });

  test("its configuration forbids an agent all but answers", async () => {
    const { connection: ams, refused } = await logIn("ams.nk");
    let heard = 0;
    const SUBSCRIBE = [
      "sixscope.ask.fra.*",
      "sixscope.ask.*.*",
      "sixscope.ask.>",
      "sixscope.cancel.fra.*",
      "sixscope.>",
      "_INBOX.*",
      "_INBOX.>",
      ">",
      "sixscope.here.*.*",
    ];
    for (const subject of SUBSCRIBE)
      ams.subscribe(subject, {
        callback: (error) => {
          if (error === null) heard += 1;
        },
      });
    const PUBLISH = [
      "sixscope.ask.fra.ams",
      "sixscope.cancel.fra.ams",
      "sixscope.here.fra",
      "sixscope.here.fra.00000000",
      "_INBOX.guess",
    ];
    for (const subject of PUBLISH) ams.publish(subject, "{}");
    await ams.flush();
    while (refused.length < SUBSCRIBE.length + PUBLISH.length) await Bun.sleep(10);
    expect(subjectsOf(refused)).toEqual([...SUBSCRIBE, ...PUBLISH].toSorted());

    // Meanwhile others ask and are answered; the agent at the other key hears none of it.
    const headers = { "X-API-Key": service.key };
    const answer = await fetch(`${service.url}/ping/::1?count=1&from=fra`, { headers });
    expect(answer.status).toBe(200);
    await agents[1]?.says(`requestId=${answer.headers.get("x-request-id")}`);
    expect(heard).toBe(0);
    await ams.close();
  });

  test("without a key, the server lets nobody in", async () => {
    await expect(
      connect({ servers: [`localhost:${nats.port}`], tls: { caFile: pem.cert } }),
    ).rejects.toThrow();
  });
});
