/** The API key stays in the tab, or on the device if its owner wants that; it is never part of a URL. */
const NAME = "sixscope-key";

/** The key, and whether it is kept on the device; null if there is none. */
export function storedKey(): { readonly key: string; readonly onDevice: boolean } | null {
  const inTab = sessionStorage.getItem(NAME);
  if (inTab !== null) return { key: inTab, onDevice: false };
  const kept = localStorage.getItem(NAME);
  return kept === null ? null : { key: kept, onDevice: true };
}

export function storeKey(key: string, onDevice: boolean): void {
  forgetKey();
  (onDevice ? localStorage : sessionStorage).setItem(NAME, key);
}

export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}
