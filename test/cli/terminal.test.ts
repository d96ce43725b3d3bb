import { expect, spyOn, test } from "bun:test";
import { ApiError } from "../../src/api/errors.ts";
import { rawSocketRemedy } from "../../src/cli/terminal.ts";
import { remedyFor } from "../../src/icmp/unavailable.ts";

const reason = (code: string) => `socket(AF_INET6, 3, 58): ${code}`;
const SYSTEMD = { NOTIFY_SOCKET: "/run/systemd/notify" };

const remedies: [string, string, number, Record<string, string>, string][] = [
  ["an ordinary user", "EPERM", 1000, {}, "start it with sudo"],
  ["root, as in a container", "EPERM", 0, {}, "grant CAP_NET_RAW"],
  ["the user of a service", "EPERM", 990, SYSTEMD, "grant CAP_NET_RAW"],
  ["a user without IPv6 in the kernel", "EAFNOSUPPORT", 1000, {}, "enable IPv6 in the kernel"],
  [
    "a service without IPv6 in the kernel",
    "EAFNOSUPPORT",
    990,
    SYSTEMD,
    "enable IPv6 in the kernel",
  ],
];
test.each(remedies)(
  "%s is told what gives a raw socket (%s)",
  (_, code, uid, environment, said) => {
    using _user = spyOn(process, "geteuid").mockReturnValue(uid);
    expect(rawSocketRemedy({ unavailable: reason(code) }, environment)).toBe(said);
  },
);

test.each([
  ["EPERM", "the operator must grant CAP_NET_RAW."],
  ["EAFNOSUPPORT", "the operator must enable IPv6 in the kernel."],
  ["ENOSYS", "the operator must allow executable memory."],
])("a client is told it too: %s", (code, said) => {
  const icmp = { unavailable: reason(code) };
  const { message } = new ApiError("ICMP_UNAVAILABLE", { reason: reason(code) }, remedyFor(icmp));
  expect(message).toEndWith(said);
});
