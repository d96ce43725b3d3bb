/** The URL of Valkey, and the prefix of all names in it. */
export interface ValkeyAddress {
  /** With user name and password. */
  readonly url: string;
  readonly prefix: string;
}

/** The names of the data that instances share, with the prefix. */
export function namesBelow(prefix: string) {
  return {
    instances: `${prefix}instances`,
    keys: [`${prefix}keys`, `${prefix}keys:version`] as const,
    limit: (bucket: string) => `${prefix}used:${bucket}`,
  };
}

/** The form of the URL of Valkey, for messages. */
export const VALKEY_URL_FORM =
  "valkey://[user:password@]host[:port][/database], valkeys:// for TLS, or valkey+unix:///path";

/** True if a text is the URL of Valkey or Redis: over TCP, with TLS or without, or a unix socket. */
export function isValkeyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.search !== "" || url.hash !== "") return false;
  if (/^(valkey|redis)\+unix:$/.test(url.protocol)) return url.pathname.length > 1;
  const isTcp = /^(valkey|redis)s?:$/.test(url.protocol);
  return isTcp && url.hostname !== "" && /^(\/\d*)?$/.test(url.pathname);
}

/** The URL without user name and password. */
export function publicUrl(text: string): string {
  const url = new URL(text);
  url.username = "";
  url.password = "";
  return url.href;
}
