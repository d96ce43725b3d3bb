import { expect, test } from "bun:test";
import type { CallEndpoint } from "../../src/cli/call-here.ts";
import { mtrLines, runMtrScreen, withRound } from "../../src/cli/mtr-screen.ts";
import { createScreen } from "../../src/cli/screen.ts";
import { mtr } from "../../src/tools/mtr/endpoint.ts";
import example from "../../src/tools/mtr/example.json" with { type: "json" };
import type { MtrRound } from "../../src/tools/mtr/result.ts";
import { settle } from "../util/fake-clock.ts";

const [row] = example.hops as unknown as MtrRound["hops"];
const ADDRESS = "2001:db8:1111:2222:3333:4444:5555:6666";
const NAME = "a-router-with-a-very-long-name.and.many.labels.transit.example.net";

/** A hop of a round. */
const hopOf = (hop: number, more: object) =>
  ({
    ...row,
    hop,
    ip: ADDRESS,
    hostname: NAME,
    addresses: [],
    ...more,
  }) as MtrRound["hops"][number];
const HOPS = [
  hopOf(1, { loss: 80, cause: "replies", sent: 10, received: 2, avg: 1.5 }),
  hopOf(2, {
    loss: 40,
    cause: "unclear",
    sent: 10,
    received: 6,
    ip: "2001:db8::2",
    hostname: null,
  }),
  hopOf(3, { loss: 100, cause: "path", sent: 10, received: 0, ip: null, hostname: null }),
  hopOf(4, { loss: 30, cause: "path", sent: 10, received: 7, late: 2 }),
];
const latest: MtrRound = { round: 10, length: 4, hops: HOPS };
const view = {
  target: "::1",
  run: 1,
  latest,
  history: new Map(HOPS.map(({ hop }) => [hop, [1, null, 42]])),
  isPaused: false,
  isHeld: false,
  showsTimes: false,
  hidesNames: false,
  scrolled: 0,
};
const screen = createScreen({ NO_COLOR: "1" }, true, () => {});
const shown = (change: object, columns: number, rows = 30) =>
  mtrLines({ ...view, ...change }, columns, rows).map((line) => screen.text(line, columns));

test.each(
  [40, 80, 200].flatMap(
    (columns) =>
      [
        [columns, true],
        [columns, false],
      ] as const,
  ),
)(
  "in %d columns, loss and its cause are beside each other, and nothing that matters is cut (times: %p)",
  (columns, showsTimes) => {
    const lines = shown({ showsTimes }, columns);
    const text = lines.join("\n");
    for (const [loss, cause] of [
      ["80%", "router busy"],
      ["40%", "unclear"],
      ["30%", "path"],
    ])
      expect(text).toMatch(new RegExp(`^  \\d +${loss}  ${cause}`, "m"));
    expect(text).toContain("2 too late");
    // What never answers has no cause.
    expect(text).toMatch(/^ {2}3 100% +\d/m);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    // Only a name can be cut, never an address.
    for (const line of lines.filter((each) => each.endsWith("…")))
      expect(line).toContain("a-router");
    expect(text.match(new RegExp(ADDRESS, "g"))).toHaveLength(2);
    if (!showsTimes) expect(text).toContain("▁×█");
  },
);

test("d shows the last and the best time in 40 columns, and all of them where there is room", () => {
  expect(shown({ showsTimes: true }, 40)[1]).toMatch(/avg {2}last {2}best$/);
  expect(shown({ showsTimes: true }, 100)[1]).toMatch(
    /avg {2}last {2}best worst stdev {2}address$/,
  );
});

test("a small screen scrolls, and says how much is above and below", () => {
  const first = shown({}, 80, 6);
  expect(first).toHaveLength(6);
  const second = shown({ scrolled: 2 }, 80, 6);
  expect(second[1]).toBe(first[3] as string);
  expect(second.at(-1)).toMatch(/ ↑2 ↓\d+$/);
  expect(shown({ scrolled: 1000 }, 80, 6).at(-1)).toMatch(/ ↓0$/);
});

