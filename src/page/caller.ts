import { formatIp, type IpAddress } from "../addr/ip.ts";
import { FROM, type Services } from "../api/endpoint.ts";
import type { Parameter } from "../api/parameters.ts";
import { ALL_LOCATIONS } from "../config/settings.ts";
import type { Network } from "../networks/network.ts";
import { TOOLS, type Tool } from "../tools/table.ts";
import { describeAddress } from "../tools/validate/endpoint.ts";
import { VERSION } from "../util/version.ts";

/** The data about the caller and the tools that the page is served with. */
export interface Caller {
  readonly ip: string;
  /** The version of the service. */
  readonly version: string;
  /** The result of `/validate` for the address; null for IPv4. */
  readonly validation: ReturnType<typeof describeAddress> | null;
  /** Whose network it belongs to; null if that is not known. */
  readonly network: Network | null;
  /** True if this caller needs a key for the tools that require one. */
  readonly needsKey: boolean;
  readonly tools: readonly PageTool[];
  /** The parameter that names locations, its value for all of them, and those that can measure now. */
  readonly from: { readonly name: string; readonly all: string; readonly names: readonly string[] };
}

/** A tool as the page has it. */
export interface PageTool
  extends Pick<Tool, "name" | "labels">,
    Required<Pick<Tool, "onPage" | "isAskedAsTyped">> {
  /** Of its endpoint, with the parameters of the path in braces. */
  readonly path: string;
  readonly needsKey: boolean;
  readonly hasEvents: boolean;
  /** True if other locations can run it. */
  readonly hasFrom: boolean;
  /** Its main parameter, such as the target; null if it has none. */
  readonly subject: PageParameter | null;
  readonly options: readonly PageParameter[];
}

/** A parameter as a field of a form. */
export interface PageParameter extends Pick<Parameter, "in" | "hint"> {
  readonly name: string;
  readonly label: string;
  readonly example: string;
  /** Empty if a request without it has no value for it. */
  readonly default: string;
  /** The allowed values; absent for a number, and for the subject. */
  readonly choices?: readonly string[];
}

/** The data that the page is served with for a caller. */
export function callerOf(
  address: IpAddress,
  needsKey: boolean,
  { networks, locations }: Pick<Services, "networks" | "locations">,
): Caller {
  return {
    ip: formatIp(address),
    version: VERSION,
    validation: address.version === 6 ? describeAddress(address, networks) : null,
    network: networks?.find(address) ?? null,
    needsKey,
    tools: PAGE_TOOLS,
    from: {
      name: FROM,
      all: ALL_LOCATIONS,
      names: (locations?.list() ?? []).map(({ location }) => location),
    },
  };
}

function pageTool(tool: Tool): PageTool {
  const { name, labels, endpoint, onPage = {}, isAskedAsTyped = false } = tool;
  const { path, needsKey, events, runsElsewhere = false, parameters } = endpoint;
  const [subject = null, ...options] = Object.entries(parameters).flatMap(pageParameter);
  return {
    ...{ name, labels, path, needsKey, subject, options, onPage, isAskedAsTyped },
    hasEvents: events !== undefined,
    hasFrom: runsElsewhere,
  };
}

/** A parameter, if forms have it. */
function pageParameter([name, parameter]: [string, Parameter]): PageParameter[] {
  const { in: place, label, hint, example, default: value = "", bounds } = parameter;
  if (label === undefined) return [];
  return [
    {
      ...{ name, in: place, label, example: String(example), default: String(value) },
      ...(hint !== undefined && { hint }),
      ...(bounds && "allowed" in bounds && { choices: bounds.allowed }),
    },
  ];
}

const PAGE_TOOLS = TOOLS.map(pageTool);
