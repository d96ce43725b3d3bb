import packageJson from "../../package.json" with { type: "json" };

/** Defined by `bun run build`; undefined when sixscope runs from source. */
declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;

/** The version of the build; from source, the version in package.json. */
export const VERSION: string =
  typeof BUILD_VERSION === "undefined" ? packageJson.version : BUILD_VERSION;

/** The commit an executable was built from; null from source or if built without git. */
export const COMMIT: string | null = typeof BUILD_COMMIT === "undefined" ? null : BUILD_COMMIT;
