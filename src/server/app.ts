import { RegExpRouter } from "hono/router/reg-exp-router";
import { getPath, getQueryParams, tryDecode } from "hono/utils/url";
import { formatIp, type IpAddress, networkOf } from "../addr/ip.ts";
import { BASE_PATH, type Call, FROM } from "../api/endpoint.ts";
import { ApiError, type ErrorCode } from "../api/errors.ts";
import { EVENT_STREAM_HEADERS } from "../api/headers.ts";
import { priceOf, readParameters, type SentParameters } from "../api/parameters.ts";
import { CLIENT_GONE, createAccessLog, loggedStatus } from "../http/access-log.ts";
import { isFromOtherSite } from "../http/client-address.ts";
import { prefersEvents, streamEvents } from "../http/event-stream.ts";
import {
  type Bindings,
  createMiddleware,
  type MiddlewareDependencies,
  sentKey,
  whenDone,
} from "../http/middleware.ts";
import { PAGE_ROUTES, type RequestInfo } from "../http/request.ts";
import { respond, respondError, respondZipped } from "../http/respond.ts";
import type { KeyRecord } from "../keys/key-file.ts";
import type { Keyring } from "../keys/keyring.ts";
import { addressOf } from "../tools/my-ip/endpoint.ts";
import type { Endpoint, Services } from "../tools/services.ts";
import { ENDPOINTS } from "./endpoints.ts";

const INVALID_KEY = "The API key is unknown, revoked or expired; ask the operator for a new one";

/** A request that is answered. */
export interface Answered {
  /** One pattern for all ways to write a path; null if the path does not exist. */
  readonly route: string | null;
  /** As in the access log. */
  readonly status: number;
  /** The code of an error; undefined if the client disconnected first. */
  readonly code: ErrorCode | undefined;
  /** Milliseconds from the request to the response. */
  readonly ms: number;
}

/** The pages for browsers. */
export interface Pages {
  /** Responds with the page of the tools or of the API for a client at an address. */
  page(
    info: RequestInfo,
    name: "index" | "docs",
    address: IpAddress,
    services: Services,
  ): Promise<Response>;
  /** Responds with a file of the pages, or null if there is none at the request's path. */
  file(info: RequestInfo): Promise<Response | null>;
}

/** The parts of the service that the app uses. */
export interface AppDependencies extends Services, MiddlewareDependencies {
  readonly keyring: Pick<Keyring, "find" | "hold">;
  readonly pages: Pages;
  readonly onAnswered?: ((answered: Answered) => void) | undefined;
}

/** The whole HTTP API: a request and its connection in, a response out. */
export interface App {
  /** The patterns of all paths, for `Bindings.route`. */
  readonly routes: readonly string[];
  fetch(request: Request, bindings: Bindings): Response | Promise<Response>;
  /** The text of `/readyz` while the service is ready. */
  readiness?(): string;
}

/** Why a request is not authorised, where it is not that it has no key. */
const FOREIGN_PAGE =
  "This network needs no API key here, but a page of another site does; send one in the header X-API-Key";

type Handler = (info: RequestInfo, sent: SentParameters) => Response | Promise<Response>;

/** Answers requests to a path; made at the start. */
interface Plan {
  readonly handler: Handler;
  /** The pattern that represents all spellings of the path. */
  readonly main: string;
  /** Its endpoint, if a request can count as more than one. */
  readonly priced: Endpoint | undefined;
}

/** The plan of a path, where its parameters are, and the segments of the path. */
type Match = [[Plan, places: Record<string, number>][], string[]?];

type Explain = (error: Error, info: RequestInfo) => ApiError;

