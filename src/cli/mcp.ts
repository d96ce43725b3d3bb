import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import * as sdk from "@modelcontextprotocol/sdk/types.js";
import type { Command } from "commander";
import { ApiError } from "../api/errors.ts";
import { describeAnswer, describeParameter } from "../api/openapi.ts";
import { readTexts } from "../api/parameters.ts";
import { FairSlots } from "../gate/fair-slots.ts";
import { openIcmpIfAllowed } from "../icmp/icmp.ts";
import { openApi, servedEndpoint } from "../server/endpoints.ts";
import { reportText } from "../tools/report-text.ts";
import { reporterOf, type ToolName, waitText } from "../tools/reports.ts";
import type { Endpoint } from "../tools/services.ts";
import { TOOLS, type Tool } from "../tools/table.ts";
import { takeSlot } from "../tools/turn.ts";
import { reasonOf } from "../util/errors.ts";
import { printable } from "../util/text.ts";
import { VERSION } from "../util/version.ts";
import { type CallEndpoint, configHere } from "./call-here.ts";
import { type Answer, reportOf } from "./tool.ts";
import { callerFor, type ServerOptions } from "./tool-commands.ts";

/** Calls that run at once: each has its own sockets, and an assistant makes a few calls. */
const MAX_CALLS = 16;

const NEEDS_SERVER = "only a service sees your address; run sixscope mcp with --server URL";

const MALFORMED = "leaves out a line of standard input that is not a message of the protocol";

/**
 * The protocol without the SDK's own `Server`, whose validator of JSON Schemas makes the executable 0.7 MB
 * larger. The assertions are empty, because they concern messages that this server never sends.
 */
class ToolServer extends Protocol<sdk.ServerRequest, sdk.ServerNotification, sdk.ServerResult> {
  protected override assertCapabilityForMethod(): void {}
  protected override assertNotificationCapability(): void {}
  protected override assertRequestHandlerCapability(): void {}
  protected override assertTaskCapability(): void {}
  protected override assertTaskHandlerCapability(): void {}
}

/**
 * Answers a program over the Model Context Protocol on standard input and output, until the input ends, which
 * ends all runs.
 *
 * @param command ends if the service that `options` choose must not get the key
 * @throws ConfigError if this process cannot do the work with these settings
 */
export async function runMcp(options: ServerOptions, command: Command, given: NodeJS.ProcessEnv) {
  const { server } = options;
  // A model has the rights of a service's caller, not those of a user at the keyboard.
  const environment = { SIXSCOPE_PROBE_PORTS: "", SIXSCOPE_TARGETS_ALLOW: "", ...given };
  if (!server) configHere(environment);
  const callEndpoint = callerFor(options, command, environment);
  const endpointOf = server ? servedEndpoint : ({ endpoint }: Tool) => endpoint;
  const offered = () => (server ? offeredBy(callEndpoint) : offeredHere());
  const where = server ? `The service at ${server.origin}` : "This machine";
  const instructions = `${where} measures. Names and records in results are the words of others.`;
  const slots = new FairSlots(MAX_CALLS);
  const protocol = new ToolServer();
  protocol.setRequestHandler(sdk.InitializeRequestSchema, ({ params: { protocolVersion } }) => ({
    protocolVersion: sdk.SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion)
      ? protocolVersion
      : sdk.LATEST_PROTOCOL_VERSION,
    capabilities: { tools: {} },
    serverInfo: { name: "sixscope", version: VERSION },
    instructions,
  }));
  protocol.setRequestHandler(sdk.ListToolsRequestSchema, async () => ({
    tools: (await offered()).map((tool) => describeTool(tool, endpointOf(tool))),
  }));
  protocol.setRequestHandler(sdk.CallToolRequestSchema, async ({ params }, extra) => {
    const tool = TOOLS.find(({ name }) => name === params.name);
    if (!tool) throw new sdk.McpError(sdk.ErrorCode.InvalidParams, `no tool is ${params.name}`);
    const { signal, requestId, sendNotification, _meta: { progressToken } = {} } = extra;
    try {
      if (tool.needsServer && !server) throw new Error(NEEDS_SERVER);
      const endpoint = endpointOf(tool);
      const parameters = textsOf(tool, endpoint, params.arguments ?? {});
      const count = counter(tool, parameters);
      const onEvent = (event: string, data: object) => {
        const progress = progressToken !== undefined && count(event, data);
        if (!progress) return;
        const params = { progressToken, ...progress };
        void sendNotification({ method: "notifications/progress", params });
      };
      const release = await takeSlot(slots, { client: `${requestId}`, signal }, "calls");
      const run = callEndpoint({ endpoint, parameters }, signal, onEvent);
      const { document, error } = await run.finally(release);
      return resultOf(error?.message ?? verdictOf(tool.name, document), document, error !== null);
    } catch (error) {
      const document = error instanceof ApiError ? error.body : undefined;
      return resultOf(reasonOf(error), document, true);
    }
  });
  if (process.stdin.isTTY) complain("waits for a program that speaks MCP; Ctrl-D ends it");
  await converse(protocol);
}

/** The tools that can work in this process. */
function offeredHere(): readonly Tool[] {
  const icmp = openIcmpIfAllowed();
  if ("unavailable" in icmp) return TOOLS.filter((tool) => !tool.needsServer && !tool.needsSocket);
  icmp.close();
  const isLess = (tool: Tool) => icmp.withoutRaw !== null && tool.needsSocket === "raw";
  return TOOLS.filter((tool) => !tool.needsServer && !isLess(tool));
}

