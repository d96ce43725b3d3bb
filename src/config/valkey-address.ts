/** Where Valkey is, and the start of all names in it. */
export interface ValkeyAddress {
  /** With user name and password. */
  readonly url: string;
  readonly prefix: string;
}

/** The names of what instances share, below the prefix. */
export function namesBelow(prefix: string) {
  return {
    instances: `${prefix}instances`,
    keys: [`${prefix}keys`, `${prefix}keys:changes`] as const,
    limit: (bucket: string) => `${prefix}limit:${bucket}`,
    target: (network: string) => `${prefix}target:${network}`,
  };
}
/** The kind of connection that Bun's client makes, by the scheme of a URL: TCP, with TLS or without, or a unix socket. */
const SCHEMES: Readonly<Record<string, "tcp" | "unix">> = {
  "valkey:": "tcp",
  "valkeys:": "tcp",
  "redis:": "tcp",
  "rediss:": "tcp",
  "valkey+unix:": "unix",
  "redis+unix:": "unix",
};

/** The form of the URL of Valkey, for messages. */
export const VALKEY_URL_FORM =
  "valkey://[user:password@]host[:port][/database], valkeys:// for TLS, or valkey+unix:///path";

/** True if a text is the URL of Valkey or Redis. */
export function isValkeyUrl(text: string): boolean {
  const url = URL.parse(text);
  const kind = url === null ? undefined : SCHEMES[url.protocol];
  if (url === null || kind === undefined || url.search !== "" || url.hash !== "") return false;
  return kind === "unix"
    ? url.pathname.length > 1
    : url.hostname !== "" && /^(\/\d*)?$/.test(url.pathname);
}

/** The URL without user name and password. */
export function publicUrl(text: string): string {
  const url = new URL(text);
  url.username = "";
  url.password = "";
  return url.href;
}
