import { expect, test } from "bun:test";
import { dirname, join, relative } from "node:path";
import { Glob } from "bun";

const ROOT = join(import.meta.dir, "..");

/**
 * Layers from the top down; a file may import from its own layer only within the same folder, and
 * otherwise only from layers below, minus what `FORBIDDEN` says.
 */
const LAYERS: readonly (readonly string[])[] = [
  ["src/main.ts"],
  ["src/cli/"],
  ["src/page/"],
  ["src/server/"],
  ["src/http/"],
  ["src/locations/"],
  ["src/valkey/"],
  ["src/watch/"],
  ["src/tools/"],
  ["src/here/"],
  ["src/api/"],
  ["src/keys/", "src/limits/", "src/networks/"],
  ["src/config/"],
  ["src/icmp/", "src/dns/"],
  ["src/gate/"],
  ["src/addr/"],
  ["src/platform/"],
  ["src/util/"],
  ["package.json"],
];

/** The only rooms that some rooms may import; the others may import all that are below them. */
const ONLY = new Map<string, readonly string[]>([
  ["src/addr/", []],
  ["src/gate/", ["src/addr/", "src/util/"]],
  ["src/dns/", ["src/gate/", "src/addr/", "src/util/"]],
  ["src/icmp/", ["src/gate/", "src/addr/", "src/platform/", "src/util/"]],
  ["src/api/", ["src/addr/", "src/util/"]],
  ["src/here/", ["src/icmp/", "src/addr/", "src/platform/", "src/util/"]],
]);

/** How many other rooms a room may import, but for those that put the whole together. */
const MAX_ROOMS = 10;
const WIRING = ["src/main.ts", "src/cli/", "src/server/"];

function layerOf(path: string): { level: number; member: string } | null {
  for (const [level, members] of LAYERS.entries()) {
    for (const member of members) {
      if (member.endsWith("/") ? path.startsWith(member) : path === member)
        return { level, member };
    }
  }
  return null;
}

/** Specifiers of every static, dynamic and type import of a file. */
async function importsOf(file: string): Promise<string[]> {
  const source = await Bun.file(join(ROOT, file)).text();
  const loader = file.endsWith("x") ? "tsx" : "ts";
  const found = new Bun.Transpiler({ loader }).scanImports(source).map(({ path }) => path);
  const typeOnly = source.matchAll(/^\s*(?:import|export)\s+type\b[^;]*?from\s+"([^"]+)"/gm);
  // The scanner takes React for the runtime of JSX.
  const real = found.filter((path) => !/^react(\/|$)/.test(path));
  return [...real, ...[...typeOnly].map((match) => match[1] ?? "")];
}

const files = [...new Glob("{src,test,scripts}/**/*.{ts,tsx}").scanSync(ROOT)].sort();

test("every source file belongs to a layer", () => {
  const homeless = files.filter((file) => file.startsWith("src/") && layerOf(file) === null);
  expect(homeless).toEqual([]);
});

/** The files that each file of src imports. */
async function importsBetween(): Promise<ReadonlyMap<string, readonly string[]>> {
  const sources = files.filter((path) => path.startsWith("src/"));
  const entries = sources.map(async (file) => {
    const relatives = (await importsOf(file)).filter((specifier) => specifier.startsWith("."));
    const targets = relatives.map((specifier) =>
      relative(ROOT, join(ROOT, dirname(file), specifier)),
    );
    return [file, targets] as const;
  });
  return new Map(await Promise.all(entries));
}

test("imports run one way", async () => {
  const upward: string[] = [];
  for (const [file, targets] of await importsBetween()) {
    const from = layerOf(file);
    for (const target of targets) {
      const to = layerOf(target);
      const allowed =
        from !== null &&
        to !== null &&
        (to.member === from.member ||
          (to.level > from.level && (ONLY.get(from.member)?.includes(to.member) ?? true)));
      if (!allowed) upward.push(`${file} imports ${target}`);
    }
  }
  expect(upward).toEqual([]);
});

