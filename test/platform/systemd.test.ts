/** The notifications to a service manager, from the notifier alone and from a whole service. */
import { afterEach, describe, expect, jest, test } from "bun:test";
import { fstatSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ipv6Address } from "../../src/addr/ipv6.ts";
import { solicitedNodeGroup } from "../../src/addr/multicast.ts";
import { parsePrefix, prefixContains } from "../../src/addr/prefix.ts";
import { C, loadLibc } from "../../src/platform/libc.ts";
import { AF_UNIX, encodeUnixAddress, SOCK } from "../../src/platform/linux.ts";
import { isJournal, serviceManager } from "../../src/platform/systemd.ts";
import { parseIpv6 } from "../addr/parse.ts";
import { labMissing, testWith } from "../lab/lab.ts";
import { startService } from "../lab/service.ts";

const labTest = testWith(labMissing);

test("a reload reports its start and its end", () => {
  const order: string[] = [];
  const manager = serviceManager({}, (message) => order.push(message));
  manager.reload(() => order.push("reads"));
  expect(order).toEqual(["RELOADING=1", "reads", "READY=1"]);
});

test("a stop extends the unit's limit beyond the grace of running requests", () => {
  const sent: string[] = [];
  serviceManager({}, (message) => sent.push(message)).stopping(100_000);
  expect(sent.join()).toMatch(/^STOPPING=1\nEXTEND_TIMEOUT_USEC=105000000\nSTATUS=/);
});

describe("watch", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  /** Runs a notifier for some seconds and returns what it sent, with the second of each message. */
  function sent(
    environment: Record<string, string>,
    seconds: number,
    status: () => string,
  ): [number, string][] {
    jest.useFakeTimers();
    const messages: [number, string][] = [];
    let second = 0;
    const manager = serviceManager(environment, (message) => messages.push([second, message]));
    manager.watch(status);
    for (second = 1; second <= seconds; second++) jest.advanceTimersByTime(1000);
    manager.stopping(20_000);
    return messages.slice(0, -1);
  }

  test("sends three keep-alives within the time of the watchdog", () => {
    expect(sent({ WATCHDOG_USEC: "6000000" }, 6, () => "up")).toEqual([
      [0, "WATCHDOG=1\nSTATUS=up"],
      [2, "WATCHDOG=1\nSTATUS=up"],
      [4, "WATCHDOG=1\nSTATUS=up"],
      [6, "WATCHDOG=1\nSTATUS=up"],
    ]);
  });

  test("sends the status of the moment", () => {
    let count = 0;
    const messages = sent({ WATCHDOG_USEC: "6000000" }, 2, () => `${++count}`);
    expect(messages.map(([, message]) => message)).toEqual([
      "WATCHDOG=1\nSTATUS=1",
      "WATCHDOG=1\nSTATUS=2",
    ]);
  });

  test("ignores the watchdog of another process", () => {
    const environment = { WATCHDOG_USEC: "1000000", WATCHDOG_PID: "1" };
    expect(sent(environment, 4, () => "up")).toHaveLength(1);
  });
});

/** A unix datagram socket like systemd's, which Bun does not have. */
class NotifySocket implements Disposable {
  readonly #libc = loadLibc({
    socket: { args: [C.int, C.int, C.int], returns: C.int },
    bind: { args: [C.int, C.pointer, C.uint], returns: C.int },
    recv: { args: [C.int, C.pointer, C.size, C.int], returns: C.long },
    close: { args: [C.int], returns: C.int },
  });
  readonly #fd = this.#libc.socket(AF_UNIX, SOCK.dgram | SOCK.nonblock | SOCK.cloexec, 0);
  readonly #lines: string[] = [];

  constructor(path: string) {
    const address = encodeUnixAddress(path);
    if (this.#libc.bind(this.#fd, address, address.length) !== 0) {
      throw new Error(`cannot bind ${path}`);
    }
  }

  /** Waits for a line that matches. */
  async has(line: RegExp): Promise<void> {
    const buffer = new Uint8Array(new ArrayBuffer(1024));
    for (;;) {
      const length = Number(this.#libc.recv(this.#fd, buffer, buffer.length, 0));
      if (length >= 0) {
        this.#lines.push(...new TextDecoder().decode(buffer.subarray(0, length)).split("\n"));
      } else {
        await Bun.sleep(20);
      }
      if (this.#lines.some((text) => line.test(text))) return;
    }
  }

  [Symbol.dispose](): void {
    this.#libc.close(this.#fd);
  }
}

describe("a service", () => {
  for (const kind of ["a path", "an abstract name"]) {
    labTest(`tells ${kind} when it is ready, reloads and stops, and its status`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "sixscope-notify-"));
      const path = kind === "a path" ? join(folder, "notify") : `@sixscope-test-${process.pid}`;
      using socket = new NotifySocket(path);
      // A status a second, because the kernel keeps few for a test that reads late.
      await using service = await startService({ NOTIFY_SOCKET: path, WATCHDOG_USEC: "3000000" });
      await socket.has(/^READY=1$/);
      await socket.has(/^WATCHDOG=1$/);
      await socket.has(/^STATUS=http:\/\/127\.0\.0\.1:\d+ http:\/\/\[::1\]:\d+; API keys: 1; /);
      const client = new AbortController();
      const ping = fetch(`${service.url}/ping/::1?count=10`, {
        headers: { "X-API-Key": service.key },
        signal: client.signal,
      }).catch(() => null);
      await socket.has(/; probes running: 1$/);
      client.abort();
      await ping;
      service.signal("SIGHUP");
      await socket.has(/^RELOADING=1$/);
      service.signal("SIGTERM");
      await socket.has(/^STOPPING=1$/);
      expect(await service.exited).toBe(0);
      rmSync(folder, { recursive: true });
    });
  }
});

test("standard error is the journal if it is the file that systemd names", () => {
  const { dev, ino } = fstatSync(2, { bigint: true });
  expect(isJournal({ JOURNAL_STREAM: `${dev}:${ino}` })).toBe(true);
  // A desktop passes its variable on to programs that write elsewhere.
  expect(isJournal({ JOURNAL_STREAM: "1:1" })).toBe(false);
  expect(isJournal({})).toBe(false);
});

describe("the unit", () => {
  const unit = readFileSync(join(import.meta.dir, "../../systemd/sixscope.service"), "utf8");
  const valuesOf = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].flatMap(([, value = ""]) =>
      value.split(" "),
    );
  const reached = valuesOf("IPAddressAllow").map((text) =>
    parsePrefix(text.includes("/") ? text : `${text}/128`),
  );

  test.each<[string, Ipv6Address]>([
    ["all routers of a link", parseIpv6("ff02::2")],
    ["a neighbour by its solicited-node address", solicitedNodeGroup(parseIpv6("fe80::1234:5678"))],
    ["a gateway", parseIpv6("fe80::1")],
  ])("lets a look at the machine reach %s", (_, address) => {
    expect(reached.some((prefix) => prefixContains(prefix, address))).toBe(true);
  });

  test("lets no other multicast out", () => {
    for (const group of ["ff02::1", "ff02::fb", "ff05::2"])
      expect(reached.some((prefix) => prefixContains(prefix, parseIpv6(group)))).toBe(false);
  });

  test("has the sockets of a look at the machine", () => {
    expect(valuesOf("RestrictAddressFamilies")).toEqual(
      expect.arrayContaining(["AF_NETLINK", "AF_PACKET"]),
    );
  });
});
