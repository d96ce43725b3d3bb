import { readdirSync, readlinkSync } from "node:fs";
import { Client, type ClientOptions } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { RequestOptions } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv-provider.js";
import type {
  JsonSchemaType,
  JsonSchemaValidator,
} from "@modelcontextprotocol/sdk/validation/types.js";
import { sixscopeProgram } from "./program.ts";

/** Compiles the schema of a tool's results when the first comes: the client's own way compiles those of all tools at once. */
const whenUsed: NonNullable<ClientOptions["jsonSchemaValidator"]> = {
  getValidator<T>(schema: JsonSchemaType) {
    let validate: JsonSchemaValidator<T> | undefined;
    return (result) => {
      validate ??= new AjvJsonSchemaValidator().getValidator(schema);
      return validate(result);
    };
  },
};

/** The answer of a tool: its text, its document, and whether it is an error. */
export interface McpAnswer {
  readonly text: string;
  readonly document: unknown;
  readonly isError: boolean;
}

/** A `sixscope mcp` in a process of its own, and a client of the official SDK that speaks to it. */
export interface Mcp extends AsyncDisposable {
  readonly client: Client;
  call(tool: string, args?: Record<string, unknown>, options?: RequestOptions): Promise<McpAnswer>;
  /** How many sockets it has open. */
  sockets(): number;
}

/**
 * Starts `sixscope mcp`.
 *
 * @param program the command that is sixscope
 */
export async function startMcp(
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
  program?: readonly string[],
): Promise<Mcp> {
  const [command = "", ...first] = program ?? (await sixscopeProgram());
  const transport = new StdioClientTransport({
    command,
    args: [...first, "mcp", ...args],
    env: { ...environment },
    stderr: "ignore",
  });
  const client = new Client({ name: "test", version: "1" }, { jsonSchemaValidator: whenUsed });
  await client.connect(transport);
  const folder = `/proc/${transport.pid}/fd`;
  let listed: Promise<unknown> | undefined;
  return {
    client,
    async call(name, given = {}, options) {
      // From then on, the client holds each result against the schema of its tool.
      listed ??= client.listTools();
      await listed;
      const result = await client.callTool({ name, arguments: given }, undefined, options);
      const [said, json] = result.content as { text: string }[];
      const document = json && JSON.parse(json.text);
      const isError = result.isError === true;
      const structured = isError ? undefined : document;
      if (!Bun.deepEquals(structured, result.structuredContent)) throw new Error("two documents");
      return { text: said?.text ?? "", document, isError };
    },
    sockets: () =>
      readdirSync(folder).filter((fd) => {
        try {
          return readlinkSync(`${folder}/${fd}`).startsWith("socket:");
        } catch {
          // Closed meanwhile.
          return false;
        }
      }).length,
    [Symbol.asyncDispose]: () => client.close(),
  };
}
