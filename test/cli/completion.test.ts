/** Completion in real shells, from the scripts that the packages install. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeCommands } from "../../src/cli/command-line.ts";
import { candidates, SCRIPTS } from "../../src/cli/completion.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { sixscopeProgram } from "../lab/program.ts";
import { run } from "../lab/run.ts";

const [PROGRAM] = await sixscopeProgram();
const zshTest = testWith(programMissing("zsh"), programMissing("script"));
const fishTest = testWith(programMissing("fish"));

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-completion-"));
  // Completes, and only writes down what else it is called with.
  const program = `#!/bin/sh
    test "$1" = __complete && exec '${PROGRAM}' "$@"
    echo "$*" >> '${folder}/called'\n`;
  writeFileSync(join(folder, "sixscope"), program);
  chmodSync(join(folder, "sixscope"), 0o755);
});

afterAll(() => rmSync(folder, { recursive: true }));

describe("candidates", () => {
  const program = describeCommands({});
  const rows: [string, string[]][] = [
    ["d", ["doctor", "dns", "diff"]],
    ["ping --c", ["--count"]],
    ["traceroute -n -m 3 --j", ["--json"]],
    ["dns example.com @", ["@resolver_a", "@resolver_b", "@resolver_c", "@all", "@zone"]],
    ["mtr --format ", ["mtr-report", "mtr-json"]],
    ["mt", ["mtr", "mtu"]],
    ["keys ", ["add", "list", "revoke", "import"]],
    ["keys add --l", ["--limit"]],
    ["keys add --limit ", []],
    ["keys add --limit 5 --e", ["--expires"]],
    ["watch ", ["add", "remove", "list", "show"]],
    ["completion ", ["bash", "zsh", "fish"]],
    ["completion f", ["fish"]],
    ["nonsense ", []],
    ["doctor -", ["--json", "-h", "--help"]],
  ];
  test.each(rows)("of %p", (line, expected) => {
    const found = candidates(program, line.split(" "));
    expect(found.map((text) => text.split("\t")[0] ?? "")).toEqual(expected);
  });

  test("say what they mean", () => {
    expect(candidates(program, ["docto"])).toEqual([
      "doctor\tfind problems and say how to solve them",
    ]);
  });
});

/** The completions that each shell offers for a command line with the cursor at its end. */
const LINES: [string, string[]][] = [
  ["sixscope keys ", ["add", "list", "revoke", "import"]],
  ["sixscope completion f", ["fish"]],
  ["sixscope doctor --j", ["--json"]],
];

const bash = async (line: string) => {
  const script = `PATH='${folder}':"$PATH"
    ${SCRIPTS.bash}
    COMP_LINE=$1 COMP_POINT=\${#1}
    read -ra COMP_WORDS <<< "$1"; [[ $1 == *' ' ]] && COMP_WORDS+=("")
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
    _sixscope; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return (await run(["bash", "-c", script, "bash", line])).trim().split("\n");
};

test.each(LINES)("bash completes %p", async (line, expected) => {
  expect(await bash(line)).toEqual(expected);
});

fishTest.each(LINES)("fish completes %p", async (line, expected) => {
  const script = `set PATH '${folder}' $PATH\n${SCRIPTS.fish}\ncomplete -C '${line}'`;
  const output = await run(["fish", "--no-config", "-c", script]);
  const words = output
    .trim()
    .split("\n")
    .map((text) => text.split("\t")[0]);
  expect(words.toSorted()).toEqual(expected.toSorted());
});

zshTest("zsh completes words, and leaves their meanings out of the line", async () => {
  const settings = join(folder, "settings.zsh");
  writeFileSync(
    settings,
    `PATH='${folder}':"$PATH"
    autoload -U compinit && compinit -u -d '${folder}/dump'
    ${SCRIPTS.zsh}`,
  );
  const lines = ["doct\t", "completion f\t", "keys rev\t me", "dns x @a\t", "doctor --j\t"];
  const typed = `source ${settings}\n${lines.map((line) => `sixscope ${line}\n`).join("")}exit\n`;
  await run(["script", "-qec", "zsh -f -i", "/dev/null"], typed);
  const called = readFileSync(join(folder, "called"), "utf8");
  expect(
    called
      .trim()
      .split("\n")
      .map((line) => line.trim()),
  ).toEqual(["doctor", "completion fish", "keys revoke me", "dns x @all", "doctor --json"]);
});