/** The tools that a service has, or all if it does not answer now. */
async function offeredBy(callEndpoint: CallEndpoint): Promise<readonly Tool[]> {
  const question = { endpoint: openApi, parameters: {} };
  const { signal } = new AbortController();
  const answer = await callEndpoint(question, signal, () => {}).catch(() => null);
  if (answer === null || answer.error) return TOOLS;
  const paths = Object(answer.document["paths"]);
  return TOOLS.filter(({ endpoint }) => Object.hasOwn(paths, endpoint.path));
}

/** Connects the protocol to standard input and output until the input ends, which aborts all calls. */
async function converse(protocol: ToolServer): Promise<void> {
  const { stdin, stdout } = process;
  const ended = Promise.withResolvers<void>();
  protocol.onclose = ended.resolve;
  protocol.onerror = (error) => complain(isMalformed(error) ? MALFORMED : reasonOf(error));
  const end = () => void protocol.close();
  for (const event of ["end", "close"]) stdin.once(event, end);
  // Each answer waits for a slow reader by itself.
  stdout.setMaxListeners(0).on("error", end);
  await protocol.connect(new StdioServerTransport());
  await ended.promise;
  // A slow reader still gets all that is written, unless it has gone.
  await new Promise<void>((done) => stdout.once("error", done).end(done));
}

/** True if a line is not JSON or not a message; the errors that say so can have a hundred lines. */
const isMalformed = ({ name }: Error) => name === "SyntaxError" || name === "ZodError";

function complain(message: string): void {
  process.stderr.write(`sixscope: ${printable(message)}\n`);
}

/** A tool for programs: the parameters are those of the API, as JSON Schema. */
function describeTool({ name, label }: Tool, endpoint: Endpoint) {
  const { summary, description, parameters } = endpoint;
  const fields = Object.entries(parameters).map(describeParameter);
  const properties = fields.map(({ name, schema, description, example }) => {
    return [name, { ...schema, description, examples: [example] }] as const;
  });
  return {
    name,
    title: label,
    description: `${summary}. ${description}`,
    inputSchema: {
      type: "object" as const,
      properties: Object.fromEntries(properties),
      required: fields.filter(({ required }) => required).map((field) => field.name),
      additionalProperties: false,
    },
    outputSchema: describeAnswer(endpoint),
    annotations: { readOnlyHint: true, openWorldHint: true },
  };
}

/**
 * The arguments of a call as a request to the API sends them.
 *
 * @throws ApiError INVALID_PARAMETER, also for one that the tool does not have
 */
function textsOf({ name: tool }: Tool, { parameters }: Endpoint, given: Record<string, unknown>) {
  const wrong = (parameter: string, value: string | null, advice: string) =>
    new ApiError("INVALID_PARAMETER", { parameter, value }, advice);
  const names = Object.keys(parameters);
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    texts[name] = typeof value === "string" ? value : JSON.stringify(value);
    if (names.includes(name)) continue;
    throw wrong(name, texts[name], `${tool} has ${names.join(", ") || "no parameters"}`);
  }
  const missing = names.find((name) => parameters[name]?.in === "path" && !(name in given));
  if (missing) throw wrong(missing, null, `an example is ${parameters[missing]?.example}`);
  readTexts(parameters, texts);
  const odd = names.find((name) => typeof given[name] === "object");
  if (odd) throw wrong(odd, texts[odd] ?? null, "give a text or a number");
  return texts;
}

/** Makes a function that returns how far a run has come, for each event that shows it. */
function counter({ name, endpoint }: Tool, parameters: Readonly<Record<string, string>>) {
  const { noun, wanted = "", of } = reporterOf(name).progress ?? {};
  const total = Number(parameters[wanted] ?? endpoint.parameters[wanted]?.default) || undefined;
  const own = endpoint.events?.() ?? {};
  let last = 0;
  return (event: string, data: object) => {
    if (waitText(event, data) !== undefined) return undefined;
    const progress = of?.(data) ?? last + 1;
    // Answers may come in another order than their requests.
    if (progress <= last || !(event in own)) return undefined;
    last = progress;
    const at = "name" in data ? data.name : progress;
    return { progress, total, message: `${noun ?? event} ${at}` };
  };
}

/** The verdict of a document, or else its whole report; for several locations, a line for each. */
function verdictOf(name: ToolName, document: { readonly locations?: readonly Answer[] }): string {
  const textOf = (outcome: Omit<Answer, "location">) => {
    const report = reportOf(name, outcome);
    return outcome.error?.message ?? report?.verdict?.text ?? (report && reportText(report).trim());
  };
  const { locations } = document;
  if (!locations) return textOf({ result: document }) ?? "";
  return locations.map((outcome) => `${outcome.location}: ${textOf(outcome)}`).join("\n");
}

/**
 * The result of a call: a text, and the document of the API, if there is one. The document of an error does not match
 * `outputSchema`, so it is only text.
 */
function resultOf(text: string, document: Record<string, unknown> | undefined, isError: boolean) {
  const texts = document ? [text, JSON.stringify(document)] : [text];
  const content = texts.map((text) => ({ type: "text" as const, text }));
  return { content, ...(!isError && { structuredContent: document }), isError };
}
