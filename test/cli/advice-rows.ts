/** A mistake of an operator, and what doctor must say of it. */
export interface AdviceRow {
  readonly name: string;
  /** The shell commands that make it. */
  readonly make: string;
  /** The line of doctor that shows it, as an extended regular expression. */
  readonly finds: string;
  /** Sentences of that line, and the commands with which an operator does what they say. */
  readonly advises?: string;
  readonly does?: string;
  /** True for a mistake that a container cannot correct. */
  readonly isWhole?: true;
  /** True for the rows of the quick tests, one of each kind. */
  readonly isQuick?: true;
  /** Where the service answers afterwards. */
  readonly base?: string;
}

const ENV = "/etc/sixscope/sixscope.env";
const KEYS = "/var/lib/sixscope/keys.json";
const set = (...lines: string[]) =>
  `printf '%s\\n' ${lines.map((line) => `'${line}'`).join(" ")} >> ${ENV}; systemctl restart sixscope || true`;
const TLS = `mkdir -p /etc/pair /root/new; certificate /etc/pair; certificate /root/new
  ${set("SIXSCOPE_TLS_CERT=/etc/pair/cert.pem", "SIXSCOPE_TLS_KEY=/etc/pair/key.pem")}`;
const RESTART = "systemctl restart sixscope";
/** Changes a setting by hand. */
const edit = (name: string, value: string) =>
  `sed -i 's|^${name}=.*|${name}=${value}|' ${ENV}; ${RESTART}`;
const IN_FILE = "in /etc/sixscope/sixscope.env, then restart the service";
const RENEW = `for name in cert key; do install -m 0640 -g sixscope /root/new/$name.pem /etc/pair/$name.pem; done; ${RESTART}`;
const HTTPS = "https://[::1]:8080";
const NFT = (rule: string) =>
  `nft add table inet lab; nft 'add chain inet lab ${rule.split(" ")[0]} { type filter hook ${rule.split(" ")[0]} priority 0; }'; nft add rule inet lab ${rule}`;

