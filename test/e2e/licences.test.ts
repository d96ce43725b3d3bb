/** The licence notices and the bill of materials that come with the executable. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dependencies } from "../../package.json";
import { thirdPartyNotices } from "../../scripts/build/notices.ts";
import { RUNTIME_PARTS, runtimeLicence } from "../../scripts/build/runtime.ts";
import { billOfMaterials } from "../../scripts/build/sbom.ts";
import { ROOT } from "../../scripts/build/source.ts";

const SOURCE = { version: "1.2.3", commit: null, epochSeconds: 0 };
const packages = Object.keys(dependencies);

test.each(packages)("the notices contain the licence of %s, word for word", async (name) => {
  const text = readFileSync(join(ROOT, "node_modules", name, "LICENSE"), "utf8");
  expect(await thirdPartyNotices(packages)).toContain(text.trim());
});

test("a package without a licence text fails the build", async () => {
  await expect(thirdPartyNotices(["bun-types"])).rejects.toThrow("bun-types has no licence text");
});

test("the notices and the bill of materials name every part of the runtime", async () => {
  const notices = await thirdPartyNotices(packages);
  const bill = JSON.stringify(await billOfMaterials(SOURCE, packages));
  for (const { name, licence, project } of RUNTIME_PARTS) {
    expect(notices).toContain(`\n${name}`);
    expect(notices).toContain(`\n    ${licence}\n    ${project}\n`);
    expect(bill).toContain(`"name":"${name}"`);
    expect(bill).toContain(`"expression":"${licence}"`);
  }
  expect(bill).toContain(`"expression":"${runtimeLicence()}"`);
});

test("every reference in the bill of materials names exactly one component", async () => {
  const bill = (await billOfMaterials(SOURCE, packages)) as {
    components: { "bom-ref": string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
  const refs = bill.components.map((component) => component["bom-ref"]);
  expect(bill.dependencies.flatMap(({ dependsOn }) => dependsOn).sort()).toEqual(refs.sort());
  expect(new Set(refs).size).toBe(refs.length);
});
