/** What a browser loads to show a way that stands: `show(properties)`. */
import { render } from "hono/jsx/dom";
import {
  StandingWay,
  type StandingWayProps,
} from "../../src/page/browser/pictures/standing-way.tsx";

const place = document.body.appendChild(document.createElement("div"));
const show = (properties: StandingWayProps) => render(<StandingWay {...properties} />, place);

Object.assign(globalThis, { show });