export const ADVICE_ROWS: readonly AdviceRow[] = [
  {
    name: "the keys file is unreadable",
    isQuick: true,
    make: `chown root: ${KEYS}`,
    finds: "^problem .*cannot read the keys file.*EACCES",
  },
  {
    name: "a typing error in the name of a setting",
    make: set("SIXSCOPE_RATE_KEYS=5000"),
    finds: "^problem .*line 5 of .*did you mean SIXSCOPE_RATE_KEY[?]",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: `sed -Ei "s/^SIXSCOPE?_RATE_KEYS?=/SIXSCOPE_RATE_KEY=/" ${ENV}; ${RESTART}`,
  },
  {
    name: "export in front of a setting",
    isQuick: true,
    make: set("export SIXSCOPE_RATE_KEY=5000"),
    finds: "^problem .*line 5 of .*systemd ignores it",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: `sed -i 5d ${ENV}; ${RESTART}`,
  },
  {
    name: "a colon in place of the equals sign",
    make: set("SIXSCOPE_RATE_KEY: 5000"),
    finds: "^problem .*line 5 of .*systemd ignores it",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: `sed -i 5d ${ENV}; ${RESTART}`,
  },
  {
    name: "a line that is no setting",
    make: set("these are my settings"),
    finds: "^problem .*line 5 of .*systemd ignores it",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: `sed -i 5d ${ENV}; ${RESTART}`,
  },
  {
    name: "a policy that does not exist",
    make: set("SIXSCOPE_TARGETS=private"),
    finds: "^problem .*SIXSCOPE_TARGETS=.private.: must be any or global",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: edit("SIXSCOPE_TARGETS", "any"),
  },
  {
    name: "a denied prefix that is not one",
    make: set("SIXSCOPE_TARGETS_DENY=10.0.0.0/33"),
    finds: "^problem .*SIXSCOPE_TARGETS_DENY=.* must be",
    advises: "correct it in /etc/sixscope/sixscope.env",
    does: edit("SIXSCOPE_TARGETS_DENY", "10.0.0.0/8"),
  },
  {
    name: "a certificate with another key",
    make: `${TLS}; cp /root/new/key.pem /etc/pair/key.pem; chgrp sixscope /etc/pair/key.pem; systemctl restart sixscope`,
    finds: "^problem .*does not belong to the certificate",
    base: HTTPS,
    advises: "put a certificate at /etc/pair/cert.pem and its own key at /etc/pair/key.pem",
    does: RENEW,
  },
  {
    name: "a certificate that has expired",
    isQuick: true,
    make: `${TLS}; expired /etc/pair; systemctl restart sixscope`,
    finds: "^problem .*the certificate expired at 2020-02-01",
    base: HTTPS,
    advises: "put a certificate at /etc/pair/cert.pem and its own key at /etc/pair/key.pem",
    does: RENEW,
  },
  {
    name: "a key that every user can read",
    make: `${TLS}; chmod 644 /etc/pair/key.pem; chgrp root /etc/pair/key.pem`,
    finds: "^warning .*see who can read /etc/pair/key.pem",
    base: HTTPS,
    advises: "make its group sixscope and its mode 640",
    does: "chgrp sixscope /etc/pair/key.pem; chmod 640 /etc/pair/key.pem",
  },
  {
    name: "a certificate and key that the service cannot read",
    make: `${TLS}; chgrp root /etc/pair/*; chmod 600 /etc/pair/*`,
    finds: "^problem .*cannot read the certificate.*EACCES",
    base: HTTPS,
    advises: "let sixscope read it and enter its folder: make its group sixscope and its mode 640",
    does: `chgrp sixscope /etc/pair/*; chmod 640 /etc/pair/*; ${RESTART}`,
  },
  {
    name: "secrets in a file that every user can read",
    make: `${set("SIXSCOPE_KEY=sx_secret")}; chmod 644 ${ENV}`,
    finds: "^warning .*see who can read /etc/sixscope/sixscope.env",
    advises: "make its group root and its mode 640",
    does: `chgrp root ${ENV}; chmod 640 ${ENV}`,
  },
  {
    name: "metrics for every machine",
    make: set("SIXSCOPE_METRICS_LISTEN=[::]:9090"),
    finds: "^warning .*may read metrics and probe without a key",
    advises: `listen on localhost.*SIXSCOPE_METRICS_LISTEN ${IN_FILE}`,
    does: edit("SIXSCOPE_METRICS_LISTEN", "localhost:9090"),
  },
  {
    name: "a public listener and any target",
    make: `${TLS}; ${set("SIXSCOPE_LISTEN=[::]:8080", "SIXSCOPE_TARGETS_ALLOW=::1")}`,
    finds: "^warning .*holders of keys may probe private networks",
    base: HTTPS,
    advises: `set SIXSCOPE_TARGETS=global, or deny your networks: SIXSCOPE_TARGETS ${IN_FILE}`,
    does: `echo SIXSCOPE_TARGETS=global >> ${ENV}; ${RESTART}`,
  },
  {
    name: "probes for the whole Internet without a key",
    make: set("SIXSCOPE_KEYLESS_FROM=::/0,10.0.0.0/8"),
    finds: "^warning .*::/0 is not a network but the Internet",
    advises: `name only your own networks: SIXSCOPE_KEYLESS_FROM ${IN_FILE}`,
    does: edit("SIXSCOPE_KEYLESS_FROM", "10.0.0.0/8"),
  },
  {
    name: "ICMPv6 dropped on its way out",
    isQuick: true,
    make: NFT("output icmpv6 type nd-router-solicit drop"),
    finds: "^problem .*what the firewall drops: .*type 133. on its way out",
    advises: "Accept it as RFC 4890 says",
    does: "nft delete table inet lab",
  },
  {
    name: "IPv6 is disabled",
    isWhole: true,
    make: "echo 1 > /proc/sys/net/ipv6/conf/uplink/keep_addr_on_down; sysctl -qw net.ipv6.conf.all.disable_ipv6=1",
    finds: "^problem .*disable_ipv6 is 1",
    advises: "net.ipv6.conf.all.disable_ipv6 is 1. Set it to 0",
    does: "sysctl -qw net.ipv6.conf.all.disable_ipv6=0",
  },
  {
    name: "no CAP_NET_RAW",
    isWhole: true,
    make: `mkdir -p /etc/systemd/system/sixscope.service.d
      printf '[Service]\\nAmbientCapabilities=\\n' > /etc/systemd/system/sixscope.service.d/none.conf
      systemctl daemon-reload; systemctl restart sixscope`,
    finds: "^problem .*can probe",
    advises:
      "systemctl edit sixscope, and under .Service. set AmbientCapabilities= and CapabilityBoundingSet=",
    does: `printf '[Service]\\nAmbientCapabilities=CAP_NET_RAW CAP_NET_BIND_SERVICE\\nCapabilityBoundingSet=CAP_NET_RAW CAP_NET_BIND_SERVICE\\n' > /etc/systemd/system/sixscope.service.d/override.conf
      rm /etc/systemd/system/sixscope.service.d/none.conf; systemctl daemon-reload; ${RESTART}`,
  },
  {
    name: "a wrong password of Valkey",
    make: `: > /run/valkey; redis-server --bind ::1 --port 6391 --requirepass right --save '' > /run/valkey 2>&1 & SERVERS=$!
      until grep -q 'Ready to accept' /run/valkey; do sleep 0.02; done
      echo SIXSCOPE_VALKEY_URL='valkey://:right@[::1]:6391' >> ${ENV}; sixscope keys import > /dev/null
      sed -i 's/:right@/:wrong@/' ${ENV}; chmod 640 ${ENV}; systemctl restart sixscope`,
    finds: "^problem .*read the keys in valkey",
    advises: `SIXSCOPE_VALKEY_URL ${IN_FILE}`,
    does: edit("SIXSCOPE_VALKEY_URL", "valkey://:right@[::1]:6391"),
  },
  {
    name: "credentials of NATS that every user can read",
    isQuick: true,
    make: `: > /run/nats; nats-server -a ::1 -p 4333 > /run/nats 2>&1 & SERVERS=$!
      until grep -q 'Server is ready' /run/nats; do sleep 0.02; done
      sixscope agent --new-key /etc/sixscope/nats.nk > /dev/null; chmod 644 /etc/sixscope/nats.nk
      ${set("SIXSCOPE_NATS_URL=nats://[::1]:4333", "SIXSCOPE_NATS_CREDS=/etc/sixscope/nats.nk", "SIXSCOPE_LOCATION=ams")}`,
    finds: "^(warning .*see who can read /etc/sixscope/nats.nk|problem .*connect to NATS)",
    advises: "make its group sixscope and its mode 640",
    does: `chgrp sixscope /etc/sixscope/nats.nk; chmod 640 /etc/sixscope/nats.nk; ${RESTART}`,
  },
  {
    name: "a resolver that is dead",
    make: `$BUN $TESTS/lab/root-server.ts > /run/dns & SERVERS=$!
      until test -s /run/dns; do sleep 0.02; done`,
    finds: "^problem .*resolver_b over IPv6",
    advises: `SIXSCOPE_RESOLVER_B ${IN_FILE}`,
    does: edit("SIXSCOPE_RESOLVER_B", "[::1]:5300"),
  },
  {
    name: "a resolver over TLS that is not trusted",
    make: `mkdir -p /etc/pair; certificate /etc/pair; chmod 644 /etc/pair/cert.pem
      $BUN $TESTS/lab/root-server.ts /etc/pair > /run/dns & SERVERS=$!
      until test -s /run/dns; do sleep 0.02; done
      ${set("SIXSCOPE_RESOLVER_B=tls://[::1]:5301#x")}`,
    finds: "^problem .*resolver_b over IPv6",
    advises: "set NODE_EXTRA_CA_CERTS to the PEM file of its certificate.s authority",
    does: `echo NODE_EXTRA_CA_CERTS=/etc/pair/cert.pem >> ${ENV}; ${RESTART}`,
  },
];

