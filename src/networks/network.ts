import type { IpAddress } from "../addr/ip.ts";

/** The network that an address belongs to. */
export interface Network {
  /** The number of its autonomous system; null if the file does not say. */
  readonly asn: number | null;
  /** Its name; null if the file does not say. */
  readonly name: string | null;
  /** The block of addresses that the file has a row for, in CIDR notation. */
  readonly prefix: string;
  /** The file that says it. */
  readonly source: "networks-file" | "asn-file";
}

/** The content of a file of networks. */
export interface NetworkTable {
  /** Its content in a few words, for people. */
  readonly summary: string;
  /** The network of an address, or null. @throws Error if the file is damaged where the address is */
  find(ip: IpAddress): Network | null;
}
