import type { Caller } from "../caller.ts";
import { urlOf } from "./api.ts";
import { HOME } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { type Family, type Measured, PATIENCE_SECONDS } from "./connection.ts";

/** Measures the connection of the caller, with up to two requests to each URL. */
export async function measure(urls: NonNullable<Caller["familyUrls"]>): Promise<Measured> {
  const [[ipv4Url = "", directUrl], [ipv6Url = ""]] = [urls.ipv4, urls.ipv6];
  const askAddress = (base: string) => ask(urlOf(toolOf(HOME).path.slice(1), base));
  const [ipv4, ipv6] = await Promise.all([askAddress(ipv4Url), askAddress(ipv6Url)]);
  const [large, direct] = await Promise.all([
    ipv6.outcome === "answered" ? ask(urlOf("openapi.json", ipv6Url)) : null,
    directUrl && ipv4.outcome === "answered" ? askAddress(directUrl) : null,
  ]);
  // An address, or a name of this test, leaves no choice.
  const isFree =
    /^[^a-z[]*[a-z][^[]*$/.test(location.hostname) &&
    ![...urls.ipv4, ipv6Url].includes(`${location.origin}/`);
  return {
    page: isFree ? CALLER.family : null,
    ...{ ipv4, ipv6 },
    // A refusal is short.
    large: large && (large.seen || large.outcome !== "answered") ? large.outcome : null,
    direct: direct?.outcome ?? null,
  };
}

/** Asks for a document as a stranger, without a key, and reads it to its end. */
async function ask(url: string, tries = 2): Promise<Family> {
  const signal = AbortSignal.timeout(PATIENCE_SECONDS * 1000);
  try {
    const response = await fetch(url, { signal, cache: "no-store", credentials: "omit" });
    const text = await response.text();
    const isDocument = response.ok && response.headers.get("content-type") === "application/json";
    return { outcome: "answered", seen: isDocument ? JSON.parse(text) : null };
  } catch {
    // A connection may fail because the network of the device has just changed.
    if (!signal.aborted && tries > 1) return ask(url, tries - 1);
    return { outcome: signal.aborted ? "silent" : "failed", seen: null };
  }
}
