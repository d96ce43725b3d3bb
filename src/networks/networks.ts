import type { IpAddress } from "../addr/ip.ts";
import type { Config } from "../config/settings.ts";
import { followFiles } from "../platform/followed-files.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Network, NetworkTable } from "./network.ts";
import { readNetworksFile } from "./networks-file.ts";

/** The files of networks that the operator has named. */
type NetworkFiles = Config["networkFiles"];

/** See `openNetworks`. */
export type Networks = NonNullable<Awaited<ReturnType<typeof openNetworks>>>;

/** Opens the files that are named; null if there are none. A file that cannot be used is logged. */
export async function openNetworks(named: NetworkFiles, log: Log) {
  const files = (await networkReaders(named)).map((reader) => openFile(reader, log));
  if (files.length === 0) return null;
  const all = (action: "watch" | "close" | "reload") => () => {
    for (const file of files) file[action]();
  };
  return {
    /** How often a file was read again, by outcome. */
    get reads() {
      const count = (outcome: "done" | "failed") =>
        files.reduce((sum, { reads }) => sum + reads[outcome], 0);
      return { done: count("done"), failed: count("failed") };
    },
    /** The network of an address; null if no file has it. The first file that has it wins. */
    find(ip: IpAddress): Network | null {
      const found = files.values().map((file) => file.find(ip));
      return found.find((network) => network !== null) ?? null;
    },
    /** Starts to follow the files, until `close`. */
    watch: all("watch"),
    close: all("close"),
    /** Reads the files again; one that cannot be used is logged, and its old content stays in use. */
    reload: all("reload"),
  };
}

/** A file of networks, and how it is read. */
interface NetworkReader {
  readonly path: string;
  /** @throws NetworkFileError */
  readonly read: (path: string) => NetworkTable;
}

/** The files that are named; the first one that knows an address wins. */
async function networkReaders({ networksFile, asnFile }: NetworkFiles) {
  const readers: NetworkReader[] = [];
  if (networksFile !== null) readers.push({ path: networksFile, read: readNetworksFile });
  if (asnFile !== null) {
    // Loaded only if it is used: the library takes time and memory.
    const { readAsnFile } = await import("./asn-file.ts");
    readers.push({ path: asnFile, read: readAsnFile });
  }
  return readers;
}

/** A file of networks, which is read again after each change. */
function openFile({ path, read: readTable }: NetworkReader, log: Log) {
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
        // Reading the file does not show that one of its records is damaged.
        log.error(`${path} is damaged: ${reasonOf(error)}; it is not used until it changes`);
        table = null;
        return null;
      }
    },
  };
}
