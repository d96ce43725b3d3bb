/** The proxies of docs/operations.md in front of the service: a client can choose neither its address nor its request id, and events come at once. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "../lab/certificate.ts";
import { labMissing, programMissing, testWith } from "../lab/lab.ts";
import { freePort } from "../lab/port.ts";
import { findProgram, run, runIp } from "../lab/run.ts";
import { startService } from "../lab/service.ts";

const PAGE = readFileSync(join(import.meta.dir, "../../docs/operations.md"), "utf8");
const SECTION = PAGE.slice(PAGE.indexOf("\n### Behind Caddy or nginx\n"));
const CLIENT = "2001:db8:443::7";

const missing = labMissing ?? programMissing("curl") ?? programMissing("openssl");
const nginxTest = testWith(missing, programMissing("nginx"));
const caddyTest = testWith(missing, programMissing("caddy"));

let folder: string;

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-proxies-"));
  await runIp([`address add ${CLIENT}/128 dev lo nodad`]);
  const [certFile, keyFile] = [join(folder, "fullchain.pem"), join(folder, "privkey.pem")];
  await makeCertificate({ commonName: "six.example.com", days: 2, certFile, keyFile });
});

afterAll(async () => {
  if (missing !== null) return;
  await runIp([`address del ${CLIENT}/128 dev lo`]);
  rmSync(folder, { recursive: true });
});

/** The part of the section that the pattern captures. */
function told(from: RegExp): string {
  const text = from.exec(SECTION)?.[1];
  if (text === undefined) throw new Error(`docs/operations.md lacks ${from}`);
  return text;
}

