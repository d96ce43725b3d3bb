/** Every error that a tool can get, in a real browser: its message is the API's own, at the field that caused it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "bun:test";
import type { BrowserContext, Page } from "playwright-core";
import { ApiError, ERROR_CATALOGUE, type ErrorCode } from "../../src/api/errors.ts";
import { interfaceDocument } from "../lab/conformance.ts";
import { programMissing, testWith, tunMissing } from "../lab/lab.ts";
import { freePort } from "../lab/port.ts";
import { type Service, sixscope, startService } from "../lab/service.ts";
import {
  CALLER,
  freshPage,
  headersOf,
  PROXY_HEADERS,
  pageUrl,
  runAt,
  type Stage,
  start,
  startStage,
  TARGETS,
  visitor,
} from "./stage.ts";

const missing =
  tunMissing ?? programMissing("chromium") ?? programMissing("knotd") ?? programMissing("setpriv");
const pageTest = testWith(missing);

const stack = new AsyncDisposableStack();
let stage: Stage;
let services: Readonly<Record<"stage" | "deaf" | "bare" | "strict", Service>>;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  if (missing !== null) return;
  stage = stack.use(await startStage({ SIXSCOPE_MAX_PROBES: "1" }));
  const silent = await Bun.udpSocket({ hostname: "::1", port: await freePort() });
  stack.defer(() => silent.close());
  const resolver = `[::1]:${silent.port}`;
  const started = [
    // Its resolvers do not answer.
    startService({
      ...{ SIXSCOPE_RESOLVER_A: resolver, SIXSCOPE_RESOLVER_B: resolver },
      ...{ SIXSCOPE_RESOLVER_C: resolver, SIXSCOPE_TRUSTED_PROXIES: "::1" },
    }),
    // It has no raw socket.
    startService({ SIXSCOPE_TRUSTED_PROXIES: "::1" }, [
      ...["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"],
    ]),
    // Its limits are used up by one request.
    startService({
      ...{ SIXSCOPE_RATE_ANONYMOUS: "3", SIXSCOPE_RATE_KEY: "3" },
      SIXSCOPE_TRUSTED_PROXIES: "::1",
    }),
  ] as const;
  const [deaf, bare, strict] = await Promise.all(started);
  for (const service of [deaf, bare, strict]) stack.use(service);
  services = { stage: stage.service, deaf, bare, strict };
  context = await visitor(stage, CALLER, complaints);
});

afterAll(() => stack.disposeAsync());

/** The output of the browser's console, and the other hosts it contacted. */
const complaints: string[] = [];

let client = 0;

/** Each test is another client, so that none uses up the limit of another. */
beforeEach(async () => {
  if (missing !== null) return;
  client++;
  complaints.length = 0;
  await context.setExtraHTTPHeaders(headersOf(`2001:db8:42:${client.toString(16)}::7`));
  page = await freshPage(context);
});

afterEach(() => expect(complaints).toEqual([]));

type Tool = "validate" | "dns" | "ping" | "trace" | "mtr" | "mtu";

/** An error code, the place where it occurs, and the field and text that show it. */
type Row = readonly [
  code: ErrorCode,
  place: `#/${Tool}/${string}`,
  field: string,
  says: string,
  service?: keyof typeof services,
];

/** The errors of ping and trace alike; mtr and mtu have the same form. */
const probes = (["ping", "trace"] as const).flatMap((tool): Row[] => [
  ["INVALID_ADDRESS", `#/${tool}/192.0.2.1`, "subject", "is an IPv4 address"],
  ["INVALID_HOSTNAME", `#/${tool}/a..example`, "subject", "it has an empty label"],
  ["TARGET_NOT_ALLOWED", `#/${tool}/ff02::1`, "subject", "is a multicast address"],
  ["TARGET_NOT_ALLOWED", `#/${tool}/${TARGETS.forbidden}`, "subject", "in the denied prefix"],
  ["HOSTNAME_NOT_FOUND", `#/${tool}/missing.example.test`, "subject", "does not exist"],
  ["NO_IPV6_ADDRESS", `#/${tool}/ipv4only.example.test`, "subject", "has no AAAA record"],
  ["NETWORK_UNREACHABLE", `#/${tool}/2001:db9::1`, "subject", "ENETUNREACH"],
  ["RESOLVER_FAILURE", `#/${tool}/www.elsewhere.test`, "form", "refused to answer"],
  ["RESOLVER_TIMEOUT", `#/${tool}/www.example.test`, "form", "did not answer in time", "deaf"],
  ["ICMP_UNAVAILABLE", `#/${tool}/::1`, "form", "has no raw socket", "bare"],
  ["RATE_LIMITED", `#/${tool}/::1`, "form", "is used up", "strict"],
  [
    "TOO_MANY_PROBES",
    `#/${tool}/${TARGETS.far}`,
    "form",
    "The server is busy: 1 of 1 measurements are running; ",
  ],
]);

