import { urlOf } from "./api.ts";
import { HOME } from "./bookmark.ts";
import { CALLER, toolOf } from "./caller.ts";
import { type Measured, type Outcome, PATIENCE_SECONDS, SAMPLES } from "./connection.ts";

/** An encrypted page may not ask for what is not. */
const isMixed =
  location.protocol === "https:" && JSON.stringify(CALLER.familyUrls).includes('"http:');

/** The URLs of this service by one address family each; null if the page cannot ask them. */
export const FAMILY_URLS = isMixed ? null : CALLER.familyUrls;

/** Measures the connection of the caller, with some requests to each URL. */
export async function measure({ ipv4, ipv6 }: NonNullable<typeof FAMILY_URLS>): Promise<Measured> {
  const [[old = "", direct], [url = ""]] = [ipv4, ipv6];
  const urls = [old, url];
  const askAddress = (base: string) => ask(urlOf(toolOf(HOME).path.slice(1), base));
  const [first4, first6] = await Promise.all([askAddress(old), askAddress(url)]);
  const times: [number[], number[]] = [[], []];
  const icon = document.querySelector("link[rel=icon]")?.getAttribute("href") ?? "";
  const rounds = [first4, first6].every(({ outcome }) => outcome === "answered") ? SAMPLES : 0;
  for (let round = 0; round < rounds; round++) {
    // In turns, so that a change under way concerns both.
    for (const [at, base] of urls.entries()) {
      const { outcome, ms } = await ask(new URL(icon, base).href);
      if (outcome === "answered") times[at]?.push(ms);
      else round = rounds;
    }
  }
  const [large, last] = await Promise.all([
    first6.outcome === "answered" ? ask(urlOf("openapi.json", url)) : null,
    direct && first4.outcome === "answered" ? askAddress(direct) : null,
  ]);
  // An address, or a name of this test, leaves no choice.
  const isFree =
    /^[^[]*[a-z][^[]*$/.test(location.hostname) && ![...ipv4, url].includes(`${location.origin}/`);
  return {
    page: isFree ? (CALLER.validation ? 6 : 4) : null,
    ipv4: { ...first4, times: times[0] },
    ipv6: { ...first6, times: times[1] },
    // A refusal is short.
    large: large && (large.seen || large.outcome !== "answered") ? large.outcome : null,
    direct: last?.outcome ?? null,
  };
}

interface Answer {
  readonly outcome: Outcome;
  readonly ms: number;
  /** The document; null if the service refused, or if another server has answered. */
  readonly seen: Measured["ipv4"]["seen"];
}

/** Asks for a document as a stranger, without a key, and reads it to its end. */
async function ask(url: string, tries = 2): Promise<Answer> {
  const signal = AbortSignal.timeout(PATIENCE_SECONDS * 1000);
  const startMs = performance.now();
  try {
    const response = await fetch(url, { signal, cache: "no-store", credentials: "omit" });
    const text = await response.text();
    const ms = performance.now() - startMs;
    const isDocument = response.ok && response.headers.get("content-type") === "application/json";
    return { outcome: "answered", ms, seen: isDocument ? JSON.parse(text) : null };
  } catch {
    // A connection may fail because the network of the device has just changed.
    if (!signal.aborted && tries > 1) return ask(url, tries - 1);
    return { outcome: signal.aborted ? "silent" : "failed", ms: 0, seen: null };
  }
}
