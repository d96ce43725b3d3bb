import { integerParameter, type Parameters } from "../api/parameters.ts";
import { PING_INTERVAL_MS, PROBE_TIMEOUT_MS } from "../config/settings.ts";
import { check } from "./check/endpoint.ts";
import { dns } from "./dns/endpoint.ts";
import { here } from "./here/endpoint.ts";
import { mtr } from "./mtr/endpoint.ts";
import { mtu } from "./mtu/endpoint.ts";
import { myIp } from "./my-ip/endpoint.ts";
import { ping } from "./ping/endpoint.ts";
import type { ToolName } from "./reports.ts";
import type { Endpoint } from "./services.ts";
import { traceroute } from "./trace/endpoint.ts";
import { validate } from "./validate/endpoint.ts";

/** A tool as people meet it: route, command, and form of the page are made from its row. */
export interface Tool {
  /** Its command, and its name in URLs of the page. */
  readonly name: ToolName;
  /** Another name of its command. */
  readonly alias?: string;
  /** Its name on the page. */
  readonly label: string;
  readonly endpoint: Endpoint;
  /** The help of its command: a line, a few sentences, and an example. */
  readonly summary: string;
  readonly help: string;
  readonly example: string;
  /** Settings of the service that a command can choose for itself, by their names in `Config`. */
  readonly settings?: Parameters;
  /** The tool that its command runs without a subject. */
  readonly without?: ToolName;
  /** True if only a service can answer. */
  readonly needsServer?: boolean;
  /** The socket that it needs: a raw one, or any that sends echo requests. */
  readonly needsSocket?: "raw" | "any";
  /** True if the page calls the tool while the user types, because a call costs next to nothing. */
  readonly isAskedAsTyped?: boolean;
  /** Parameters that every call of the page has. */
  readonly onPage?: Readonly<Record<string, string>>;
}

const wait = (flags: string) =>
  integerParameter({
    ...PROBE_TIMEOUT_MS,
    description: "Time to wait for an answer.",
    example: 2000,
    option: { flags },
    isInSeconds: true,
  });

/** Every tool, in the order in which people see them. */
export const TOOLS: readonly Tool[] = [
  {
    name: "my-ip",
    label: "My address",
    endpoint: myIp,
    needsServer: true,
    summary: "show the address that a service sees",
    help: "Shows the address that your connection to a service comes from.",
    example: "sixscope my-ip --server https://six.example.com",
  },
  {
    name: "check",
    label: "Check",
    endpoint: check,
    without: "here",
    summary: "say whether a name works over IPv6, and if not, why",
    help: "Looks up a name, connects to its addresses as a browser does, measures the path, and says in one sentence what is wrong. Without a name, it looks at this machine, as sixscope here does.",
    example: "sixscope check www.example.com",
  },
  {
    name: "dns",
    label: "DNS",
    endpoint: dns,
    summary: "look up the records of a name",
    help: "Looks up the records of a name, by default AAAA. A server is @resolver_a, _b or _c, @all to compare the three, @zone to ask each name server of the zone itself, or @ and an address or a name. Here, @resolver_a is the resolver of this machine unless SIXSCOPE_RESOLVER_A is set.",
    example: "sixscope dns example.com MX @2001:db8::53",
    onPage: { resolver: "all" },
  },
  {
    name: "ping",
    label: "Ping",
    endpoint: ping,
    needsSocket: "any",
    summary: "measure round-trip times to a target",
    help: "Sends ICMPv6 echo requests to a name or an IPv6 address, and shows each reply as it comes.",
    example: "sixscope ping -c 2 www.example.com",
    settings: {
      pingIntervalMs: integerParameter({
        ...PING_INTERVAL_MS,
        description: "Time between two requests.",
        example: 200,
        option: { flags: "-i, --interval" },
        isInSeconds: true,
      }),
      probeTimeoutMs: wait("-W, --timeout"),
    },
  },
  {
    name: "trace",
    alias: "traceroute",
    label: "Trace",
    endpoint: traceroute,
    needsSocket: "raw",
    summary: "show the routers on the path to a target",
    help: "Shows every hop to a name or an IPv6 address as it answers, with its name.",
    example: "sixscope trace www.example.com",
    settings: { probeTimeoutMs: wait("-w, --wait") },
  },
  {
    name: "mtr",
    label: "mtr",
    endpoint: mtr,
    needsSocket: "raw",
    summary: "measure loss and round-trip times of every hop",
    help: "Probes every hop to a name or an IPv6 address once a round, and shows a table that grows with each round.",
    example: "sixscope mtr -c 30 www.example.com",
  },
  {
    name: "mtu",
    label: "Path MTU",
    endpoint: mtu,
    needsSocket: "raw",
    summary: "find the path MTU, and where the path narrows",
    help: "Sends packets of growing size to a name or an IPv6 address, says which is the largest that gets through and why, and shows the largest for each hop.",
    example: "sixscope mtu www.example.com",
  },
  {
    name: "validate",
    label: "Address",
    endpoint: validate,
    isAskedAsTyped: true,
    summary: "say what an IPv6 address is",
    help: "Says whether a text is an IPv6 address, its type, both its text forms, and what else is known of it.",
    example: "sixscope validate 2001:0db8::0001",
  },
  {
    name: "here",
    label: "Locations",
    endpoint: here,
    summary: "say why IPv6 works or does not work on this machine",
    help: "Looks at this machine's interfaces, addresses, routes and firewall, asks its routers, gateway and resolvers, and says the nearest cause in one sentence.",
    example: "sixscope here eth0",
  },
];

/** The tool with a name. */
export function toolNamed(name: ToolName): Tool {
  return TOOLS.find((tool) => tool.name === name) as Tool;
}