const ROWS: readonly Row[] = [
  ["INVALID_ADDRESS", "#/validate/2001:db8::g", "subject", "neither a hex digit nor a colon"],
  ["RATE_LIMITED", "#/validate/2001:db8::1", "form", "is used up", "strict"],
  ["INVALID_ADDRESS", "#/dns/192.0.2.256?type=PTR", "subject", "valid IPv4 or IPv6 address"],
  ["INVALID_HOSTNAME", "#/dns/a..example", "subject", "it has an empty label"],
  ["INVALID_PARAMETER", "#/dns/www.example.test?type=AXFR", "type", "one of"],
  ["INVALID_PARAMETER", "#/dns/www.example.test?dnssec=maybe", "dnssec", "one of"],
  ["HOSTNAME_NOT_FOUND", "#/dns/missing.example.test", "subject", "does not exist"],
  ["RESOLVER_FAILURE", "#/dns/www.elsewhere.test", "form", "refused to answer"],
  ["RESOLVER_TIMEOUT", "#/dns/www.example.test", "form", "did not answer in time", "deaf"],
  ["RATE_LIMITED", "#/dns/www.example.test", "form", "is used up", "strict"],
  ["INVALID_PARAMETER", "#/ping/::1?count=99", "count", "a number from 1 to 10"],
  ["INVALID_PARAMETER", "#/trace/::1?maxHops=0", "maxHops", "a number from 1 to 64"],
  ...probes,
];

/** Before a row: what makes its error happen. */
const BEFORE: Readonly<
  Partial<Record<ErrorCode, (service: Service, key: string) => Promise<AsyncDisposable>>>
> = {
  async RATE_LIMITED(service, key) {
    await page.goto(pageUrl(service));
    await page.evaluate(async (key) => {
      for (const headers of [{}, { "X-API-Key": key }]) {
        for (let count = 0; count < 3; count++) await fetch("api/v1/myip", { headers });
      }
    }, key);
    return { async [Symbol.asyncDispose]() {} };
  },
  async TOO_MANY_PROBES({ url }, key) {
    const controller = new AbortController();
    const response = await fetch(`${url}/mtr/${TARGETS.far}?rounds=100&intervalMs=1000`, {
      headers: { "X-API-Key": key, Accept: "text/event-stream" },
      signal: controller.signal,
    });
    await response.body?.getReader().read();
    return {
      async [Symbol.asyncDispose]() {
        controller.abort();
        const ping = () => fetch(`${url}/ping/::1?count=1`, { headers: { "X-API-Key": key } });
        while ((await ping()).status === 429) await Bun.sleep(20);
      },
    };
  },
};

/** Adds a key, which the service knows then. */
async function newKey({ keysFile, stderr }: Service, name: string): Promise<string> {
  const reads = () => stderr().split("keys file read again").length;
  const before = reads();
  const { stdout } = await sixscope(["keys", "add", name], { SIXSCOPE_KEYS_FILE: keysFile });
  while (reads() === before) await Bun.sleep(20);
  return stdout.split("\n")[0] ?? "";
}

/** Expects an error at a field, or for the whole form. */
async function expectProblem(field: string, says: string): Promise<void> {
  await page.locator(`#${field}-problem`, { hasText: says }).waitFor();
  expect(await page.locator("[role=alert]").count()).toBe(1);
  expect(await page.locator("[aria-invalid]").count()).toBe(field === "form" ? 0 : 1);
  if (field === "form") return;
  const input = page.locator(`#${field}`);
  expect(await input.getAttribute("aria-invalid")).toBe("true");
  expect(await input.getAttribute("aria-describedby")).toContain(`${field}-problem`);
}

pageTest.each(ROWS.map((row) => [...row] as const))(
  "%s: %s",
  async (code, place, field, says, at = "stage") => {
    const service = services[at];
    // The window of a new key does not end before the test.
    const key = at === "strict" ? await newKey(service, `client-${client}`) : service.key;
    await using _ = await BEFORE[code]?.(service, key);
    // Not that for the name of the client's address.
    const answered = page.waitForResponse(
      (response) =>
        (response.status() >= 400 ||
          response.headers()["content-type"]?.startsWith("text/event-stream") === true) &&
        /\/api\/v1\/(?!dns\/2001)/.test(response.url()),
    );
    await runAt(page, `${pageUrl(service)}${place}`, key);
    const response = await answered;
    // The browser forgets the body of a request that another one has replaced.
    const text = await response.text().catch(async () => {
      const headers = await response.request().allHeaders();
      return await (await fetch(response.url(), { headers })).text();
    });
    // The last event, where others came before the error.
    const { error } = JSON.parse(text.slice(text.indexOf('{"error"')));
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
    // The page calls a parameter by its label.
    await expectProblem(field, code === "INVALID_PARAMETER" ? says : error.message);
  },
);