/** Shell functions that make certificates, and judge. */
const JUDGE = `
  certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days "\${2:-60}" -subj /CN=x \\
      -keyout "$1/key.pem" -out "$1/cert.pem" 2> /dev/null
    chgrp sixscope "$1"/*.pem; chmod 640 "$1"/*.pem
  }
  # Signs the key again, for a month that has passed.
  expired() {
    mkdir -p /run/ca; : > /run/ca/index
    printf '%s\\n' '[ca]' 'default_ca=x' '[x]' database=/run/ca/index new_certs_dir=/run/ca rand_serial=yes policy=p \\
      '[p]' commonName=supplied > /run/ca/config
    openssl req -new -key "$1/key.pem" -subj /CN=x -out /run/ca/request
    openssl ca -batch -selfsign -notext -config /run/ca/config -md sha256 -keyfile "$1/key.pem" \\
      -startdate 20200101000000Z -enddate 20200201000000Z -in /run/ca/request -out "$1/cert.pem" 2> /run/ca/log
  }
  doctor() { sixscope doctor > /run/said 2>&1 || true; }
  ended() {
    kill $(cat /run/pid 2> /dev/null) $SERVERS 2> /dev/null || true
    wait 2> /dev/null || true
  }
  trap ended EXIT
  works() {
    $BUN -e 'const [base, key] = process.argv.slice(1);
      for (let round = 0; round < 100; round++) {
        const response = await fetch(base + "/ping/::1?count=1", { headers: { "X-API-Key": key }, tls: { rejectUnauthorized: false } }).catch(() => null);
        if (response?.status === 200) process.exit(0);
        await Bun.sleep(50);
      }
      process.exit(1)' "\${BASE:-http://[::1]:8080}/api/v1" "$KEY"
  }
`;