test(`no room imports more than ${MAX_ROOMS} others`, async () => {
  const rooms = new Map<string, Set<string>>();
  for (const [file, targets] of await importsBetween()) {
    const room = layerOf(file)?.member ?? file;
    const others = rooms.get(room) ?? new Set();
    rooms.set(room, others);
    for (const target of targets) others.add(layerOf(target)?.member ?? target);
    others.delete(room);
  }
  const many = [...rooms].filter(
    ([room, others]) => others.size > MAX_ROOMS && !WIRING.includes(room),
  );
  expect(many).toEqual([]);
});

test("no file imports itself by way of others, types included", async () => {
  const imports = await importsBetween();
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]) => {
    const at = path.indexOf(file);
    if (at >= 0) circles.push([...path.slice(at), file].join(" > "));
    if (at >= 0 || done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  expect(circles).toEqual([]);
});

test("bun:ffi is imported by src/platform/libc.ts alone", async () => {
  const importers: string[] = [];
  for (const file of files) {
    if ((await importsOf(file)).includes("bun:ffi")) {
      importers.push(file);
    }
  }
  expect(importers).toEqual(["src/platform/libc.ts"]);
});

/** What opens a socket that something leaves by. */
const OPENING =
  /import \{[^}]*\bconnect\b[^}]*\} from "node:(net|tls)"|Bun\.(connect|udpSocket)\(|await fetch\(|openSocket\(SOCK|nats\.connect\(|RedisClient\(|(libc\(\)|system)\.socket\(/;

/** The only files that do, and where to. To targets, nothing leaves but through the gate. */
const OPENERS = new Map([
  ["src/cli/call-server.ts", "the service of --server"],
  ["src/dns/transport/https.ts", "resolvers"],
  ["src/dns/transport/sockets.ts", "resolvers"],
  ["src/dns/transport/stream.ts", "resolvers"],
  ["src/dns/transport/tls.ts", "resolvers"],
  ["src/dns/transport/udp.ts", "resolvers"],
  ["src/gate/connection.ts", "targets"],
  ["src/here/listener.ts", "the own links"],
  ["src/here/machine.ts", "the routing table"],
  ["src/here/rtnetlink.ts", "the kernel"],
  ["src/icmp/socket/datagram-socket.ts", "targets"],
  ["src/icmp/socket/port-sockets.ts", "targets"],
  ["src/icmp/socket/raw-socket.ts", "targets"],
  ["src/icmp/socket/socket.ts", "the routing table"],
  ["src/locations/link.ts", "NATS"],
  ["src/platform/capabilities.ts", "nowhere: sockets for the files above"],
  ["src/platform/systemd.ts", "systemd"],
  ["src/server/listener.ts", "nowhere: it listens"],
  ["src/page/browser/measure.ts", "this service, from a browser"],
  ["src/page/browser/api.ts", "this service, from a browser"],
  ["src/server/status.ts", "the running service"],
  ["src/valkey/connection.ts", "Valkey"],
  ["src/watch/notify.ts", "who is told of changes"],
]);

test("only these files open sockets, and those of probes are opened by the prober alone", async () => {
  const openers: string[] = [];
  const users: string[] = [];
  for (const file of files.filter((path) => path.startsWith("src/"))) {
    if (OPENING.test(await Bun.file(join(ROOT, file)).text())) openers.push(file);
    const imports = await importsOf(file);
    if (imports.some((path) => /socket\/(raw|datagram|port)-sockets?\.ts$/.test(path)))
      users.push(file);
  }
  expect(openers.filter((file) => !OPENERS.has(file))).toEqual([]);
  expect(users.filter((file) => !file.startsWith("src/icmp/"))).toEqual([]);
});

test("imports name packages that package.json lists, and files with their extension", async () => {
  const { dependencies } = await Bun.file(join(ROOT, "package.json")).json();
  const packages = Object.keys(dependencies);
  const strange: string[] = [];
  for (const file of files.filter((path) => path.startsWith("src/"))) {
    for (const specifier of await importsOf(file)) {
      const known = specifier.startsWith(".")
        ? /\.(tsx?|json|lua|bash|fish|zsh)$/.test(specifier)
        : specifier.startsWith("node:") ||
          specifier === "bun" ||
          specifier === "bun:ffi" ||
          (specifier === "bun:sqlite" && file === "src/watch/history.ts") ||
          packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
      if (!known) strange.push(`${file} imports ${specifier}`);
    }
  }
  expect(strange).toEqual([]);
});
