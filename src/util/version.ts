import packageJson from "../../package.json" with { type: "json" };

/** Put in place by `bun run build`; nothing defines it where sixscope runs from its source. */
declare const BUILD_COMMIT: string | undefined;

/** The version of this build, as in package.json. */
export const VERSION: string = packageJson.version;

/** The commit that an executable was built from, or null from source or without git. */
export const COMMIT: string | null = typeof BUILD_COMMIT === "undefined" ? null : BUILD_COMMIT;
