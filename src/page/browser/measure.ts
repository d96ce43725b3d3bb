import type { Caller } from "../caller.ts";
import { urlOf } from "./api.ts";
import { HOME } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { type Family, type Measured, PATIENCE_SECONDS } from "./connection.ts";

const PATIENCE_MS = PATIENCE_SECONDS * 1000;

const AS_STRANGER = { cache: "no-store", credentials: "omit" } as const;

/** Measures the connection of the caller, with up to two requests to each URL. */
export async function measure(urls: NonNullable<Caller["familyUrls"]>): Promise<Measured> {
  const [[ipv4Url = "", directUrl], [ipv6Url = ""]] = [urls.ipv4, urls.ipv6];
  const askAddress = (base: string) => ask(urlOf(toolOf(HOME).path.slice(1), base));
  const [ipv4, ipv6] = await Promise.all([askAddress(ipv4Url), askAddress(ipv6Url)]);
  const [large, direct] = await Promise.all([
    ipv6.outcome === "answered" ? ask(urlOf("openapi.json", ipv6Url)) : null,
    directUrl && ipv4.outcome === "answered" ? askAddress(directUrl) : null,
  ]);
  // At an address, or at a name for this test, the browser had no choice of the family.
  const isFree =
    /^[^a-z[]*[a-z][^[]*$/.test(location.hostname) &&
    ![...urls.ipv4, ipv6Url].includes(`${location.origin}/`);
  return {
    page: isFree ? CALLER.family : null,
    ...{ ipv4, ipv6 },
    // A refusal is not a large answer.
    large: large && (large.seen || large.outcome !== "answered") ? large.outcome : null,
    direct: direct?.outcome ?? null,
  };
}

/** Asks for a document as a stranger, without a key, and reads it to its end. */
async function ask(url: string, tries = 2): Promise<Family> {
  const silence = new AbortController();
  const { signal } = silence;
  const timer = setTimeout(async () => {
    const tookMs = await answerOfPage();
    setTimeout(() => silence.abort(), tookMs);
  }, PATIENCE_MS);
  try {
    const response = await fetch(url, { ...AS_STRANGER, signal });
    const text = await response.text();
    const isDocument = response.ok && response.headers.get("content-type") === "application/json";
    return { outcome: "answered", seen: isDocument ? JSON.parse(text) : null };
  } catch {
    // A connection may fail because the network of the device has just changed.
    if (!signal.aborted && tries > 1) return ask(url, tries - 1);
    return { outcome: signal.aborted ? "silent" : "failed", seen: null };
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Asks the server of the page, and returns the milliseconds that its answer took, at most `PATIENCE_MS`. If an earlier
 * request has no answer after as long again, the reason is not that this device or the service is busy.
 */
async function answerOfPage(): Promise<number> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const startMs = performance.now();
  await fetch(new URL("./healthz", document.baseURI), { ...AS_STRANGER, signal }).catch(() => null);
  return performance.now() - startMs;
}
