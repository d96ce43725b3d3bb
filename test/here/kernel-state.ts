/** What the kernel says in /proc of a namespace, without a process of its own. */
import { readFileSync } from "node:fs";
import { addressText } from "../lab/address.ts";

/** Flags of an address, linux/if_addr.h, and of a route, linux/ipv6_route.h. */
const [DUPLICATE, TENTATIVE, REJECT] = [0x08, 0x40, 0x200] as const;

/** The fields of each line of a table of the namespace that this thread is in. */
const table = (name: string) =>
  readFileSync(`/proc/thread-self/net/${name}`, "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length > 1);

/** What was sent over all links of the namespace that this thread is in. */
export function readSent() {
  const [BYTES_AT, PACKETS_AT] = [9, 10];
  const links = table("dev").filter(([name]) => name?.endsWith(":") && name !== "lo:");
  const sum = (at: number) => links.reduce((sum, fields) => sum + Number(fields[at]), 0);
  return { packets: sum(PACKETS_AT), bytes: sum(BYTES_AT) };
}

/** Packets that came to the namespace that this thread is in, and for which it has no route. */
export const readStrayPackets = () =>
  Number(table("snmp6").find(([name]) => name === "Ip6InNoRoutes")?.[1]);

/** The addresses and default routes of the namespace that this thread is in, in lines. */
export function readState(): string[] {
  const textOf = (hex = "") => addressText(Uint8Array.fromHex(hex));
  const number = (hex = "") => Number.parseInt(hex, 16);
  return [
    ...table("if_inet6").map(([ip, , length, , flags, device]) => {
      const bits = number(flags);
      const mark = bits & DUPLICATE ? "duplicate " : bits & TENTATIVE ? "tentative " : "";
      return `${device} ${mark}${textOf(ip)}/${number(length)}`;
    }),
    ...table("ipv6_route")
      .filter(([, length, , , , , , , flags]) => number(length) === 0 && !(number(flags) & REJECT))
      .map(([, , , , via, , , , , device]) => `default via ${textOf(via)} dev ${device}`),
  ];
}
