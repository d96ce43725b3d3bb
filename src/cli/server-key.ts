import { InvalidArgumentError } from "commander";
import { TOOL_SETTINGS } from "../config/settings.ts";
import { readRegularFile } from "../platform/regular-file.ts";
import { attempt } from "../util/errors.ts";

/** This machine as URLs write it, to which plain HTTP is private. */
const LOOPBACK_HOST = /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/;

/**
 * The key in an environment variable or in a file.
 *
 * @throws InvalidArgumentError if there is none
 */
export function readKey(source: string, environment: NodeJS.ProcessEnv): string {
  const key = attempt(() => environment[source] ?? readRegularFile(source))?.trim() ?? "";
  if (/^[!-~]+$/.test(key)) return key;
  throw new InvalidArgumentError("It must be an environment variable or a file with an API key.");
}

/** The key in SIXSCOPE_KEY, for the service of SIXSCOPE_SERVER alone. */
export function ownKey(server: URL, environment: NodeJS.ProcessEnv): string | undefined {
  const own = URL.parse(environment[TOOL_SETTINGS.server] ?? "");
  return own?.origin === server.origin ? environment[TOOL_SETTINGS.key] : undefined;
}

/** True if a key cannot be read on its way to a service: over HTTPS, or without leaving this machine. */
export function isPrivateWay({ protocol, hostname }: URL): boolean {
  return protocol === "https:" || LOOPBACK_HOST.test(hostname);
}
