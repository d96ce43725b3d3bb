import type { BunPlugin } from "bun";

const [USUAL, PATIENT] = ["GIVE_UP_MS = 50;", "GIVE_UP_MS = 5_000;"];

/** Makes a service wait longer for Valkey than a busy machine takes to answer. */
export const patient: BunPlugin = {
  name: "patient",
  setup(build) {
    build.onLoad({ filter: /\/src\/valkey\/valkey\.ts$/ }, async ({ path }) => {
      const source = await Bun.file(path).text();
      if (!source.includes(USUAL)) throw new Error(`${path} has no ${USUAL}`);
      return { contents: source.replace(USUAL, PATIENT), loader: "ts" };
    });
  },
};