test("a long target gives way to the rounds and the state", () => {
  const [title] = shown({ target: NAME, isPaused: true, run: 3 }, 60);
  expect(title).toMatch(/^mtr a-router.*… {2}10 rounds of run 3, view paused$/);
  expect(title).toHaveLength(60);
});

test("names do not give way to a history that is still short", () => {
  const history = new Map(HOPS.map(({ hop }) => [hop, [1]]));
  const columns = NAME.length + 50;
  expect(shown({ history }, columns)[1]).toMatch(/history {5}address$/);
  expect(shown({ history }, columns).join("\n")).toContain(`  █           ${NAME}`);
  // Nor to one that could be longer.
  const long = new Map(HOPS.map(({ hop }) => [hop, Array.from({ length: 60 }, () => 1)]));
  for (const each of shown({ history: long }, columns).slice(2, 6)) expect(each).not.toMatch(/…$/);
  expect(shown({ history: long }, columns).join("\n")).toContain(` ${NAME}`);
});

test("p holds the rounds of a run, and says so", async () => {
  let key: (key: string) => void = () => {};
  let title = "";
  const call: CallEndpoint = async (_question, _signal, onEvent, _enough, mayGoOn) => {
    onEvent("round", latest);
    expect(mayGoOn?.()).toBeUndefined();
    key("p");
    expect(title).toEndWith("10 rounds, view paused");
    let goesOn = false;
    const waiting = mayGoOn?.()?.then(() => {
      goesOn = true;
    });
    expect(title).toEndWith("10 rounds, paused");
    await settle();
    expect(goesOn).toBe(false);
    key("p");
    await waiting;
    expect(title).toEndWith("10 rounds");
    key("p");
    const last = mayGoOn?.();
    key("q");
    await last;
    return { document: example, error: null };
  };
  const question = { endpoint: mtr, parameters: { target: "::1" } } as never;
  const of = { columns: 80, rows: 24, text: screen.text.bind(screen) };
  await runMtrScreen(call, question, of, (onKey) => {
    key = onKey;
    return {
      draw([first = ""]) {
        title = first;
      },
      close() {},
    };
  });
});

test("n shows addresses alone", () => {
  expect(shown({ hidesNames: true }, 80).join("\n")).not.toContain("a-router");
});

test("the history has what each round has added, but no probe whose outcome is unknown", () => {
  let history: ReturnType<typeof withRound> = new Map();
  const rounds = [
    [1, 1, 5],
    [2, 1, 5],
    [3, 2, 7],
    [3, 2, 7],
    [4, 2, 7, 1],
  ].map(([sent, received, last, unknown = 0]) => ({
    ...latest,
    hops: [hopOf(1, { sent, received, last, unknown })],
  }));
  for (const [at, round] of rounds.entries()) history = withRound(history, rounds[at - 1], round);
  expect(history.get(1)).toEqual([5, null, 7]);
});

test("a service's run is followed by another; r forgets, q ends with what there is", async () => {
  let key: (key: string) => void = () => {};
  let frame: readonly string[] = [];
  let runs = 0;
  const verdict = { code: "no-loss", text: "So far.", lossAtLeast: 0, lossAtMost: 1 };
  const call: CallEndpoint = async (_, signal, onEvent) => {
    onEvent("round", { ...latest, verdict });
    runs++;
    if (runs === 1) return { document: example, error: null };
    const title = frame[0];
    key(runs === 2 ? "r" : "q");
    expect(title).toContain(runs === 2 ? "10 rounds of run 2" : "10 rounds");
    throw signal.reason;
  };
  const question = { endpoint: mtr, parameters: { target: "::1" } } as never;
  const of = { columns: 80, rows: 24, text: screen.text.bind(screen) };
  const { document } = await runMtrScreen(call, question, of, (onKey) => {
    key = onKey;
    return {
      draw: (lines) => {
        frame = lines;
      },
      close() {},
    };
  });
  expect(runs).toBe(3);
  expect(document).toMatchObject({
    target: "::1",
    rounds: 10,
    details: { verdict, reached: true },
  });
});
