/** The laboratory of faults: three resolvers, three routers, and a server with many sites, most of them with a fault. */

import { closeSync, readSync, writeSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatSocketAddress } from "../../../src/addr/socket-address.ts";
import { startKnot } from "../../lab/dns-server.ts";
import { startKernelChain } from "../../lab/kernel-chain.ts";
import { awaitLink, findProgram, labEnvironment, run, runIp } from "../../lab/run.ts";
import { type Service, startService } from "../../lab/service.ts";
import { openTun } from "../../lab/tun.ts";
import { startUnbound } from "../../lab/unbound.ts";
import { type CertificateKind, certificateLines, makeCertificates } from "./certificates.ts";

/** Routers on the way to the server, which is node `SERVER`. */
const ROUTERS = 3;
const SERVER = ROUTERS + 1;

/** How much longer the way to a far site is, in milliseconds: more than a busy machine makes every connection wait. */
const FAR_MS = 500;

/** A site of the server, with one name. */
export interface Site {
  /** Its AAAA records; as many of its own, by default one, or these. */
  readonly ipv6?: number | readonly string[];
  /** How many of its own addresses the server has; by default all. */
  readonly alive?: number;
  /** False if it has no A record; "dead" if the server does not have its address. */
  readonly ipv4?: false | "dead";
  readonly certificate?: CertificateKind;
  /** The one over IPv6, if it is another. */
  readonly certificate6?: CertificateKind;
  /** Lines of nginx for requests, over either family or over IPv6 alone; by default status 200. */
  readonly answer?: string;
  readonly answer6?: string;
  /** Lines of nginx beside. */
  readonly more?: string;
  /** `plain` speaks no TLS on port 443, `none` listens nowhere; others are servers of `test/lab/odd-servers.ts`. */
  readonly server?: "web" | "plain" | "none" | "tarpit" | "closer" | "ssh" | "h2";
  /** The servers behind its first address, of which each connection gets the next. */
  readonly backends?: readonly Backend[];
  /** The router that sends its packets back to the one before. */
  readonly loopAt?: number;
  /** Rules of nft at nodes, by default for what is forwarded by a router and taken by the server. */
  rules?(ip: string): Readonly<Record<number, readonly string[]>>;
  /** The MTU of the way behind a router, in both directions. */
  readonly narrow?: { readonly at: number; readonly bytes: number };
  /** True for a way that is longer by `FAR_MS`. */
  readonly isFar?: boolean;
  /** The zone of its name; by default `check.example`. */
  readonly zone?: "check.example" | "secure.example" | "bogus.example";
  /** The records that only the first or the third resolver has for its name, as local data of unbound. */
  readonly first?: readonly string[];
  readonly third?: readonly string[];
}

/** A server behind an address: it works, refuses, is silent, fails, or shows another certificate. */
export type Backend = "well" | "refuses" | "silent" | "fails" | CertificateKind;

/**
 * The resolvers of a service: as they should be, one silent, all silent, all of them making addresses (DNS64); or it has
 * no raw socket, probes few ports, or any target, as the command line does.
 */
export type Resolvers =
  | "well"
  | "one-silent"
  | "all-silent"
  | "dns64"
  | "no-raw"
  | "few-ports"
  | "any-target";

/** The laboratory. */
export interface Stage extends AsyncDisposable {
  /** A service with these resolvers, started once. */
  service(resolvers: Resolvers): Promise<Service>;
  nameOf(site: string): string;
  /** The IPv6 addresses of a site. */
  ipsOf(site: string): readonly string[];
  /** Begins the limits of a site's rules anew, and forgets sizes of paths: what one check has used up or learned, the next one would not find. */
  renew(site: string): Promise<void>;
  /** The address of each router on the way, the first one first. */
  readonly routers: readonly string[];
}

const WITHOUT_RAW = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"];

const ZONES = ["check.example", "secure.example", "bogus.example"] as const;

