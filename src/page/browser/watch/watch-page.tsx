import { OneWatch } from "./one-watch.tsx";
import type { WatchPlace } from "./place.ts";
import { WatchList } from "./watch-list.tsx";

/** The tab of watches. */
export function WatchPage({ place }: { place: WatchPlace }) {
  return place.name === "" ? <WatchList /> : <OneWatch key={place.name} place={place} />;
}
