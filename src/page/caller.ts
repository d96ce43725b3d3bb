import { formatIp, type IpAddress } from "../addr/ip.ts";
import { FROM } from "../api/endpoint.ts";
import type { Parameter } from "../api/parameters.ts";
import { ALL_LOCATIONS } from "../config/settings.ts";
import type { Services } from "../tools/services.ts";
import { TOOLS, type Tool } from "../tools/table.ts";
import { VERSION } from "../util/version.ts";
import type { WatchServices } from "../watch/endpoint.ts";

/** The data that the page is served with, about the caller and the tools. */
export type Caller = ReturnType<typeof callerOf>;

/** The parts of the service that the page uses. */
export type PageServices = Pick<WatchServices, "networks" | "locations" | "watching"> & {
  readonly config: Pick<Services["config"], "familyUrls">;
};

/** A tool as the page has it. */
export type PageTool = ReturnType<typeof pageTool>;

/** A parameter as a field of a form. */
export type PageParameter = ReturnType<typeof pageParameter>[number];

/** The data that the page is served with for a caller. */
export function callerOf(
  address: IpAddress,
  needsKey: boolean,
  { networks, locations, watching, config }: PageServices,
) {
  return {
    ip: formatIp(address),
    family: address.version,
    /** The first 64 bits of an IPv6 address, which come from the provider, as text. */
    prefix: prefixOf(address),
    /** The version of the service. */
    version: VERSION,
    /** The network of the address; null if it is not known. */
    network: networks?.find(address) ?? null,
    /** True if this caller needs a key for the tools that require one. */
    needsKey,
    /** The service by one address family each, if it has such names. */
    familyUrls: config.familyUrls,
    /** How many targets the service watches. */
    watches: watching?.count ?? 0,
    tools: PAGE_TOOLS,
    /** The parameter that names locations, its value for all of them, and the names and tags of those that can measure now. */
    from: { name: FROM, all: ALL_LOCATIONS, ...choicesOf(locations) },
  };
}

/** The text of the first four groups of an IPv6 address; empty if `::` stands for one of them. */
function prefixOf(address: IpAddress): string {
  return /^(?:[0-9a-f]+:){4}/.exec(formatIp(address))?.[0] ?? "";
}

/** Names that the page offers at most, and tags. */
const MAX_CHOICES = 100;

function choicesOf(locations: Services["locations"]) {
  const { [ALL_LOCATIONS]: names = [], ...tagged } = Object.fromEntries(locations?.byWord() ?? []);
  const tags = Object.keys(tagged).sort();
  return { names: names.slice(0, MAX_CHOICES), tags: tags.slice(0, MAX_CHOICES) };
}

function pageTool(tool: Tool) {
  const { name, label, endpoint, onPage = {}, isAskedAsTyped = false } = tool;
  const { path, needsKey, events, runsElsewhere = false, parameters } = endpoint;
  // The first parameter is the subject, such as the target.
  const [subject = null, ...options] = Object.entries(parameters).flatMap(pageParameter);
  return {
    ...{ name, label, path, needsKey, subject, options, onPage, isAskedAsTyped },
    hasEvents: events !== undefined,
    /** True if other locations can run it. */
    hasFrom: runsElsewhere,
  };
}

/** A parameter as a field; none if forms do not have it. */
function pageParameter([name, parameter]: [string, Parameter]) {
  const { in: place, label, hint, example, default: value = "", bounds, goesWith } = parameter;
  if (label === undefined) return [];
  return [
    {
      // The default is empty if a request without it has no value for it.
      ...{ name, in: place, label, example: String(example), default: String(value) },
      ...(hint !== undefined && { hint }),
      ...(goesWith !== undefined && { goesWith }),
      /** The allowed values; absent for a number, and for the subject. */
      ...(bounds && "allowed" in bounds && { choices: bounds.allowed }),
    },
  ];
}

const PAGE_TOOLS = TOOLS.map(pageTool);
