/** Takes the place of a prober without a raw socket. */
export interface NoIcmp {
  /** The system call that failed and its errno name, such as `socket(AF_INET6, 3, 58): EPERM`. */
  readonly unavailable: string;
}

const REMEDIES: Readonly<Record<string, string>> = {
  EAFNOSUPPORT: "enable IPv6 in the kernel",
  ENOSYS: "allow executable memory",
};

/** The remedy that gives this process a raw socket, by the system call that failed. */
export function remedyFor({ unavailable }: NoIcmp): string {
  return REMEDIES[unavailable.split(": ").at(-1) ?? ""] ?? "grant CAP_NET_RAW";
}