const TRUSTED = told(/\nSIXSCOPE_TRUSTED_PROXIES=(\S+)\n/);
const CADDY = told(/```\n(six\.example\.com \{[^`]+)```/);
const NGINX = told(/```nginx\n([^`]+)```/);

/** The command that asks the proxy. */
function curl(path: string, headers: readonly string[], options: readonly string[]): string[] {
  return [
    ...["curl", "--silent", "--insecure", "--http1.1", "--interface", CLIENT, ...options],
    ...["--resolve", `six.example.com:443:[${CLIENT}]`],
    ...headers.flatMap((header) => ["--header", header]),
    `https://six.example.com/api/v1${path}`,
  ];
}

/** The part of a stream that a client has received when the first event arrives. */
async function beginningOfStream(path: string, key: string): Promise<string> {
  const headers = ["Accept: text/event-stream", `X-API-Key: ${key}`];
  const child = Bun.spawn(curl(path, headers, ["--no-buffer"]), {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n\n")) break;
  }
  child.kill("SIGKILL");
  await child.exited;
  return text;
}

/** The answer to a client that forges its address and request id; asks until the proxy is up or has ended. */
async function askAsStranger(
  proxy: Bun.Subprocess<"ignore", "ignore", "pipe">,
): Promise<{ id: string; body: unknown }> {
  const forged = [
    "X-Request-Id: chosen",
    "X-Forwarded-For: 203.0.113.7",
    "X-Forwarded-Proto: http",
  ];
  const command = curl("/myip", forged, ["--include"]);
  while (proxy.exitCode === null) {
    const answer = await run(command).catch(() => "");
    if (!answer.startsWith("HTTP/1.1 200")) {
      await Bun.sleep(50);
      continue;
    }
    const [headers = "", body = ""] = answer.split("\r\n\r\n");
    return { id: /^x-request-id: (.*)$/im.exec(headers)?.[1] ?? "", body: JSON.parse(body) };
  }
  throw new Error(`the proxy has ended: ${await new Response(proxy.stderr).text()}`);
}

/** Starts a service and a proxy in front of it, and asks. */
async function prove(
  settings: Readonly<Record<string, string>>,
  proxy: (service: string) => readonly string[],
  idForm: RegExp,
): Promise<void> {
  // The second event comes so late that the test would notice if the first one waited for it.
  await using service = await startService({ ...settings, SIXSCOPE_PING_INTERVAL_MS: "10000" });
  const child = spawnProxy(proxy(new URL(service.url).host));
  try {
    const { id, body } = await askAsStranger(child);
    expect(body).toEqual({ ip: CLIENT, version: 6, isIPv6: true });
    expect(id).toMatch(idForm);
    await service.says(`id=${id} client=${CLIENT} `);
    expect(await beginningOfStream("/ping/::1?count=2", service.key)).toMatch(
      /^event: sample\ndata: \{"seq":1,[^\n]*\n\n$/,
    );
    // The proxy tells the service that the client has gone, which ends the ping.
    await service.says("route=/api/v1/ping/:target status=499 ");
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
}

/** Restarts a service twice while clients ask through the proxy in front of it; every request must be answered. */
async function proveRestarts(proxy: (service: string) => readonly string[]): Promise<void> {
  const address = `[::1]:${await freePort()}`;
  const settings = {
    SIXSCOPE_LISTEN: address,
    SIXSCOPE_TRUSTED_PROXIES: TRUSTED,
    SIXSCOPE_RATE_ANONYMOUS: "100000",
  };
  let service = await startService(settings);
  const child = spawnProxy(proxy(address));
  try {
    await askAsStranger(child);
    const statuses: string[] = [];
    let isOver = false;
    const ask = async () => {
      const command = curl("/myip", [], ["--output", "/dev/null", "--write-out", "%{http_code}"]);
      while (!isOver) statuses.push(await run(command));
    };
    const clients = [ask(), ask(), ask(), ask()];
    for (let restarts = 0; restarts < 2; restarts++) {
      service.signal("SIGTERM");
      await service.exited;
      service = await startService(settings);
      const before = statuses.length;
      while (statuses.length < before + 8) await Bun.sleep(20);
    }
    isOver = true;
    await Promise.all(clients);
    expect(new Set(statuses)).toEqual(new Set(["200"]));
  } finally {
    child.kill("SIGKILL");
    await child.exited;
    await service[Symbol.asyncDispose]();
  }
}

function spawnProxy(command: readonly string[]): Bun.Subprocess<"ignore", "ignore", "pipe"> {
  return Bun.spawn([...command], {
    env: { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: ["ignore", "ignore", "pipe"],
  });
}

/** The command that runs nginx with a server block. */
function nginx(server: string): string[] {
  const file = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(" ");
  writeFileSync(
    file,
    // In a user namespace, nginx cannot switch to another user.
    `user root root; daemon off; master_process off; pid ${folder}/nginx.pid; error_log stderr;
events {}
http { access_log off; ${temporary}
${server.replaceAll("/etc/letsencrypt/live/six.example.com", folder)}
}
`,
  );
  return [findProgram("nginx") ?? "", "-c", file];
}

test("the page for friends has the same site", () => {
  expect(readFileSync(join(import.meta.dir, "../../docs/friends.md"), "utf8")).toContain(CADDY);
});

nginxTest("nginx", async () => {
  const settings = { SIXSCOPE_LISTEN: "[::1]:0", SIXSCOPE_TRUSTED_PROXIES: TRUSTED };
  await prove(settings, (service) => nginx(NGINX.replace("[::1]:8080", service)), /^[0-9a-f]{32}$/);
});

nginxTest("a restart behind nginx fails no request", () => {
  // A service takes longer to start on a busy machine.
  const patient = NGINX.replace("auth_delay 1s", "auth_delay 5s");
  return proveRestarts((service) => nginx(patient.replace("[::1]:8080", service)));
});

nginxTest("nginx answers 503 while the service is down", async () => {
  const child = spawnProxy(nginx(NGINX.replace("[::1]:8080", `[::1]:${await freePort()}`)));
  try {
    const command = curl("/myip", [], ["--output", "/dev/null", "--write-out", "%{http_code}"]);
    let status = "";
    while (child.exitCode === null && !/^[1-9]/.test(status)) {
      status = await run(command).catch(() => "");
    }
    expect(status).toBe("503");
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

nginxTest("nginx over a unix socket, which is trusted by default", async () => {
  const socket = join(folder, "socket");
  const directive = told(/`(server unix:[^`]+)`/);
  const server = NGINX.replace(/server \[[^;]+;/, directive).replace(
    "/run/sixscope/socket",
    socket,
  );
  await prove({ SIXSCOPE_LISTEN: `unix:${socket}` }, () => nginx(server), /^[0-9a-f]{32}$/);
});

/** The command that runs Caddy with the site. */
function caddy(service: string): string[] {
  const file = join(folder, "Caddyfile");
  // Caddy makes a certificate itself instead of asking for one on the Internet.
  const options = "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n}\n";
  writeFileSync(file, options + CADDY.replace("[::1]:8080", service));
  return [findProgram("caddy") ?? "", "run", "--adapter", "caddyfile", "--config", file];
}

caddyTest("Caddy", async () => {
  const settings = { SIXSCOPE_LISTEN: "[::1]:0", SIXSCOPE_TRUSTED_PROXIES: TRUSTED };
  await prove(settings, caddy, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

caddyTest("a restart behind Caddy fails no request", () => proveRestarts(caddy));
