/** Holds what a running service answers against the interface document. */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { describeInterface } from "../../src/api/openapi.ts";
import { parseEvents } from "./events.ts";
import { interfaceFile } from "./program.ts";

/** The document as a client reads it. */
export const interfaceDocument: ReturnType<typeof describeInterface> = await Bun.file(
  await interfaceFile(),
).json();

const { paths, components, servers } = interfaceDocument;

type Documented = (typeof paths)[string]["get"]["responses"][string];

/** Headers of the connection and the body, which HTTP defines. */
const TRANSPORT_HEADERS = [
  "connection",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "transfer-encoding",
];

const EVENT_STREAM = "text/event-stream";

/** Headers of a text that is kept compressed. */
const KEPT_HEADERS = ["vary", "content-encoding", "etag"];

/** Paths outside the document, with the client's address as text. */
const PLAIN_PATHS = ["/", "/ip"];

/** Headers of a preflight response, which browsers read and do not pass on. */
const PREFLIGHT_HEADERS = [
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-max-age",
];

const operations = Object.entries(paths).map(([path, { get }]) => ({
  form: new RegExp(
    `^${servers[0]?.url}${path.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}/?$`,
  ),
  responses: get.responses,
}));

/** Responses to requests outside the operations: the errors of every request. */
const elsewhere: Readonly<Record<string, Documented | undefined>> = {
  ...paths["/openapi.json"]?.get.responses,
  200: undefined,
};

/** The tests of MCP hold the schemas against their own schema; these are compiled for few answers each. */
const FEW = { validateSchema: false, code: { optimize: false } } as const;

const ajv = addFormats(new Ajv2020({ allErrors: true, allowUnionTypes: true, ...FEW }));
ajv.addVocabulary(["components"]);
const validators = new Map<object, ValidateFunction>();

/** The errors of a value by a schema of the document. */
export function mismatches(schema: object, value: unknown): string[] {
  const refers = JSON.stringify(schema).includes('"$ref"');
  const validate =
    validators.get(schema) ?? ajv.compile(refers ? { ...schema, components } : schema);
  validators.set(schema, validate);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

/**
 * Holds an answer against the document: status, headers and body, and nothing beside them. The
 * answer can still be read.
 *
 * @throws Error that names every difference
 */
export async function requireDocumented(
  method: string,
  { pathname }: URL,
  response: Response,
): Promise<void> {
  const isStream = response.headers.get("content-type") === EVENT_STREAM;
  const read = response.clone().text();
  // A client may leave a stream, and a service may end in the middle of one.
  const text = isStream ? await read.catch(() => "") : await read;
  const isPreflight = method === "OPTIONS" && response.status === 204;
  const problems = isPreflight
    ? [...headerProblems(response, elsewhere[404] as Documented, PREFLIGHT_HEADERS)]
    : [...answerProblems(method, pathname, response, text)];
  if ((isPreflight || method === "HEAD") && text !== "") problems.push("there is a body");
  if (problems.length === 0) return;
  const answer = `${method} ${pathname}: ${response.status} ${text}`;
  throw new Error([`${answer}\nis not as the document says:`, ...problems].join("\n- "));
}

function* answerProblems(method: string, pathname: string, response: Response, text: string) {
  const isRead = method === "GET" || method === "HEAD";
  const operation = operations.find(({ form }) => isRead && form.test(pathname));
  // The page is not part of the API; its own tests look at it.
  if (pathname.startsWith("/assets/") || response.headers.has("content-security-policy")) return;
  const isPlain = isRead && PLAIN_PATHS.includes(pathname) && response.status === 200;
  if (isPlain) {
    yield* headerProblems(response, elsewhere[404] as Documented, ["vary"]);
    if (response.headers.get("content-type") !== "text/plain") yield "it is not plain text";
    return;
  }
  const isKept = /\/(openapi\.json|locations)\/?$/.test(pathname);
  const status = isKept && response.status === 304 && text === "" ? 200 : response.status;
  const documented = (operation?.responses ?? elsewhere)[status];
  if (documented === undefined) {
    yield `the status ${response.status} is not documented`;
    return;
  }
  // HTTP defines how a text is compressed, and asked for again.
  yield* headerProblems(response, documented, isKept ? KEPT_HEADERS : []);
  const contentType = response.headers.get("content-type");
  const { [contentType as "application/json"]: content } = documented.content;
  if (content === undefined) yield `the content type is ${contentType}`;
  else if (contentType === EVENT_STREAM) {
    if (text !== "") yield* mismatches(content.schema, parseEvents(text));
  } else if (method !== "HEAD" && response.status !== 304) {
    yield* mismatches(content.schema, JSON.parse(text));
  }
}

const HEADERS: Readonly<
  Record<string, { readonly required: boolean; readonly schema: { readonly type?: string } }>
> = components.headers;

function* headerProblems(
  { headers }: Response,
  documented: Documented,
  alsoKnown: readonly string[] = [],
) {
  const known = new Set([...TRANSPORT_HEADERS, ...alsoKnown]);
  for (const name of Object.keys(documented.headers)) {
    known.add(name.toLowerCase());
    const { required, schema } = HEADERS[name] ?? {};
    const text = headers.get(name);
    if (text === null) {
      if (required) yield `the header ${name} is missing`;
      continue;
    }
    const value = schema?.type === "integer" ? Number(text) : text;
    for (const problem of mismatches(schema ?? {}, value)) yield `the header ${name}${problem}`;
  }
  for (const name of headers.keys()) {
    if (!known.has(name)) yield `the header ${name} is not documented`;
  }
}

/** The paths for supervisors, which are not part of the API. */
const HEALTH = ["/healthz", "/readyz"];

const plainFetch = globalThis.fetch;
const origins = new Set<string>();

/**
 * Makes `fetch` throw, from now on, where an answer of this service is not as the document says.
 *
 * @param urls of its listeners
 * @returns what ends that
 */
export function watchAnswers(urls: readonly string[]): () => void {
  const watched = urls.map((url) => new URL(url).origin);
  for (const origin of watched) origins.add(origin);
  globalThis.fetch = checkedFetch;
  return () => {
    for (const origin of watched) origins.delete(origin);
    if (origins.size === 0) globalThis.fetch = plainFetch;
  };
}

const checkedFetch = Object.assign(
  async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await plainFetch(input, init);
    const { url, method } = input instanceof Request ? input : { url: input, method: "GET" };
    const { origin, pathname } = new URL(url);
    if (origins.has(origin) && !HEALTH.includes(pathname)) {
      const checked = requireDocumented(init?.method ?? method, new URL(url), response);
      // A stream is checked when it ends; nobody catches what is wrong then, so the test fails.
      if (response.headers.get("content-type") !== EVENT_STREAM) await checked;
    }
    return response;
  },
  { preconnect: plainFetch.preconnect },
);
