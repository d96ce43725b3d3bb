/** The parts of Bun, which every executable contains, and their licences. */

/** A part of Bun: a library that is linked into it, or code that was copied into it. */
export interface RuntimePart {
  readonly name: string;
  /** The part of it that Bun uses, or where Bun uses it. */
  readonly remark?: string;
  /** Where its sources and the text of its licence are. */
  readonly project: string;
  /** An SPDX licence expression. */
  readonly licence: string;
  /** Its name in `process.versions`, which has its version or commit. */
  readonly versionKey?: string;
}

/** Where Bun's own sources are. */
export const BUN_PROJECT = "https://github.com/oven-sh/bun";

const MIT = "MIT";
const APACHE = "Apache-2.0";
const EITHER = "Apache-2.0 OR MIT";

/**
 * The parts of Bun for Linux: what its LICENSE.md and its build scripts name, what `process.versions`
 * reports, and what its compilers add.
 */
// biome-ignore format: a table
export const RUNTIME_PARTS: readonly RuntimePart[] = [
  { name: "WebKit", remark: "JavaScriptCore, WTF and bmalloc", project: "https://github.com/oven-sh/WebKit", licence: "LGPL-2.0-or-later AND BSD-2-Clause", versionKey: "webkit" },
  { name: "BoringSSL", project: "https://github.com/oven-sh/boringssl", licence: "Apache-2.0 AND ISC AND MIT AND OpenSSL", versionKey: "boringssl" },
  { name: "Brotli", project: "https://github.com/google/brotli", licence: MIT },
  { name: "c-ares", project: "https://github.com/c-ares/c-ares", licence: MIT, versionKey: "ares" },
  { name: "esbuild", remark: "its parser and its resolver, rewritten", project: "https://github.com/evanw/esbuild", licence: MIT },
  { name: "HdrHistogram_c", project: "https://github.com/HdrHistogram/HdrHistogram_c", licence: "BSD-2-Clause OR CC0-1.0" },
  { name: "Highway", project: "https://github.com/google/highway", licence: "Apache-2.0 OR BSD-3-Clause" },
  { name: "ICU", project: "https://github.com/unicode-org/icu", licence: "Unicode-3.0", versionKey: "icu" },
  { name: "libarchive", project: "https://github.com/libarchive/libarchive", licence: "BSD-2-Clause AND BSD-3-Clause", versionKey: "libarchive" },
  { name: "libbase64", project: "https://github.com/aklomp/base64", licence: "BSD-2-Clause" },
  { name: "LLVM", remark: "a function of libc++abi", project: "https://github.com/llvm/llvm-project", licence: "Apache-2.0 WITH LLVM-exception" },
  { name: "libdeflate", project: "https://github.com/ebiggers/libdeflate", licence: MIT, versionKey: "libdeflate" },
  { name: "libjpeg-turbo", project: "https://github.com/libjpeg-turbo/libjpeg-turbo", licence: "BSD-3-Clause AND IJG AND Zlib" },
  { name: "libspng", project: "https://github.com/randy408/libspng", licence: "BSD-2-Clause" },
  { name: "GCC", remark: "libstdc++ and libgcc, in executables for glibc", project: "https://gcc.gnu.org", licence: "GPL-3.0-or-later WITH GCC-exception-3.1" },
  { name: "libwebp", project: "https://github.com/webmproject/libwebp", licence: "BSD-3-Clause" },
  { name: "llhttp", project: "https://github.com/nodejs/llhttp", licence: MIT, versionKey: "llhttp" },
  { name: "LOL HTML", project: "https://github.com/cloudflare/lol-html", licence: "BSD-3-Clause", versionKey: "lolhtml" },
  { name: "LS-HPACK", project: "https://github.com/litespeedtech/ls-hpack", licence: MIT, versionKey: "lshpack" },
  { name: "LS-QPACK", project: "https://github.com/litespeedtech/ls-qpack", licence: MIT },
  { name: "LSQUIC", project: "https://github.com/litespeedtech/lsquic", licence: "MIT AND BSD-3-Clause" },
  { name: "mimalloc", project: "https://github.com/microsoft/mimalloc", licence: MIT, versionKey: "mimalloc" },
  { name: "node-fallbacks", remark: "packages that stand in for modules of Node.js", project: "https://github.com/oven-sh/bun/tree/main/src/node-fallbacks", licence: MIT },
  { name: "picohttpparser", project: "https://github.com/h2o/picohttpparser", licence: "Artistic-1.0-Perl OR GPL-1.0-or-later OR MIT", versionKey: "picohttpparser" },
  { name: "Rust", remark: "the standard library", project: "https://github.com/rust-lang/rust", licence: EITHER },
  { name: "simdutf", project: "https://github.com/simdutf/simdutf", licence: EITHER },
  { name: "SQLite", project: "https://sqlite.org", licence: "blessing", versionKey: "sqlite" },
  { name: "TinyCC", project: "https://github.com/oven-sh/tinycc", licence: "LGPL-2.1-or-later", versionKey: "tinycc" },
  { name: "uSockets", project: "https://github.com/uNetworking/uSockets", licence: APACHE, versionKey: "usockets" },
  { name: "uucode", project: "https://github.com/jacobsandlund/uucode", licence: MIT },
  { name: "uWebSockets", project: "https://github.com/uNetworking/uWebSockets", licence: APACHE, versionKey: "uwebsockets" },
  { name: "zlib-ng", project: "https://github.com/zlib-ng/zlib-ng", licence: "Zlib", versionKey: "zlib" },
  { name: "Zstandard", project: "https://github.com/facebook/zstd", licence: "BSD-3-Clause OR GPL-2.0-only", versionKey: "zstd" },
];

/** Entries of `process.versions` that are not parts of Bun: interfaces that it implements, and its tools. */
const OUTSIDE = [
  "bun",
  "modules",
  "napi",
  "node",
  "openssl",
  "typescript",
  "unicode",
  "uv",
  "v8",
  "zig",
];

/**
 * The version or commit of a part; null if Bun does not report it.
 *
 * @throws Error if Bun reports a part that is not in the table, as another version may
 */
export function versionOf({ versionKey }: RuntimePart): string | null {
  const known = new Set([...OUTSIDE, ...RUNTIME_PARTS.map((part) => part.versionKey)]);
  for (const key of Object.keys(process.versions)) {
    if (!known.has(key))
      throw new Error(`${key} is new in Bun; add it and its licence to the table`);
  }
  return versionKey === undefined ? null : (process.versions[versionKey] ?? null);
}

/** The SPDX licence expression of Bun and all its parts. */
export function runtimeLicence(): string {
  const licences = new Set([MIT, ...RUNTIME_PARTS.map(({ licence }) => licence)]);
  return [...licences].map((text) => (/ (AND|OR) /.test(text) ? `(${text})` : text)).join(" AND ");
}
