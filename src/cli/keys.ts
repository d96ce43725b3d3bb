import { existsSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { generateApiKey, hashApiKey } from "../keys/api-key.ts";
import {
  isActive,
  isNewKeyName,
  KeyFileError,
  type KeyRecord,
  readKeyFile,
} from "../keys/key-file.ts";
import { formatCommand } from "../util/command.ts";
import { reasonOf } from "../util/errors.ts";
import { listText } from "../util/text.ts";
import { about } from "./about.ts";
import { type KeyStore, openKeyStore } from "./key-store.ts";
import { invocation, print, write } from "./terminal.ts";

/** The options of `keys add`. */
type KeyOptions = Pick<KeyRecord, "limit" | "expires">;

/** Adds `keys` with its own commands. */
export function addKeyCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  const open = () => openKeyStore(environment);
  const keys = program.command("keys").helpCommand(false);
  about(keys, "Create, list and revoke API keys.", "sixscope keys add me");
  about(
    keys.command("add"),
    "Create a key and print it once. Only its SHA-256 is stored.",
    "sixscope keys add me --limit 5000 --expires 2027-01-31",
  )
    .argument("<name>", "the name of the key", parseKeyName)
    .option("--limit <n>", "requests a minute, instead of SIXSCOPE_RATE_KEY", parseLimit)
    .option(
      "--expires <date>",
      "the last day of the key in UTC, or a time such as 2027-01-31T12:00:00Z",
      parseExpiry,
    )
    .action((name: string, options: KeyOptions) => addKey(name, options, open()));
  about(keys.command("list"), "Show the keys, without secrets.", "sixscope keys list").action(
    async () => print(await listKeys(open())),
  );
  about(keys.command("revoke"), "Reject a key from now on.", "sixscope keys revoke me")
    .argument("<name>", "the name of the key")
    .action(async (name: string) => print(await revokeKey(name, open())));
  about(
    keys.command("import"),
    "Copy the keys of a file to Valkey, for several instances. Without a file, it is that of SIXSCOPE_KEYS_FILE. The command can be repeated.",
    "sixscope keys import /var/lib/sixscope/keys.json",
  )
    .argument("[file]", "the file with the keys")
    .action(async (file?: string) => print(await importKeys(file, open())));
}

/**
 * `sixscope keys add NAME`: creates a key in the keys file of the service, and prints it once.
 *
 * @throws KeyFileError
 */
async function addKey(name: string, options: KeyOptions, store: KeyStore): Promise<void> {
  const key = generateApiKey();
  const created = new Date().toISOString();
  const record: KeyRecord = { name, sha256: hashApiKey(key), created, ...options };
  await store.change((keys) => {
    if (isTaken(name, keys)) {
      throw new KeyFileError(
        `a key named ${JSON.stringify(name)} exists already; choose another name or revoke it first`,
      );
    }
    return [...keys.filter((other) => other.name !== name), record];
  });
  const text = `${key}

This is the only time the key is shown. Send it in the header X-API-Key.
It is stored in ${store.place}; services that read it accept the key within a second.`;
  await write(text).catch((error) => {
    const undo = `${invocation()} ${formatCommand(["keys", "revoke", name])}`;
    throw new Error(`${reasonOf(error)}; the new key was not shown, revoke it: ${undo}`);
  });
}

/**
 * `sixscope keys list`: the keys without secrets, as text.
 *
 * @throws KeyFileError
 */
async function listKeys(store: KeyStore): Promise<string> {
  const keys = await store.read();
  if (keys.length === 0)
    return `No keys in ${store.place}. Create one: ${invocation()} keys add NAME`;
  const rows = keys.map((key) => {
    const limit = key.limit === undefined ? "default" : `${key.limit}/min`;
    const expires = key.expires?.slice(0, 10) ?? "never";
    return [key.name, stateOf(key), limit, key.created.slice(0, 10), expires];
  });
  const table = [["NAME", "STATE", "LIMIT", "CREATED", "EXPIRES"], ...rows];
  const widths = [Math.max(...table.map(([name = ""]) => name.length)), 7, 11, 10];
  const lines = table.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)));
  return lines.map((cells) => cells.join("  ")).join("\n");
}