/** The prefixes behind the translator, and that which leads to IPv4. */
const NAT64 = "2001:db8:64::/96";

/** Where rules stand: for what is forwarded by a router, or taken by the server. */
const hookOf = (node: number) => (node === SERVER ? "input" : "forward");

/** Starts the laboratory with these sites. */
export async function startStage(sites: Readonly<Record<string, Site>>): Promise<Stage> {
  const stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), `sixscope-check-${process.pid}-`));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const names = Object.keys(sites);
  const site = (name: string) => sites[name] ?? {};
  const prefixOf = (name: string) => `2001:db8:5:${(names.indexOf(name) + 1).toString(16)}::`;
  const nameOf = (name: string) => `${name}.${site(name).zone ?? "check.example"}`;
  const ip4Of = (name: string) => `192.0.2.${names.indexOf(name) + 1}`;
  const live4Of = (name: string) => (site(name).ipv4 === undefined ? [ip4Of(name)] : []);
  const ipsOf = (name: string): readonly string[] => {
    const { ipv6 = 1 } = site(name);
    if (typeof ipv6 !== "number") return ipv6;
    return Array.from({ length: ipv6 }, (_, at) => `${prefixOf(name)}${at + 1}`);
  };
  const backendsOf = (name: string) =>
    (site(name).backends ?? []).map((kind, at) => ({ kind, ip: `${prefixOf(name)}b${at}` }));
  const aliveOf = (name: string) => {
    const { ipv6 = 1, alive = 12 } = site(name);
    return typeof ipv6 === "number" ? ipsOf(name).slice(0, alive) : [];
  };

  const [authorityFile, chain, { knot, anchors }] = await Promise.all([
    makeCertificates(folder),
    startKernelChain({ routers: ROUTERS }),
    startAuthority(),
  ]);
  stack.defer(() => chain.stop());
  const anchorsFile = join(folder, "anchors");
  await writeFile(anchorsFile, `${anchors.join("\n")}\n`);
  await setUpPaths();
  await Promise.all([startNginx(), startOddServers(), startTranslator(), startFarWay()]);
  for (const node of [1, 2, 3, 4]) await setRules(node);
  const [a, b, c, dns64] = (
    await Promise.all([
      startUnbound({
        ...{ zones: [...ZONES], server: knot.endpoint, trustAnchors: anchors },
        localData: names.flatMap((name) => site(name).first ?? []),
      }),
      startUnbound({ zones: [...ZONES], server: knot.endpoint }),
      startUnbound({
        ...{ zones: [...ZONES], server: knot.endpoint },
        localData: names.flatMap((name) => site(name).third ?? []),
      }),
      startUnbound({
        ...{ zones: [...ZONES, "ipv4only.arpa"], server: knot.endpoint },
        dns64: NAT64,
      }),
    ])
  ).map((resolver) => {
    stack.defer(() => resolver.stop());
    return formatSocketAddress(resolver.endpoint);
  }) as [string, string, string, string];
  const silent = await Bun.udpSocket({ hostname: "::1" });
  stack.defer(() => silent.close());
  const deaf = `[::1]:${silent.port}`;
  const RESOLVERS: Readonly<Record<Resolvers, readonly [string, string, string]>> = {
    well: [a, b, c],
    "one-silent": [a, b, deaf],
    "all-silent": [deaf, deaf, deaf],
    dns64: [dns64, dns64, dns64],
    "no-raw": [a, b, c],
    "few-ports": [a, b, c],
    "any-target": [a, b, c],
  };

  /** The zones and their trust anchors. */
  async function startAuthority() {
    const start = "$TTL 60\n@ SOA ns h 1 60 60 60 60\n@ NS ns\nns AAAA ::1\n";
    const zoneText = (zone: string) =>
      names
        .filter((name) => (site(name).zone ?? "check.example") === zone)
        .flatMap((name) => [
          ...ipsOf(name).map((ip) => `${name} AAAA ${ip}\n`),
          ...(site(name).ipv4 === false ? [] : [`${name} A ${ip4Of(name)}\n`]),
        ])
        .join("");
    const sign = async (zone: string, options: readonly string[]) => {
      const home = join(folder, zone);
      await mkdir(home);
      const key = ["-a", "ECDSAP256SHA256", "-f", "KSK", zone];
      await run(["dnssec-keygen", "-q", "-K", home, ...key]);
      const [file, output] = [join(home, "zone"), join(home, "signed")];
      await Bun.write(file, start + zoneText(zone));
      const where = ["-S", "-z", "-K", home, "-d", home, "-o", zone, "-f", output];
      await run(["dnssec-signzone", "-q", "-P", ...where, ...options, file]);
      const anchor = (await readdir(home)).find((each) => each.startsWith("dsset-")) ?? "";
      const [text, ds] = await Promise.all([
        readFile(output, "utf8"),
        readFile(join(home, anchor), "utf8"),
      ]);
      return { text, ds };
    };
    const [secure, bogus] = await Promise.all([
      sign("secure.example", []),
      sign("bogus.example", ["-s", "now-2592000", "-e", "now-864000"]),
    ]);
    const knot = await startKnot({
      zones: {
        "check.example": start + zoneText("check.example"),
        "secure.example": secure.text,
        "bogus.example": bogus.text,
        "ipv4only.arpa": `${start}@ A 192.0.0.170\n@ A 192.0.0.171\n`,
      },
    });
    stack.defer(() => knot.stop());
    return { knot, anchors: [secure.ds.trim(), bogus.ds.trim()] };
  }

  /** IPv4 on the links, the prefixes of the sites, and the addresses of the server. */
  async function setUpPaths() {
    const site = "2001:db8:5::/48";
    const near = (link: number) => `10.0.${link}.1`;
    const far = (link: number) => `10.0.${link}.2`;
    const batch = (node: number, lines: readonly string[]) =>
      chain.exec(node, ["ip", "-batch", "-"], `${lines.join("\n")}\n`);
    const linkOf = (node: number) => chain.hops[node - 1] ?? "";
    await runIp([
      `addr add ${near(1)}/24 dev ${chain.device}`,
      `route add 192.0.2.0/24 via ${far(1)}`,
      `route add ${site} via ${linkOf(1)}`,
    ]);
    const forward = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    const tables: string[][] = [];
    for (const name of names) {
      const { loopAt } = sites[name] ?? {};
      if (loopAt === undefined) continue;
      const back = chain.hops[loopAt - 1]?.replace(/2$/, "1");
      const line = `route add ${prefixOf(name)}/64 via ${back}`;
      tables[loopAt] = [...(tables[loopAt] ?? []), line];
    }
    for (const [at, name] of names.entries()) {
      const { narrow } = sites[name] ?? {};
      if (narrow === undefined) continue;
      const [prefix, table] = [`${prefixOf(name)}/64`, 100 + at];
      const back = chain.hops[narrow.at - 1]?.replace(/2$/, "1");
      await chain.exec(narrow.at, [
        "ip",
        "-6",
        "rule",
        "add",
        "from",
        prefix,
        "lookup",
        `${table}`,
      ]);
      const lines = [
        `route add ${prefix} via ${linkOf(narrow.at + 1)} mtu ${narrow.bytes}`,
        `route add ${chain.source} via ${back} mtu ${narrow.bytes} table ${table}`,
      ];
      tables[narrow.at] = [...(tables[narrow.at] ?? []), ...lines];
    }
    for (let node = 1; node <= SERVER; node++) {
      await chain.exec(node, [
        "sh",
        "-c",
        `${forward}; for file in /proc/sys/net/ipv6/icmp/ratelimit; do echo 0 > $file; done
         for file in /proc/sys/net/ipv6/neigh/*/retrans_time_ms; do echo 50 > $file; done`,
      ]);
      await batch(node, [
        `addr add ${far(node)}/24 dev uplink`,
        `route add default via ${near(node)}`,
        ...(node < SERVER
          ? [
              `addr add ${near(node + 1)}/24 dev downlink`,
              `route add 192.0.2.0/24 via ${far(node + 1)}`,
              `route add ${site} via ${linkOf(node + 1)}`,
              ...(node === ROUTERS ? ["route add 2001:db8:5:fffe::/64 dev downlink"] : []),
              ...(tables[node] ?? []),
            ]
          : [
              `route add blackhole ${site}`,
              "route add blackhole 192.0.2.0/24",
              ...names.flatMap((name) => [
                ...live4Of(name).map((ip) => `addr add ${ip}/32 dev lo`),
                ...aliveOf(name).map((ip) => `addr add ${ip}/128 dev lo nodad`),
                ...backendsOf(name).map(({ ip }) => `addr add ${ip}/128 dev lo nodad`),
              ]),
            ]),
      ]);
    }
  }

  function rulesOf(node: number): readonly string[] {
    return names.flatMap((name) => ipsOf(name).flatMap((ip) => site(name).rules?.(ip)[node] ?? []));
  }

  /** Rules that give each connection to the next server behind an address. */
  function balancing(): readonly string[] {
    return names.flatMap((name) => {
      const backends = backendsOf(name);
      if (backends.length === 0) return [];
      const map = backends.map(({ ip }, at) => `${at} : ${ip}`).join(", ");
      const to = `dnat to numgen inc mod ${backends.length} map { ${map} }`;
      const rule = `ip6 daddr ${ipsOf(name)[0]} tcp dport { 80, 443 }`;
      // Bare SYNs are counted for themselves, so that every fourth connection meets the fourth server.
      return [`${rule} tcp doff 6 ${to}`, `${rule} ${to}`];
    });
  }

  async function renew(name: string) {
    // This machine has learned how large packets may be, and would tell the server at once.
    await run(["ip", "-6", "route", "flush", "cache"]);
    for (const ip of ipsOf(name)) {
      const isAbout = new RegExp(` ${ip} .*# handle (\\d+)$`, "gm");
      for (const [at, rules] of Object.entries(site(name).rules?.(ip) ?? {})) {
        const [node, hook] = [Number(at), hookOf(Number(at))];
        const listed = await chain.exec(node, ["nft", "-a", "list", "chain", "ip6", "lab", hook]);
        const handles = Array.from(listed.matchAll(isAbout), ([, handle]) => handle);
        const lines = rules.map(
          (rule, index) => `replace rule ip6 lab ${hook} handle ${handles[index]} ${rule}`,
        );
        await chain.exec(node, ["nft", "-f", "-"], `${lines.join("\n")}\n`);
      }
    }
  }

  async function setRules(node: number) {
    const chainOf = (hook: string, rules: readonly string[]) =>
      [`chain ${hook} {`, `type filter hook ${hook} priority 0;`, ...rules, "}"].join("\n");
    const vanish = "icmpv6 type packet-too-big drop";
    // Their answers vanish, and not what they get: who is forgotten may meet another server with the next SYN.
    const silent = names.flatMap((name) =>
      backendsOf(name).flatMap(({ ip, kind }) => (kind === "silent" ? `ip6 saddr ${ip} drop` : [])),
    );
    const isNarrow = names.some((name) => site(name).narrow?.at === node && node === ROUTERS);
    const text = [
      "flush ruleset",
      "table ip6 lab {",
      chainOf(hookOf(node), rulesOf(node)),
      chainOf("output", [...(isNarrow ? [vanish] : []), ...(node === SERVER ? silent : [])]),
      ...(node === SERVER
        ? ["chain balance {", "type nat hook prerouting priority dstnat;", ...balancing(), "}"]
        : []),
      "}",
    ].join("\n");
    await chain.exec(node, ["nft", "-f", "-"], `${text}\n`);
  }

  function spawnInside(command: readonly string[]) {
    const child = Bun.spawn(chain.inside(SERVER, command), {
      env: labEnvironment,
      stdout: "pipe",
      stderr: "pipe",
    });
    stack.defer(async () => {
      child.kill();
      await child.exited;
    });
    return child;
  }

  async function startNginx() {
    const servers = names.flatMap((name) => {
      const {
        server = "web",
        certificate = "good",
        certificate6 = certificate,
        answer = "return 200 ok;",
        answer6,
        more = "",
      } = site(name);
      if (server !== "web" && server !== "plain") return [];
      const tls = server === "web" ? " ssl" : "";
      const listen = (ip: string) => `listen ${ip}:80; listen ${ip}:443${tls};`;
      const block = (lines: string, said: string, kind: CertificateKind) =>
        `server { ${lines} server_name ${nameOf(name)}; ${certificateLines(folder, kind)} ${more} location / { ${said} } }`;
      const six = aliveOf(name).map((ip) => listen(`[${ip}]`));
      const four = live4Of(name).map(listen);
      const behind = backendsOf(name).filter(({ kind }) => kind !== "refuses");
      return [
        ...six.map((line) => block(line, answer6 ?? answer, certificate6)),
        ...four.map((line) => block(line, answer, certificate)),
        ...behind.map(({ ip, kind }) =>
          block(
            listen(`[${ip}]`),
            kind === "fails" ? "return 500;" : answer,
            kind === "well" || kind === "silent" || kind === "fails"
              ? certificate
              : (kind as CertificateKind),
          ),
        ),
      ];
    });
    const file = join(folder, "nginx.conf");
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
      .join(" ");
    await Bun.write(
      file,
      `user root root; daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events {}
http { access_log ${folder}/access.log; ${temporary} server_names_hash_bucket_size 128;
proxy_read_timeout 60s; proxy_buffering off; limit_req_zone $server_addr zone=few:1m rate=1r/m;
${servers.join("\n")}
}`,
    );
    await chain.exec(SERVER, [findProgram("nginx") ?? "", "-t", "-q", "-c", file]);
    spawnInside([findProgram("nginx") ?? "", "-c", file]);
    // It writes this when it listens everywhere; other servers listen on the same ports.
    const probe = `until [ -s ${folder}/nginx.pid ]; do sleep 0.02; done`;
    await chain.exec(SERVER, ["timeout", "30", "sh", "-c", probe]);
  }

  async function startOddServers() {
    const words = names.flatMap((name) => {
      const { server = "web" } = site(name);
      if (server === "web" || server === "plain" || server === "none") return [];
      const port = server === "ssh" ? ["22", "80", "443"] : ["443"];
      const kind = server === "h2" ? `h2:${join(folder, "good")}` : server;
      return [...aliveOf(name), ...live4Of(name)].flatMap((ip) =>
        port.flatMap((each) => [ip, each, kind]),
      );
    });
    const child = spawnInside([
      process.execPath,
      join(import.meta.dir, "../../lab/odd-servers.ts"),
      ...["127.0.0.1", "9", "tarpit", "127.0.0.1", "10", "stalls", "127.0.0.1", "11", "cuts"],
      ...words,
    ]);
    const { value } = await child.stdout.getReader().read();
    if (value === undefined)
      throw new Error(`odd servers: ${await new Response(child.stderr).text()}`);
  }

  /** A translator (NAT64) in this namespace. */
  async function startTranslator() {
    const file = join(folder, "tayga.conf");
    await mkdir(join(folder, "tayga"));
    await Bun.write(
      file,
      `tun-device nat64\nipv4-addr 192.168.255.1\nipv6-addr 2001:db8:1::ffff\nprefix ${NAT64}
dynamic-pool 192.168.255.0/24\ndata-dir ${folder}/tayga\n`,
    );
    const tayga = [findProgram("tayga") as string, "--config", file];
    await run([...tayga, "--mktun"]);
    stack.defer(async () => void (await run([...tayga, "--rmtun"])));
    await run(["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    await run(["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
    await runIp(["link set nat64 up"]);
    const translator = Bun.spawn([...tayga, "--nodetach"], {
      env: labEnvironment,
      stdout: "ignore",
      stderr: "ignore",
    });
    stack.defer(async () => {
      translator.kill();
      await translator.exited;
    });
    await run(["sh", "-c", awaitLink("nat64")]);
    await runIp([
      "addr add 2001:db8:1::1/128 dev nat64 nodad",
      `route add ${NAT64} dev nat64 src 2001:db8:1::1`,
      "route add 192.168.255.0/24 dev nat64",
    ]);
  }

  /** Packets to far sites leave through this process, which keeps each for a while. */
  async function startFarWay() {
    const far = names.filter((name) => site(name).isFar);
    if (far.length === 0) return;
    const tun = openTun("far");
    const site5 = "2001:db8:5::/48";
    await run(["sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]);
    await runIp([
      "link set far up",
      ...far.map((name) => `route add ${prefixOf(name)}/64 dev far src ${chain.source}`),
      `route add ${site5} via ${chain.hops[0]} table 77`,
    ]);
    await run(["ip", "-6", "rule", "add", "iif", "far", "lookup", "77"]);
    const buffer = new Uint8Array(2048);
    const relay = setInterval(() => {
      for (;;) {
        let packet: Uint8Array;
        try {
          packet = buffer.slice(0, readSync(tun, buffer));
        } catch {
          return;
        }
        // The kernel takes one when it forwards it.
        packet[7] = (packet[7] ?? 0) + 1;
        setTimeout(() => writeSync(tun, packet), FAR_MS);
      }
    }, 1);
    stack.defer(() => {
      clearInterval(relay);
      closeSync(tun);
    });
  }

  const settings = (resolvers: Resolvers) => {
    const [first, second, third] = RESOLVERS[resolvers];
    return {
      SIXSCOPE_RESOLVER_A: first,
      SIXSCOPE_RESOLVER_B: second,
      SIXSCOPE_RESOLVER_C: third,
      SIXSCOPE_TRUST_ANCHORS: anchorsFile,
      ...(resolvers !== "any-target" && {
        SIXSCOPE_TARGETS: "global",
        SIXSCOPE_TARGETS_ALLOW: "2001:db8::/32,2001:db9::/32,192.0.2.0/24",
      }),
      ...(resolvers !== "few-ports" && { SIXSCOPE_PROBE_PORTS: "any" }),
      SIXSCOPE_RATE_KEY: "100000",
      NODE_EXTRA_CA_CERTS: authorityFile,
    };
  };
  const startWarm = async (resolvers: Resolvers) => {
    const service = await startService(
      settings(resolvers),
      resolvers === "no-raw" ? WITHOUT_RAW : [],
    );
    // The first answer does not wait for the resolver's prefix.
    const isKnown = async () =>
      (await (await fetch(`${service.url}/dns/${translated}`)).text()).includes(`"dns64"`);
    while (resolvers === "dns64" && !(await isKnown())) await Bun.sleep(20);
    return service;
  };
  const translated = names.filter((name) => site(name).ipv6 === 0).map(nameOf)[0];
  const services = new Map<Resolvers, Promise<Service>>();
  stack.defer(async () => {
    for (const service of services.values()) await (await service)[Symbol.asyncDispose]();
  });
  return {
    nameOf,
    ipsOf,
    renew,
    routers: chain.hops.slice(0, ROUTERS),
    service(resolvers) {
      const started = services.get(resolvers) ?? startWarm(resolvers);
      services.set(resolvers, started);
      return started;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
