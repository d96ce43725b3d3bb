import type { IpAddress } from "../addr/ip.ts";

/** The network that an address belongs to. */
export interface Network {
  /** The number of its autonomous system; null if the file has none. */
  readonly asn: number | null;
  /** Its name; null if the file has none. */
  readonly name: string | null;
  /** The block of addresses of the file's row, in CIDR notation. */
  readonly prefix: string;
  /** The file with the row. */
  readonly source: "networks-file" | "asn-file";
}

/** The content of a file of networks. */
export interface NetworkTable {
  /** Its content in a few words, for people. */
  readonly summary: string;
  /** The network of an address, or null. @throws Error if the file is damaged at the address */
  find(ip: IpAddress): Network | null;
}
