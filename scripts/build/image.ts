import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../../test/lab/run.ts";
import type { Source } from "./source.ts";
import {
  type Contents,
  EXECUTABLE_MODE,
  FILE_MODE,
  inProject,
  place,
  staged,
  stampTimes,
  tar,
} from "./stage.ts";

/** The C library of Debian 13 in the images. */
export const LIBC_VERSION = "2.41-12+deb13u4";

/** By processor: where the pool of Debian has it, and the SHA-256. */
const LIBC_PATH = `pool/main/g/glibc/libc6_${LIBC_VERSION}`;
const LIBC_SHA256: Readonly<Record<string, string>> = {
  amd64: "967aa62605721081c3eb2a17650611a792aa802d76a6511d1840242623d204c9",
  arm64: "8784eda966b189c777a384dac5ce009e8fc9b52d006926c5a013e7fa8aa688cc",
};

/** The second keeps what the first has replaced by a newer version. */
const MIRRORS = [
  "https://deb.debian.org/debian",
  "https://snapshot.debian.org/archive/debian/20261122T000000Z",
];

/** A user that no host has; the number that images without a shell commonly use. */
const USER = 65532;
const STATE_DIRECTORY = "var/lib/sixscope";

/**
 * Makes an archive of an image for `podman load` and `docker load`: one layer with the executable and
 * Debian's C library, without a shell; OCI image format 1.1, layout.
 *
 * @param architecture Debian's name for the processor, which is OCI's too
 */
export async function makeImage(
  { executable, notices }: Contents,
  architecture: string,
  source: Source,
  outfile: string,
): Promise<void> {
  await staged(outfile, async (stage) => {
    const root = join(stage, "root");
    await place(root, [
      ["usr/bin/sixscope", executable, EXECUTABLE_MODE],
      ["usr/share/doc/sixscope/copyright", inProject("LICENSE"), FILE_MODE],
      ["usr/share/doc/sixscope/THIRD-PARTY-NOTICES", notices, FILE_MODE],
    ]);
    for (const name of ["lib", "lib64"]) await symlink(`usr/${name}`, join(root, name));
    await mkdir(join(root, STATE_DIRECTORY), { recursive: true });
    const libc = join(stage, "libc.deb");
    await Bun.write(
      libc,
      await download(`${LIBC_PATH}_${architecture}.deb`, LIBC_SHA256[architecture]),
    );
    await run(["dpkg-deb", "--extract", libc, root]);
    await stampTimes(root, source);

    const layerFile = join(stage, "layer.tar");
    await tar(["--create", `--exclude=${STATE_DIRECTORY}`], root, layerFile, ["."]);
    await tar(["--append"], root, layerFile, [STATE_DIRECTORY], USER);
    await writeLayout(
      join(stage, "layout"),
      await Bun.file(layerFile).bytes(),
      architecture,
      source,
    );
    await stampTimes(join(stage, "layout"), source);
    await tar(["--create"], join(stage, "layout"), outfile, ["."]);
  });
}

/** @throws Error if no mirror has the file, or it differs */
async function download(path: string, sha256: string | undefined): Promise<Uint8Array> {
  for (const mirror of MIRRORS) {
    const response = await fetch(`${mirror}/${path}`).catch(() => null);
    if (response?.ok !== true) continue;
    const bytes = await response.bytes();
    if (Bun.SHA256.hash(bytes, "hex") === sha256) return bytes;
    throw new Error(`${mirror}/${path} does not have the SHA-256 ${sha256}`);
  }
  throw new Error(`neither of ${MIRRORS.join(" and ")} has ${path}; the images need the network`);
}

/** Writes the folder that becomes the archive: the layer, and what describes it. */
async function writeLayout(
  folder: string,
  layer: Uint8Array<ArrayBuffer>,
  architecture: string,
  { version, commit, epochSeconds }: Source,
): Promise<void> {
  const MEDIA = "application/vnd.oci.image";
  const name = "localhost/sixscope:latest";
  const created = new Date(epochSeconds * 1000).toISOString();
  const blob = async (mediaType: string, content: Uint8Array | string) => {
    const digest = Bun.SHA256.hash(content, "hex");
    await Bun.write(join(folder, "blobs/sha256", digest), content);
    return { mediaType, digest: `sha256:${digest}`, size: Buffer.byteLength(content) };
  };
  const writeJson = (path: string, value: object) =>
    Bun.write(join(folder, path), JSON.stringify(value));

  const packed = await blob(`${MEDIA}.layer.v1.tar+gzip`, Bun.gzipSync(layer, { level: 9 }));
  const config = await blob(
    `${MEDIA}.config.v1+json`,
    JSON.stringify({
      created,
      architecture,
      os: "linux",
      config: {
        User: `${USER}:${USER}`,
        Env: [
          "PATH=/usr/bin",
          // Without it, the paths of keys, watches and history would depend on the working directory.
          `STATE_DIRECTORY=/${STATE_DIRECTORY}`,
          // As in systemd/sixscope.service.
          "BUN_JSC_forceRAMSize=134217728",
        ],
        Entrypoint: ["/usr/bin/sixscope"],
        Volumes: { [`/${STATE_DIRECTORY}`]: {} },
        Labels: {
          "org.opencontainers.image.title": "sixscope",
          "org.opencontainers.image.description": "IPv6 diagnostics as a JSON HTTP API",
          "org.opencontainers.image.licenses": "MIT",
          "org.opencontainers.image.version": version,
          ...(commit === null ? {} : { "org.opencontainers.image.revision": commit }),
        },
      },
      rootfs: { type: "layers", diff_ids: [`sha256:${Bun.SHA256.hash(layer, "hex")}`] },
    }),
  );
  const manifest = await blob(
    `${MEDIA}.manifest.v1+json`,
    JSON.stringify({
      schemaVersion: 2,
      mediaType: `${MEDIA}.manifest.v1+json`,
      config,
      layers: [packed],
    }),
  );
  await writeJson("oci-layout", { imageLayoutVersion: "1.0.0" });
  await writeJson("index.json", {
    schemaVersion: 2,
    mediaType: `${MEDIA}.index.v1+json`,
    manifests: [
      {
        ...manifest,
        platform: { architecture, os: "linux" },
        annotations: { "org.opencontainers.image.ref.name": name },
      },
    ],
  });
  // The file that `docker load` reads from an archive unless its store is containerd's.
  const pathOf = ({ digest }: { digest: string }) => `blobs/${digest.replace(":", "/")}`;
  await writeJson("manifest.json", [
    { Config: pathOf(config), RepoTags: [name], Layers: [pathOf(packed)] },
  ]);
}
