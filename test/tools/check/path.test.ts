import { expect, test } from "bun:test";
import { pathOf } from "../../../src/tools/check/path.ts";
import example from "../../../src/tools/mtr/example.json" with { type: "json" };
import type { MtrResult } from "../../../src/tools/mtr/result.ts";

const { ip, hops } = example as unknown as MtrResult;

test("a way ends at its target, also where a round found it farther away", () => {
  const [last] = hops.slice(-1);
  const farther = { ...last, hop: hops.length + 1 };
  const mtr = { ...example, hops: [...hops, farther] } as unknown as MtrResult;
  const path = pathOf({ ip, mtr }, { code: "works" });
  expect(path).toMatchObject({ ip, reached: true });
  expect(path?.hops.map((hop) => hop.hop)).toEqual(hops.map((hop) => hop.hop));
});
