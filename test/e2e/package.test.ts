/** The package that one command makes of a fresh clone. */
import { afterAll, beforeAll, expect } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { programMissing, testWith } from "../lab/lab.ts";
import { findProgram, run } from "../lab/run.ts";

const ROOT = join(import.meta.dir, "../..");
const COMMAND = "npx -y bun@1.4.4 run build --deb";

const missing = ["dpkg-deb", "git"].map(programMissing).find((reason) => reason !== null) ?? null;
const packageTest = testWith(missing);

let folder: string;
let said: string;
/** What is in the package. */
let tree: string;

beforeAll(async () => {
  if (missing !== null) return;
  folder = mkdtempSync(join(tmpdir(), "sixscope-package-"));
  const clone = join(folder, "clone");
  tree = join(folder, "tree");
  // With what is not committed yet; the packages of bun.lock are there, because no test downloads any.
  await run([
    "sh",
    "-ec",
    `cd "$1"; mkdir "$2"; git ls-files -co --exclude-standard -z | tar -c --null --ignore-failed-read -T - | tar -x -C "$2"`,
    ...["sh", ROOT, clone],
  ]);
  symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
  // As the program itself, but with a compression that takes a tenth of the time.
  const quick = `#!/bin/bash\nexec ${findProgram("dpkg-deb")} "\${@/#-z9/-z1}"\n`;
  writeFileSync(join(folder, "dpkg-deb"), quick, { mode: 0o755 });
  said = await run([
    ...["env", `BUN=${process.execPath}`, "sh", "-ec"],
    `npx() { shift 2; PATH='${folder}':$PATH "$BUN" "$@"; }\ncd '${clone}'\n${COMMAND}`,
  ]);
  await run(["dpkg-deb", "--extract", packageFile(), tree]);
});

afterAll(() => {
  if (folder) rmSync(folder, { recursive: true });
});

/** The last line. */
const packageFile = () => said.trimEnd().split("\n").at(-1) ?? "";

packageTest("the command of the documentation makes one package, for this machine", async () => {
  for (const page of ["README.md", "docs/friends.md"])
    expect(readFileSync(join(ROOT, page), "utf8")).toContain(`\n${COMMAND}\n`);
  const architecture = (await run(["dpkg", "--print-architecture"])).trim();
  const { version } = await Bun.file(join(ROOT, "package.json")).json();
  const dist = join(folder, "clone/dist");
  const name = `sixscope_${version}_${architecture}.deb`;
  expect(packageFile()).toBe(join(dist, name));
  expect([...new Glob("*").scanSync(dist)].toSorted()).toEqual(
    ["THIRD-PARTY-NOTICES", "sixscope", name].toSorted(),
  );
  const fields = await run(["dpkg-deb", "--field", packageFile(), "Package", "Architecture"]);
  expect(fields).toBe(`Package: sixscope\nArchitecture: ${architecture}\n`);
  const { stdout } = Bun.spawnSync([join(tree, "usr/bin/sixscope"), "--version"]);
  expect(stdout.toString()).toBe(`sixscope ${version}\n`);
});

packageTest("it has what the service, a shell and a reader need", async () => {
  for (const path of [
    "etc/sixscope/sixscope.env",
    "usr/lib/systemd/system/sixscope.service",
    "usr/lib/sysusers.d/sixscope.conf",
    "usr/share/bash-completion/completions/sixscope",
    "usr/share/man/man1/sixscope.1.gz",
    "usr/share/doc/sixscope/docs/monitoring/prometheus.yml",
  ])
    expect([path, existsSync(join(tree, path))]).toEqual([path, true]);
  const documentation = join(tree, "usr/share/doc/sixscope");
  const broken = [...new Glob("**/*.md").scanSync(documentation)].flatMap((page) =>
    [...readFileSync(join(documentation, page), "utf8").matchAll(/\]\(([^)#:\s]+)[^):]*\)/g)]
      .map(([, link = ""]) => join(dirname(page), link))
      .filter((path) => !existsSync(join(documentation, path))),
  );
  expect(broken).toEqual([]);
});
