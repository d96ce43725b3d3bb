import type { IpAddress } from "../addr/ip.ts";
import type { Config } from "../config/settings.ts";
import { followFiles } from "../platform/followed-files.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Network, NetworkTable } from "./network.ts";
import { readNetworksFile } from "./networks-file.ts";

/** See `openNetworks`. */
export type Networks = NonNullable<Awaited<ReturnType<typeof openNetworks>>>;

/**
 * Opens the files that the operator has named; null if there are none. The first file that has an address wins. A file
 * that cannot be used is logged.
 */
export async function openNetworks({ networksFile, asnFile }: Config["networkFiles"], log: Log) {
  const files = networksFile === null ? [] : [openFile(networksFile, readNetworksFile, log)];
  if (asnFile !== null) {
    // Loaded only if it is used: the library takes time and memory.
    const { readAsnFile } = await import("./asn-file.ts");
    files.push(openFile(asnFile, readAsnFile, log));
  }
  if (files.length === 0) return null;
  const forAll = (action: "watch" | "reload") => () => {
    for (const file of files) file[action]();
  };
  return {
    /** The numbers of further reads of the files, by outcome. */
    get reads() {
      const count = (outcome: "done" | "failed") =>
        files.reduce((sum, { reads }) => sum + reads[outcome], 0);
      return { done: count("done"), failed: count("failed") };
    },
    /** The network of an address; null if no file has it. */
    find(ip: IpAddress): Network | null {
      const results = files.values().map((file) => file.find(ip));
      return results.find((network) => network !== null) ?? null;
    },
    /** Starts to follow the files. */
    watch: forAll("watch"),
    /** Reads the files again. A file that cannot be used is logged, and its old content stays in use. */
    reload: forAll("reload"),
  };
}

/** A file of networks, which is read again after each change. */
function openFile(path: string, readTable: (path: string) => NetworkTable, log: Log) {
  let table: NetworkTable | null = null;
  const { read, ...file } = followFiles([path], log, {
    read() {
      table = readTable(path);
      return true;
    },
    onRenewed: () => log.info("networks read again", { file: path, content: table?.summary }),
    fallback: () =>
      table === null
        ? "until it can be used, no network is found in it"
        : "the old networks stay in use",
  });
  read();
  return {
    ...file,
    find(ip: IpAddress): Network | null {
      try {
        return table?.find(ip) ?? null;
      } catch (error) {
        // A damaged record does not show when the file is read.
        log.error(`${path} is damaged: ${reasonOf(error)}; it is not used until it changes`);
        table = null;
        return null;
      }
    },
  };
}
