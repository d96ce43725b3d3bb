import { OneWatch } from "./one-watch.tsx";
import type { WatchPlace } from "./place.ts";
import { WatchList } from "./watch-list.tsx";

/** The tab of watches. */
export const WatchPage = ({ place }: { place: WatchPlace }) =>
  place.name === "" ? <WatchList /> : <OneWatch key={place.name} place={place} />;
