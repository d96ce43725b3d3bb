import type { IpAddress } from "../addr/ip.ts";
import { FileWatch } from "../platform/file-watch.ts";
import { reasonOf } from "../util/errors.ts";
import type { Log } from "../util/log.ts";
import type { Network, NetworkTable } from "./network.ts";
import { readNetworksFile } from "./networks-file.ts";

/** The files of networks that the operator has named. */
export interface NetworkFiles {
  readonly networksFile: string | null;
  readonly asnFile: string | null;
}

/** Says whose network an address belongs to. */
export class Networks {
  /** How often a file was read again, by outcome. */
  readonly reads = { done: 0, failed: 0 };
  readonly #files: readonly NetworkFile[];

  /** @param files the first one that knows an address wins */
  constructor(files: readonly NetworkFile[]) {
    this.#files = files;
  }

  /** The network of an address; null if no file has it. */
  find(ip: IpAddress): Network | null {
    for (const file of this.#files) {
      const found = file.find(ip);
      if (found !== null) return found;
    }
    return null;
  }

  /** Starts to follow the files, until `close`. */
  watch(): void {
    for (const file of this.#files) file.watch(() => this.#reload(file));
  }

  close(): void {
    for (const file of this.#files) file.close();
  }

  /** Reads the files again; one that cannot be used is logged, and its old content stays in use. */
  reload(): void {
    for (const file of this.#files) this.#reload(file);
  }

  #reload(file: NetworkFile): void {
    this.reads[file.reload() ? "done" : "failed"] += 1;
  }
}

/** Opens the files that are named; null if there are none. A file that cannot be used is logged. */
export async function openNetworks(files: NetworkFiles, log: Log): Promise<Networks | null> {
  const readers = await networkReaders(files);
  if (readers.length === 0) return null;
  return new Networks(readers.map((reader) => new NetworkFile(reader, log)));
}

/** A file of networks, and how it is read. */
interface NetworkReader {
  readonly path: string;
  /** @throws NetworkFileError */
  readonly read: (path: string) => NetworkTable;
}

/** The files that are named; the first one that knows an address wins. */
export async function networkReaders({ networksFile, asnFile }: NetworkFiles) {
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
class NetworkFile {
  readonly #reader: NetworkReader;
  readonly #log: Log;
  readonly #watch: FileWatch;
  #table: NetworkTable | null = null;

  constructor(reader: NetworkReader, log: Log) {
    this.#reader = reader;
    this.#log = log;
    this.#watch = new FileWatch([reader.path]);
    this.#read();
  }

  find(ip: IpAddress): Network | null {
    try {
      return this.#table?.find(ip) ?? null;
    } catch (error) {
      // Reading the file does not show that one of its records is damaged.
      const { path } = this.#reader;
      this.#log.error(`${path} is damaged: ${reasonOf(error)}; it is not used until it changes`);
      this.#table = null;
      return null;
    }
  }

  watch(onChange: () => void): void {
    this.#watch.start(onChange);
  }

  close(): void {
    this.#watch.close();
  }

  /** Returns whether the file could be used. */
  reload(): boolean {
    this.#watch.look();
    const isRead = this.#read();
    const content = this.#table?.summary;
    if (isRead) this.#log.info("networks read again", { file: this.#reader.path, content });
    return isRead;
  }

  #read(): boolean {
    try {
      const { path, read } = this.#reader;
      this.#table = read(path);
      return true;
    } catch (error) {
      const until =
        this.#table === null
          ? "until it can be used, no network is found in it"
          : "the old networks stay in use";
      this.#log.error(`${reasonOf(error)}; ${until}`);
      return false;
    }
  }
}
