/** The API key stays in the tab, or on the device if its owner wants that; it is never part of a URL. */
const NAME = "sixscope-key";

/** A key, and whether it is kept on the device. */
export interface Key {
  readonly key: string;
  readonly onDevice: boolean;
}

/** The key that is kept; null if there is none. */
export function storedKey(): Key | null {
  const inTab = sessionStorage.getItem(NAME);
  if (inTab !== null) return { key: inTab, onDevice: false };
  const kept = localStorage.getItem(NAME);
  return kept === null ? null : { key: kept, onDevice: true };
}

/** Keeps a key instead of the one before. */
export function storeKey({ key, onDevice }: Key): void {
  forgetKey();
  (onDevice ? localStorage : sessionStorage).setItem(NAME, key.trim());
}

/** Forgets the key wherever it is. */
export function forgetKey(): void {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}
