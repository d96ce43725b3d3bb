import { formatIp, type IpAddress } from "../addr/ip.ts";
import { RECORD_TYPES } from "../dns/record.ts";
import type { RequestInfo, Tools } from "../http/endpoint.ts";
import { pageHeaders, respond, respondZipped } from "../http/respond.ts";
import { once } from "../http/schemas.ts";
import type { Network } from "../networks/network.ts";
import { describeAddress } from "../routes/validate.ts";
import { TEXTS } from "./browser/texts.ts";
import { bundlePage } from "./bundle.ts";

/** Everything comes from this service, and nothing is written into a script or a style. */
const SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Seconds: the name of a file changes with its content. */
const FILE_MAX_AGE = 31_536_000;

/** What the page knows from the start. */
export interface Caller {
  readonly ip: string;
  /** What `/validate` says about it; null for IPv4. */
  readonly validation: ReturnType<typeof describeAddress> | null;
  /** Whose network it belongs to; null if that is not known. */
  readonly network: Network | null;
  /** The types that `/dns` knows by name. */
  readonly recordTypes: readonly string[];
  /** The names of the locations that can measure now. */
  readonly locations: readonly string[];
  /** Whether pings and traces need a key. */
  readonly needsKey: boolean;
}

/** With `bun --watch` each view shows the page as it is in the source now. */
const files = process.execArgv.includes("--watch")
  ? () => bundlePage(true)
  : once(() => bundlePage());

/** Responds with a page for a caller; its address is in the HTML, for browsers without JavaScript. */
export async function pageOf(
  info: RequestInfo,
  path: "/index.html" | "/docs.html",
  address: IpAddress,
  { networks, locations }: Pick<Tools, "networks" | "locations">,
): Promise<Response> {
  const template = (await files())[path]?.text ?? "";
  const caller: Caller = {
    ip: formatIp(address),
    validation: address.version === 6 ? describeAddress(address, networks) : null,
    network: networks?.find(address) ?? null,
    recordTypes: RECORD_TYPES,
    locations: (locations?.list() ?? []).map(({ location }) => location),
    needsKey: info.caller.needsKey,
  };
  const values: Readonly<Record<string, string>> = {
    ...TEXTS.page,
    address: caller.ip,
    label: TEXTS.address.label(address.version),
    caller: JSON.stringify(caller),
  };
  const html = template.replace(/\{\{(\w+)\}\}/g, (_, name) => Bun.escapeHTML(values[name] ?? ""));
  const etag = `W/"${Bun.hash(html).toString(36)}"`;
  const headers = {
    ...pageHeaders(SECURITY_POLICY),
    // The page contains the caller's address.
    "Cache-Control": "private, no-cache",
    ETag: etag,
  };
  const isKnown = info.request.headers.get("if-none-match") === etag;
  return respond(info, isKnown ? null : html, isKnown ? 304 : 200, headers);
}

/** Responds with a file of the page, or null if there is none at the request's path. */
export async function pageFile(info: RequestInfo): Promise<Response | null> {
  const { pathname } = new URL(info.request.url);
  const file = (await files())[pathname];
  if (file === undefined) return null;
  return respondZipped(info, file.text, {
    "Content-Type": file.type,
    "Cache-Control": `public, max-age=${FILE_MAX_AGE}, immutable`,
  });
}