/**
 * The script of a row: it does what doctor says, a command word by word and a sentence by hand. It prints
 * `done`, or why the advice is wrong. It needs the variables BUN and TESTS, the path of the tests.
 */
export function adviceScript({
  make,
  finds,
  advises = "run: ",
  does = "",
  base,
}: AdviceRow): string {
  return `${JUDGE}
    systemctl restart sixscope
    KEY=$(sixscope keys add me | head -n 1)
    sixscope keys add other > /dev/null
    ${base === undefined ? "" : `BASE='${base}'`}
    ${make}
    doctor
    grep -E '${finds}' /run/said > /run/found || { echo "NOT FOUND"; cat /run/said /run/log 2> /dev/null; exit 1; }
    grep -qE '${advises}' /run/found || { echo "NO ADVICE"; cat /run/found; exit 1; }
    sed -n 's/.*; run: //p' /run/found | head -n 1 > /run/advice
    # From source, the program has a longer name; the operator fills in what only they know.
    sed -i 's/bun run sixscope/sixscope/; s/ NAME$/ fresh/' /run/advice
    cd /root
    by_hand() { ${does || ":"}
    }
    { sh -e /run/advice && by_hand; } > /run/ran 2>&1 || { echo "FAILED"; cat /run/advice /run/ran /run/log 2> /dev/null; exit 1; }
    doctor
    if grep -E '${finds}' /run/said; then echo "FOUND AGAIN"; cat /run/advice /run/log 2> /dev/null; exit 1; fi
    works || { echo "LOST"; cat /run/said /run/log 2> /dev/null; exit 1; }
    sixscope keys list > /run/keys
    for name in me other; do grep -q "^$name *active" /run/keys || { echo "KEY LOST"; exit 1; }; done
    echo done`;
}