pageTest(
  "HTTPS_REQUIRED: a browser reads why instead of the page, and a tool shows it",
  async () => {
    await page.goto(stage.url);
    await page.setExtraHTTPHeaders({ ...PROXY_HEADERS, "X-Forwarded-Proto": "http" });
    await runAt(page, `${stage.url}#/dns/www.example.test`, stage.service.key);
    await expectProblem("form", "This service requires HTTPS");
    await page.reload();
    expect(await page.locator("body").textContent()).toContain("This service requires HTTPS");
  },
);

pageTest("UNAUTHORIZED: a key that is revoked while a ping runs on", async () => {
  await page.goto(`${stage.url}#/ping/www.example.test`);
  // With a hyphen from a text processor, which no header takes.
  await start(page, `${stage.service.key}\u2011`);
  await expectProblem("key", "mistyped, revoked or expired");
  await start(page, await newKey(stage.service, "guest"), "Keep pinging");
  await page.locator(".dot").first().waitFor();
  await sixscope(["keys", "revoke", "guest"], { SIXSCOPE_KEYS_FILE: stage.service.keysFile });
  await expectProblem("key", "mistyped, revoked or expired");
  // The samples measured until then are still shown.
  expect(await page.locator(".dot").count()).toBeGreaterThan(0);
});

const PATHS: Readonly<Record<Tool, string>> = {
  validate: "/validate",
  dns: "/dns/{hostname}",
  ping: "/ping/{target}",
  trace: "/traceroute/{target}",
  mtr: "/mtr/{target}",
  mtu: "/mtu/{target}",
};

/** The codes that the interface document has for a tool and no row provokes, such as INTERNAL_ERROR. */
function otherCodes(tool: Tool): ErrorCode[] {
  const { responses = {} } = interfaceDocument.paths[PATHS[tool]]?.get ?? {};
  const codes = Object.values(responses).flatMap(({ description }) =>
    [...description.matchAll(/`([A-Z][A-Z0-9_]+)`:/g)].map(([, code]) => code as ErrorCode),
  );
  const provoked = new Set(
    ROWS.flatMap(([code, place]) => (place.startsWith(`#/${tool}/`) ? [code] : [])),
  );
  return codes.filter((code) => !provoked.has(code));
}

/** Errors that are about what was asked, and no others. */
const ABOUT_SUBJECT: readonly ErrorCode[] = [
  ...(["INVALID_ADDRESS", "INVALID_HOSTNAME", "TARGET_NOT_ALLOWED"] as const),
  ...(["HOSTNAME_NOT_FOUND", "NO_IPV6_ADDRESS", "NETWORK_UNREACHABLE"] as const),
];

function exampleOf(code: ErrorCode): ApiError {
  const { details, note } = ERROR_CATALOGUE[code].example;
  return new ApiError(code, details as never, note);
}

pageTest.each(Object.keys(PATHS) as Tool[])(
  "%s shows every other error of the interface document",
  async (tool) => {
    const codes = otherCodes(tool);
    expect(codes).toContain("INTERNAL_ERROR");
    // First a proxy in front of a service that does not run.
    let answer: Pick<ApiError, "status" | "message"> & { readonly body: object | string } = {
      ...{ status: 502, body: "<html>", message: "The answer (status 502) is not one of" },
    };
    await page.route(/\/api\/v1\//, (route) => {
      const { status, body } = answer;
      return route.fulfill({
        status,
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
    });
    await runAt(page, `${stage.url}#/${tool}/2001:db8::1`, stage.service.key);
    await expectProblem("form", answer.message);
    // After the last of them the key is forgotten.
    const isLast = (code: ErrorCode) => Number(code === "UNAUTHORIZED");
    for (const [at, code] of codes.toSorted((a, b) => isLast(a) - isLast(b)).entries()) {
      answer = exampleOf(code);
      await page.fill("#subject", `2001:db8::${at + 2}`);
      await page.press("#subject", "Enter");
      if (isLast(code)) await expectProblem("key", "does not accept this key");
      else await expectProblem(ABOUT_SUBJECT.includes(code) ? "subject" : "form", answer.message);
    }
  },
);