/** Builds the app: the middleware, then the endpoint, then the access log. */
export function createApp(dependencies: AppDependencies): App {
  const { log, config, onAnswered, pages } = dependencies;
  const accessLog = createAccessLog(log, config.logClients);
  const plans = new Map<string | null, Plan>();
  const router = new RegExpRouter<Plan>();
  const locations = () => dependencies.locations?.known.byWord() ?? new Map();
  const admit = createMiddleware(dependencies, ({ url }, route) => {
    const priced = plans.get(route)?.priced;
    return priced && url.includes("?")
      ? priceOf(priced, queriesOf(url), locations)
      : (priced?.price ?? 1);
  });
  const add = (patterns: readonly [string, ...string[]], handler: Handler, priced?: Endpoint) => {
    const plan = { handler, main: patterns[0], priced };
    for (const pattern of patterns) {
      plans.set(pattern, plan);
      router.add("ALL", pattern, plan);
    }
  };
  /** Calls the handler of a request, whose path must lead there as it was sent and as its URL has it. */
  const dispatch = (info: RequestInfo) => {
    const { request, route } = info;
    const { method, url } = request;
    const path = getPath(request);
    const [[match], segments = []] = router.match("ALL", path) as Match;
    if (match === undefined || match[0] !== plans.get(route)) {
      info.route = null;
      throw new ApiError("NOT_FOUND", { method, path });
    }
    if (method !== "GET" && method !== "HEAD") {
      throw new ApiError("NOT_FOUND", { method, path }, `${path} has no method ${method}`);
    }
    const [{ handler }, places] = match;
    const param = (name: string) => {
      const segment = segments[places[name] ?? -1];
      return segment && tryDecode(segment, decodeURIComponent);
    };
    return handler(info, { param, queries: () => queriesOf(url) });
  };
  // The only place that turns a thrown error into one of the API.
  const explain: Explain = (error, info) => {
    const known =
      error instanceof ApiError ? error : new ApiError("INTERNAL_ERROR", { requestId: info.id });
    info.code = known.code;
    if (known.status === 500 && !info.request.signal.aborted) {
      accessLog.fault(info, known.code, error);
    }
    return known;
  };
  const answer = (info: RequestInfo) => {
    const fail = (error: Error) => respondError(info, explain(error, info));
    try {
      const response = dispatch(info);
      return response instanceof Promise ? response.catch(fail) : response;
    } catch (error) {
      return fail(error as Error);
    }
  };
  for (const endpoint of ENDPOINTS) {
    const isPriced = Object.values(endpoint.parameters).some(({ price }) => price);
    const handler = handlerOf(endpoint, dependencies, explain);
    add(patternsOf(endpoint), handler, isPriced || endpoint.price ? endpoint : undefined);
  }
  const page = (info: RequestInfo, name: "index" | "docs") =>
    pages.page(info, name, addressOf(callOf(info)), dependencies);
  // Where a shell gets the caller's address as plain text, and a browser the page.
  add([PAGE_ROUTES.page, "/ip"], (info) => {
    if (info.isPage) return page(info, "index");
    const vary = info.route === PAGE_ROUTES.page && { Vary: "Accept" };
    const text = `${formatIp(addressOf(callOf(info)))}\n`;
    return respond(info, text, 200, { "Content-Type": "text/plain", ...vary });
  });
  add([PAGE_ROUTES.docs], (info) => page(info, "docs"));
  add([PAGE_ROUTES.file], async (info) => {
    const response = await pages.file(info);
    if (response !== null) return response;
    const { method } = info.request;
    throw new ApiError("NOT_FOUND", { method, path: getPath(info.request) });
  });

  return {
    routes: [...plans.keys()] as string[],
    readiness: () => readinessOf(dependencies),
    fetch(request, bindings) {
      const startMs = performance.now();
      return whenDone(admit(request, bindings), ({ info, response }) =>
        whenDone(response ?? answer(info), (response) => {
          const answered = (sent: number) => {
            const ms = performance.now() - startMs;
            const status = loggedStatus(request, sent);
            const code = status === CLIENT_GONE ? undefined : info.code;
            accessLog.answered(info, status, ms);
            onAnswered?.({ route: plans.get(info.route)?.main ?? null, status, code, ms });
          };
          void whenDone(info.ended ?? response.status, answered);
          return response;
        }),
      );
    },
  };
}

/** The text of `/readyz` while the service is ready, with what it cannot do. */
export function readinessOf({ shared, icmp }: Pick<AppDependencies, "shared" | "icmp">): string {
  const probes =
    "unavailable" in icmp ? `, without probes: no raw socket (${icmp.unavailable})` : "";
  return `${shared?.readiness() ?? "ready"}${probes}`;
}

