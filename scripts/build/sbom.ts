import { join } from "node:path";
import { LIBC_VERSION } from "./image.ts";
import {
  BUN_PROJECT,
  RUNTIME_PARTS,
  type RuntimePart,
  runtimeLicence,
  versionOf,
} from "./runtime.ts";
import { ROOT, type Source } from "./source.ts";

/** One component of a CycloneDX bill of materials; CycloneDX 1.6. */
interface Component {
  readonly type: "application" | "library" | "platform";
  readonly "bom-ref": string;
  readonly name: string;
  readonly version?: string;
  readonly purl?: string;
  readonly description?: string;
  readonly licenses: readonly [{ readonly expression: string }];
  readonly hashes?: readonly [{ readonly alg: "SHA-512"; readonly content: string }];
  readonly externalReferences?: readonly [
    { readonly type: "vcs" | "website"; readonly url: string },
  ];
}

/**
 * The bill of materials: sixscope, the packages in its executable, its runtime, and the parts of the
 * runtime.
 *
 * @param packages names of packages in node_modules
 */
export async function billOfMaterials(
  source: Source,
  packages: readonly string[],
): Promise<object> {
  const lock = await Bun.file(join(ROOT, "bun.lock")).text();
  const application: Component = {
    type: "application",
    "bom-ref": "sixscope",
    name: "sixscope",
    version: source.version,
    licenses: [{ expression: "MIT" }],
  };
  const runtime: Component = {
    type: "platform",
    "bom-ref": `pkg:npm/bun@${Bun.version}`,
    name: "bun",
    version: Bun.version,
    purl: `pkg:npm/bun@${Bun.version}`,
    description: `the runtime inside the executable, revision ${Bun.revision}; MIT except for its parts`,
    licenses: [{ expression: runtimeLicence() }],
    externalReferences: [{ type: "vcs", url: BUN_PROJECT }],
  };
  const libraries = await Promise.all(packages.map((name) => library(name, lock)));
  const parts = RUNTIME_PARTS.map(partOfRuntime);
  const libc = `pkg:deb/debian/libc6@${encodeURIComponent(LIBC_VERSION)}?distro=debian-13`;
  const cLibrary: Component = {
    type: "library",
    "bom-ref": libc,
    name: "glibc",
    version: LIBC_VERSION,
    purl: libc,
    description: "in the container images; elsewhere, the C library of the machine",
    licenses: [{ expression: "LGPL-2.1-or-later AND GPL-2.0-or-later" }],
    externalReferences: [{ type: "website", url: "https://www.gnu.org/software/libc/" }],
  };
  const inside = [runtime, cLibrary, ...libraries];
  const components = [...inside, ...parts];
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([source, components]))}`,
    version: 1,
    metadata: {
      timestamp: new Date(source.epochSeconds * 1000).toISOString(),
      component: application,
      properties: source.commit === null ? [] : [{ name: "sixscope:commit", value: source.commit }],
    },
    components,
    dependencies: [
      { ref: application["bom-ref"], dependsOn: refsOf(inside) },
      { ref: runtime["bom-ref"], dependsOn: refsOf(parts) },
    ],
  };
}

/** @throws Error if the lock file does not contain the package with its hash */
async function library(name: string, lock: string): Promise<Component> {
  const manifest = await Bun.file(join(ROOT, "node_modules", name, "package.json")).json();
  const version: string = manifest.version;
  const entry = lock.split("\n").find((line) => line.includes(`["${name}@${version}"`)) ?? "";
  const hash = /"sha512-([^"]+)"/.exec(entry)?.[1];
  if (hash === undefined) throw new Error(`bun.lock has no hash of ${name}@${version}`);
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${version}`;
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    purl,
    licenses: [{ expression: manifest.license }],
    hashes: [{ alg: "SHA-512", content: Buffer.from(hash, "base64").toString("hex") }],
  };
}

function partOfRuntime(part: RuntimePart): Component {
  const { name, remark, project, licence } = part;
  const version = versionOf(part);
  const [, repository] = /^https:\/\/github\.com\/([^/]+\/[^/]+)$/.exec(project) ?? [];
  const place = repository
    ? `github/${repository.toLowerCase()}`
    : `generic/${name.toLowerCase().replaceAll(" ", "-")}`;
  return {
    type: "library",
    "bom-ref": `bun:${project}`,
    name,
    ...(version === null ? {} : { version }),
    purl: `pkg:${place}${version === null ? "" : `@${encodeURIComponent(version)}`}`,
    ...(remark === undefined ? {} : { description: remark }),
    licenses: [{ expression: licence }],
    externalReferences: [{ type: "website", url: project }],
  };
}

function refsOf(components: readonly Component[]): string[] {
  return components.map((component) => component["bom-ref"]);
}

/** A UUID that depends only on a text; RFC 9562 section 5.8. */
function uuidOf(text: string): string {
  const hex = Bun.SHA256.hash(text, "hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
}