/**
 * `sixscope keys revoke NAME`: makes a key invalid from now on, and says so.
 *
 * @throws KeyFileError
 */
async function revokeKey(name: string, store: KeyStore): Promise<string> {
  await store.change((keys) => {
    const isRevocable = (key: KeyRecord) => key.name === name && key.revoked === undefined;
    if (!keys.some(isRevocable)) {
      throw new KeyFileError(
        `no key named ${JSON.stringify(name)} can be revoked; see ${invocation()} keys list`,
      );
    }
    const revoked = new Date().toISOString();
    return keys.map((key) => (isRevocable(key) ? { ...key, revoked } : key));
  });
  return `Revoked ${name} in ${store.place}; services that read it reject the key within a second.`;
}

/**
 * `sixscope keys import [FILE]`: copies the keys of a file to Valkey, and says how many. Those that are
 * there already stay as they are.
 *
 * @throws KeyFileError with the names of keys that another active key has; then it copies none
 */
async function importKeys(given: string | undefined, store: KeyStore) {
  if (store.source === null) {
    throw new KeyFileError("set SIXSCOPE_VALKEY_URL to where the keys of several instances are");
  }
  const file = given ?? store.source;
  if (!existsSync(file)) throw new KeyFileError(`the keys file ${file} does not exist`);
  const records = readKeyFile(file);
  let added: readonly KeyRecord[] = [];
  await store.change((keys) => {
    const present = new Set(keys.map(({ sha256 }) => sha256));
    added = records.filter(({ sha256 }) => !present.has(sha256));
    const clashing = added.filter((key) => isActive(key, Date.now()) && isTaken(key.name, keys));
    if (clashing.length === 0) return [...keys, ...added];
    const names = listText(clashing.map(({ name }) => JSON.stringify(name)));
    throw new KeyFileError(
      `copied no key, because other active keys in ${store.place} have the names ${names}; revoke one of each two and import again`,
    );
  });
  const others = added.length === records.length ? "" : "; the others were in it already";
  return `Copied ${added.length} of ${records.length} keys from ${file} to ${store.place}${others}.`;
}

/** True if an active key has the name. */
function isTaken(name: string, keys: readonly KeyRecord[]): boolean {
  return keys.some((key) => key.name === name && isActive(key, Date.now()));
}

function stateOf(key: KeyRecord): string {
  if (key.revoked !== undefined) return "revoked";
  return isActive(key, Date.now()) ? "active" : "expired";
}

/** @throws InvalidArgumentError for a text that cannot be the name of a new key */
function parseKeyName(text: string): string {
  if (isNewKeyName(text)) return text;
  throw new InvalidArgumentError(
    "It cannot be a name: use up to 64 letters, digits, single spaces inside and . _ @ -",
  );
}

/** @throws InvalidArgumentError for a text that is no limit */
function parseLimit(text: string): number {
  if (/^[1-9][0-9]{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a number from 1 to 9999999.");
}

/**
 * The time in ISO 8601 at which a key expires. A date means the end of that day in UTC.
 *
 * @throws InvalidArgumentError also for a time in the past
 */
function parseExpiry(text: string): string {
  const time = z.iso.date().safeParse(text).success
    ? `${text}T23:59:59.999Z`
    : text.replace(/T\d\d:\d\d(?=[Z+-])/, "$&:00");
  const isTime = z.iso.datetime({ offset: true }).safeParse(time).success;
  const expires = isTime ? new Date(time).toISOString() : "";
  // An offset can move the time beyond the year 9999, which the keys file cannot hold.
  if (!z.iso.datetime().safeParse(expires).success) {
    throw new InvalidArgumentError(
      "It must be a date such as 2027-01-31 (valid to the end of that day in UTC) or a time such as 2027-01-31T12:00:00Z.",
    );
  }
  if (Date.parse(expires) > Date.now()) return expires;
  throw new InvalidArgumentError("It must be a time in the future.");
}