/** All values in a query by name; read in one way, so that nothing is priced as one value and used as another. */
function queriesOf(url: string): Record<string, string[]> {
  return getQueryParams(url) as Record<string, string[]>;
}

/** The patterns of an endpoint's path: with and without a slash at the end, and without its last segment if that may be empty. */
function patternsOf({ path, parameters }: Endpoint): [string, ...string[]] {
  const pattern = BASE_PATH + path.replace(/\{(\w+)\}/g, ":$1");
  const last = parameters[path.split(/[{}]/).at(-2) ?? ""];
  const empty = last?.whenEmpty === undefined ? [] : [pattern.replace(/[^/]+$/, "")];
  return [pattern, `${pattern}/`, ...empty];
}

function handlerOf(
  { parameters, needsKey, handle, events }: Endpoint,
  services: AppDependencies,
  explain: Explain,
): Handler {
  const { keyring, shared, config } = services;
  const subject = Object.keys(parameters).find((name) => parameters[name]?.in === "path");
  return (info, sent) => {
    const { request, caller, key } = info;
    const isKeyed = needsKey && caller.needsKey;
    if (isKeyed && shared?.keys.areOutdated()) throw new ApiError("KEYS_UNAVAILABLE", {});
    if (needsKey && key === null && (isKeyed || isFromOtherSite(request, caller))) {
      const why = isKeyed ? undefined : FOREIGN_PAGE;
      throw new ApiError("UNAUTHORIZED", {}, sentKey(request.headers) === null ? why : INVALID_KEY);
    }
    const values = readParameters(parameters, sent);
    const call = callOf(info);
    if (config.logTargets && subject !== undefined) {
      info.subject = {
        target: values[subject] as string,
        from: values[FROM] as string | undefined,
      };
    }
    const perform = (call: Call) => {
      const run = (call: Call) => handle(values, call, services);
      return isKeyed && key !== null ? whileValid(key, keyring, call, run) : run(call);
    };
    const wantsEvents = events !== undefined && prefersEvents(request.headers.get("accept"));
    if (wantsEvents && request.method === "GET") {
      const run: Parameters<typeof streamEvents>[1] = async (onEvent, signal) =>
        JSON.stringify(await perform({ ...call, signal, onEvent }));
      return streamEvents(info, run, explain);
    }
    return whenDone(perform(call), (body) => {
      if (typeof body === "string") return respondZipped(info, body);
      return wantsEvents
        ? respond(info, null, 200, { ...EVENT_STREAM_HEADERS, "Transfer-Encoding": "chunked" })
        : respond(info, JSON.stringify(body));
    });
  };
}

/**
 * Runs a handler as long as the key of its request is valid.
 *
 * @throws ApiError UNAUTHORIZED if the key is revoked, expires or is removed meanwhile
 */
async function whileValid<T>(
  key: KeyRecord,
  keyring: Pick<Keyring, "hold">,
  call: Call,
  run: (call: Call) => T,
): Promise<Awaited<T>> {
  const invalid = new AbortController();
  const release = keyring.hold(key, () => invalid.abort());
  try {
    return await run({ ...call, signal: AbortSignal.any([call.signal, invalid.signal]) });
  } catch (error) {
    throw invalid.signal.aborted ? new ApiError("UNAUTHORIZED", {}, INVALID_KEY) : error;
  } finally {
    release();
  }
}

function callOf(info: RequestInfo): Call {
  const { request, id, caller, key, allowSeconds } = info;
  return {
    id,
    onAddress: (ip) => {
      if (info.subject) info.subject["ip"] = ip;
    },
    // Bun makes the signal when it is first read, which costs time.
    get signal() {
      return request.signal;
    },
    address: caller.address,
    get client() {
      if (key !== null || caller.address === null) return key?.sha256 ?? "";
      return caller.needsKey ? networkOf(caller.address) : formatIp(caller.address);
    },
    allowSeconds,
  };
}
