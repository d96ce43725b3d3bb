/** The API key stays in the tab, or on the device if its owner wants that; it is never part of a URL. */
const NAME = "sixscope-key";
const STORAGES = [sessionStorage, localStorage];

/** A key, and whether it is kept on the device. */
export interface Key {
  readonly key: string;
  readonly onDevice: boolean;
}

/** The key that is kept; null if there is none. */
export function storedKey(): Key | null {
  const storage = STORAGES.find((storage) => storage.getItem(NAME) !== null);
  const key = storage?.getItem(NAME);
  return key ? { key, onDevice: storage === localStorage } : null;
}

/** Keeps a key in place of the last one. */
export function storeKey({ key, onDevice }: Key): void {
  for (const storage of STORAGES) storage.removeItem(NAME);
  (onDevice ? localStorage : sessionStorage).setItem(NAME, key.trim());
}

/** Forgets a key wherever it is, but not another one that was stored meanwhile. */
export function forgetKey(key: string): void {
  for (const storage of STORAGES) if (storage.getItem(NAME) === key) storage.removeItem(NAME);
}
