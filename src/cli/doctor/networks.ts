import { NetworkFileError } from "../../networks/network.ts";
import { type NetworkFiles, networkReaders } from "../../networks/networks.ts";
import { type Finding, trying } from "./finding.ts";

/** Checks that each file of networks can be used, and says what it is. */
export async function checkNetworks(files: NetworkFiles): Promise<readonly Finding[]> {
  const readers = await networkReaders(files);
  return readers.map(({ path, read }) => {
    const { ok, problem } = trying(`read the networks in ${path}`);
    try {
      return ok(read(path).summary);
    } catch (error) {
      if (!(error instanceof NetworkFileError)) throw error;
      const advice = "correct or replace it; until then no network is found in it";
      return problem(error.message, advice);
    }
  });
}
