/** With this import, a prober that has a function by an engine's name has it called in place of the engine. */
import { mock } from "bun:test";
import * as mtr from "../../src/tools/mtr/engine.ts";
import * as mtu from "../../src/tools/mtu/engine.ts";
import * as ping from "../../src/tools/ping/engine.ts";
import * as trace from "../../src/tools/trace/engine.ts";
import * as paths from "../../src/tools/trace/path-search.ts";

type Engine = (...values: unknown[]) => unknown;

function script(path: string, engines: object, name: string, as = name): void {
  const originals = { ...engines } as unknown as Record<string, Engine>;
  const original = originals[name] as Engine;
  const scripted: Engine = (prober, ...others) => {
    const engine = (prober as Record<string, Engine>)[as];
    return engine ? engine(...others) : original(prober, ...others);
  };
  mock.module(path, () => ({ ...originals, [name]: scripted }));
}

script("../../src/tools/ping/engine.ts", ping, "ping");
script("../../src/tools/trace/engine.ts", trace, "traceroute");
script("../../src/tools/trace/path-search.ts", paths, "tracePaths", "paths");
script("../../src/tools/mtr/engine.ts", mtr, "mtr");
script("../../src/tools/mtu/engine.ts", mtu, "measureMtu", "mtu");
