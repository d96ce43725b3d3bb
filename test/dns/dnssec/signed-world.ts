import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { ChainOptions, TrustAnchor } from "../../../src/dns/dnssec/chain.ts";
import type { Reply } from "../../../src/dns/dnssec/record-set.ts";
import { encodeName } from "../../../src/dns/message/name.ts";
import { type RecordType, typeCode } from "../../../src/dns/message/record.ts";
import { encodeData } from "../messages.ts";

/*
 * Zones that the test signs itself, and a resolver before them that checks nothing. Nothing here uses the
 * code that it tests, except for encoding names and record data.
 */

/** A record of class IN. */
export interface TestRecord {
  readonly owner: string;
  readonly type: number;
  readonly data: Uint8Array;
  /** Seconds in the reply, by default the 300 that are signed. */
  readonly ttl?: number;
}

/** A reply before it is encoded; a test may change it. */
export interface TestReply {
  rcode: "NOERROR" | "NXDOMAIN";
  answers: TestRecord[];
  authority: TestRecord[];
}

/** How a zone is made; the rest follows from it. */
export interface ZoneOptions {
  readonly name: string;
  /** `www AAAA 2001:db8::1` each. */
  readonly records?: readonly string[];
  /** Null for a zone that is not signed. */
  readonly algorithm?: number | null;
  readonly denial?: "nsec" | "nsec3" | "opt-out";
  readonly iterations?: number;
  readonly salt?: string;
  /** Seconds from now. */
  readonly inception?: number;
  readonly expires?: number;
  /** Digest types of its DS records; none for an island of security. */
  readonly digests?: readonly number[];
}

const DAY = 86_400;
const TYPE = {
  NS: 2,
  CNAME: 5,
  SOA: 6,
  MX: 15,
  DNAME: 39,
  DS: 43,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
};
const HASHES: Readonly<Record<number, string>> = {
  8: "sha256",
  10: "sha512",
  13: "sha256",
  14: "sha384",
};

const number = (value: number, bytes: number) => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
};

/** The number of a type by its name, also of those that the interface does not name. */
const codeOf = (type: string) => TYPE[type as keyof typeof TYPE] ?? typeCode(type as RecordType);

/** The keys of a test run by their ids, each with a tag that no other has. */
const keys = new Map<string, TestKey>();
const tags = new Set<number>();

function makePair(algorithm: number) {
  if (algorithm === 13 || algorithm === 14) {
    return generateKeyPairSync("ec", { namedCurve: algorithm === 13 ? "P-256" : "P-384" });
  }
  if (algorithm === 8 || algorithm === 10) {
    return generateKeyPairSync("rsa", { modulusLength: 1024 });
  }
  return generateKeyPairSync("ed25519");
}

/** A key that is made once for a test run. */
export function keyOf(id: string, algorithm: number, flags: number): TestKey {
  return keys.getOrInsertComputed(`${id} ${algorithm} ${flags}`, () => {
    let key = new TestKey(algorithm, flags);
    while (tags.has(key.tag)) key = new TestKey(algorithm, flags);
    tags.add(key.tag);
    return key;
  });
}

/** A key of a zone and the signatures that it makes. */
export class TestKey {
  readonly algorithm: number;
  readonly data: Buffer;
  readonly tag: number;
  readonly #privateKey: KeyObject;

  constructor(algorithm: number, flags: number) {
    const { publicKey, privateKey } = makePair(algorithm);
    const { n = "", e = "", x = "", y = "" } = publicKey.export({ format: "jwk" });
    const parts = n === "" ? [x, y ?? ""] : [e, n];
    const bytes = parts.map((part) => Buffer.from(part ?? "", "base64url"));
    const key = n === "" ? bytes : [number(bytes[0]?.length ?? 0, 1), ...bytes];
    this.algorithm = algorithm;
    this.#privateKey = privateKey;
    this.data = Buffer.concat([number(flags, 2), number(3, 1), number(algorithm, 1), ...key]);
    let sum = 0;
    for (let at = 0; at < this.data.length; at += 2) {
      sum +=
        this.data.subarray(at, at + 2).length === 2
          ? this.data.readUInt16BE(at)
          : (this.data[at] ?? 0) << 8;
    }
    this.tag = (sum + (sum >> 16)) & 0xffff;
  }

  sign(data: Buffer): Buffer {
    const hash = HASHES[this.algorithm] ?? null;
    return sign(hash, data, { key: this.#privateKey, dsaEncoding: "ieee-p1363" });
  }

  ds(zone: string, digestType: number): Buffer {
    const hash = { 1: "sha1", 2: "sha256", 4: "sha384" }[digestType] ?? "sha256";
    const digest = createHash(hash).update(encodeName(zone)).update(this.data).digest();
    return Buffer.concat([
      number(this.tag, 2),
      number(this.algorithm, 1),
      number(digestType, 1),
      digest,
    ]);
  }
}

/** The fields of a signature that differ from what is right. */
export interface SignatureChange {
  readonly key?: TestKey;
  readonly inception?: number;
  readonly expires?: number;
  readonly labels?: number;
  readonly signer?: string;
  readonly originalTtl?: number;
}

const unescaped = (name: string) => name.replaceAll(/\\./g, "x");
const reversed = (name: string) => unescaped(name).split(".").reverse().join("\0");
const parent = (name: string) => name.slice(name.indexOf(".") + 1) || ".";
const within = (name: string, zone: string) =>
  zone === "." || name === zone || name.endsWith(`.${zone}`);
const wildcard = (name: string) => (name === "." ? "*." : `*.${name}`);
const labelCount = (name: string) =>
  unescaped(name)
    .split(".")
    .filter((label) => label !== "" && label !== "*").length;

/** A zone with its keys. */
export class TestZone {
  readonly options: Required<ZoneOptions>;
  readonly name: string;
  readonly ksk: TestKey;
  readonly zsk: TestKey;
  records: TestRecord[];
  readonly #now: number;

  constructor(options: ZoneOptions, now: number) {
    this.options = {
      ...{ records: [], algorithm: 13, denial: "nsec", iterations: 0, salt: "" },
      ...{ inception: -DAY, expires: 10 * DAY, digests: [2] },
      ...options,
    };
    this.name = options.name;
    this.#now = now;
    const algorithm = this.options.algorithm ?? 13;
    this.ksk = keyOf(`${this.name} ksk`, algorithm, 257);
    this.zsk = keyOf(`${this.name} zsk`, algorithm, 256);
    const base = ["@ SOA ns.invalid. admin.invalid. 1 2 3 4 300", "@ NS ns.invalid."];
    this.records = [...base, ...this.options.records].map((line) => {
      const [owner = "", type = "", ...value] = line.split(" ");
      const name =
        owner === "@"
          ? this.name
          : owner.endsWith(".")
            ? owner
            : this.name === "."
              ? `${owner}.`
              : `${owner}.${this.name}`;
      const code = codeOf(type);
      const data =
        code === TYPE.DNAME
          ? encodeName(value[0] ?? "")
          : encodeData(type as RecordType, value.join(" "));
      return { owner: name, type: code, data };
    });
    if (this.isSigned)
      this.records.push(...[this.ksk, this.zsk].map(({ data }) => this.record("DNSKEY", data)));
  }

  get isSigned(): boolean {
    return this.options.algorithm !== null;
  }

  record(type: keyof typeof TYPE, data: Uint8Array, owner = this.name): TestRecord {
    return { owner, type: TYPE[type], data };
  }

  /** The RRSIG record of a set. */
  signatureOf(set: readonly TestRecord[], change: SignatureChange = {}): TestRecord {
    const [{ owner, type } = { owner: "", type: 0 }] = set;
    const { inception, expires } = this.options;
    const key = change.key ?? (type === TYPE.DNSKEY ? this.ksk : this.zsk);
    const signedOwner = owner.toLowerCase();
    const labels = change.labels ?? labelCount(signedOwner);
    const header = Buffer.concat([
      ...[number(type, 2), number(key.algorithm, 1), number(labels, 1)],
      ...[
        number(change.originalTtl ?? 300, 4),
        number((this.#now + (change.expires ?? expires)) % 2 ** 32, 4),
      ],
      ...[number((this.#now + (change.inception ?? inception)) % 2 ** 32, 4), number(key.tag, 2)],
      encodeName(change.signer ?? this.name),
    ]);
    const name = encodeName(signedOwner);
    // The letters of a name in the data are signed in lower case, and no test has others in MX data.
    const lower = (data: Uint8Array) =>
      data.map((byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte));
    const sorted = set
      .map(({ data }) => (type === TYPE.MX ? lower(data) : data))
      .sort(Buffer.compare);
    const rows = sorted.map((data) =>
      Buffer.concat([
        name,
        number(type, 2),
        number(1, 2),
        number(300, 4),
        number(data.length, 2),
        data,
      ]),
    );
    return this.record(
      "RRSIG",
      Buffer.concat([header, key.sign(Buffer.concat([header, ...rows]))]),
      owner,
    );
  }

  /** Records with their signatures, if the zone is signed. */
  signed(set: readonly TestRecord[], change?: SignatureChange): TestRecord[] {
    return this.isSigned && set.length > 0 ? [...set, this.signatureOf(set, change)] : [...set];
  }

  set(owner: string, type: number): TestRecord[] {
    return this.records.filter((record) => record.owner === owner && record.type === type);
  }

  /** Names with records, and those between them and the zone. */
  exists(name: string): boolean {
    return this.records.some(({ owner }) => within(owner, name));
  }

  #types(name: string): number[] {
    const types = this.records.filter(({ owner }) => owner === name).map(({ type }) => type);
    const isUnsigned = types.includes(TYPE.NS) && name !== this.name && !types.includes(TYPE.DS);
    const denial =
      this.options.denial === "nsec"
        ? [TYPE.NSEC, TYPE.RRSIG]
        : isUnsigned || types.length === 0
          ? []
          : [TYPE.RRSIG];
    return [...new Set([...types, ...denial])].sort((a, b) => a - b);
  }

  /** The NSEC or NSEC3 chain: the hash or name of each owner, and its record. */
  #chain(): { key: string; owner: string; record: TestRecord }[] {
    const { denial, salt, iterations } = this.options;
    const names = new Set(this.records.map(({ owner }) => owner));
    if (denial === "nsec") {
      const sorted = [...names].sort((a, b) => (reversed(a) < reversed(b) ? -1 : 1));
      return sorted.map((owner, at) => {
        const next = encodeName(sorted[(at + 1) % sorted.length] ?? "");
        const data = Buffer.concat([next, bitmap(this.#types(owner))]);
        return { key: reversed(owner), owner, record: this.record("NSEC", data, owner) };
      });
    }
    for (const name of [...names]) {
      for (let above = name; within(above, this.name); above = parent(above)) {
        names.add(above);
        if (above === this.name || above === ".") break;
      }
    }
    const isLeftOut = (name: string) =>
      denial === "opt-out" &&
      name !== this.name &&
      this.set(name, TYPE.NS).length > 0 &&
      this.set(name, TYPE.DS).length === 0;
    const hashed = [...names]
      .filter((name) => !isLeftOut(name))
      .map((name) => ({ name, hash: this.hash(name) }));
    hashed.sort((a, b) => (a.hash < b.hash ? -1 : 1));
    return hashed.map(({ name, hash }, at) => {
      const next = Buffer.from(base32ToHex(hashed[(at + 1) % hashed.length]?.hash ?? ""), "hex");
      const saltBytes = Buffer.from(salt, "hex");
      const data = Buffer.concat([
        ...[number(1, 1), number(denial === "opt-out" ? 1 : 0, 1), number(iterations, 2)],
        ...[number(saltBytes.length, 1), saltBytes, number(20, 1), next, bitmap(this.#types(name))],
      ]);
      const owner = this.name === "." ? `${hash}.` : `${hash}.${this.name}`;
      return { key: hash, owner: name, record: this.record("NSEC3", data, owner) };
    });
  }

  /** RFC 5155 section 5, in base32hex. */
  hash(name: string): string {
    let digest: Uint8Array = encodeName(name);
    for (let round = 0; round <= this.options.iterations; round++) {
      digest = createHash("sha1")
        .update(digest)
        .update(Buffer.from(this.options.salt, "hex"))
        .digest();
    }
    return BigInt(`0x${Buffer.from(digest).toString("hex")}`)
      .toString(32)
      .padStart(32, "0");
  }

  /** The signed record of a name, or the one before it in the chain. */
  denial(name: string): TestRecord[] {
    const chain = this.#chain();
    const key = this.options.denial === "nsec" ? reversed(name) : this.hash(name);
    const found = chain.findLast((each) => each.key <= key) ?? chain.at(-1);
    return found === undefined ? [] : this.signed([found.record]);
  }

  /** The proof that a name does not exist, or has no record of the type. */
  proof(name: string, isNameError: boolean): TestRecord[] {
    if (!this.isSigned) return [];
    let encloser = name;
    while (!this.exists(encloser)) encloser = parent(encloser);
    const child = (ancestor: string) => {
      let nextCloser = name;
      while (parent(nextCloser) !== ancestor) nextCloser = parent(nextCloser);
      return nextCloser;
    };
    if (this.options.denial === "nsec") {
      const names = isNameError ? [name, wildcard(encloser)] : [name];
      return unique(names.flatMap((each) => this.denial(each)));
    }
    const isLeftOut =
      this.options.denial === "opt-out" && !this.#chain().some(({ owner }) => owner === name);
    if (!isNameError && !isLeftOut) return this.denial(name);
    if (isLeftOut && encloser === name) encloser = parent(name);
    const names = [encloser, child(encloser), ...(isNameError ? [wildcard(encloser)] : [])];
    return unique(names.flatMap((each) => this.denial(each)));
  }
}

function base32ToHex(text: string): string {
  let value = 0n;
  for (const digit of text) value = value * 32n + BigInt(Number.parseInt(digit, 32));
  return value.toString(16).padStart(40, "0");
}

/** RFC 4034 section 4.1.2, for types below 256. */
function bitmap(types: readonly number[]): Buffer {
  if (types.length === 0) return Buffer.alloc(0);
  const bytes = Buffer.alloc(32);
  for (const type of types) bytes[type >> 3] = (bytes[type >> 3] ?? 0) | (0x80 >> (type & 7));
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  return Buffer.concat([Buffer.from([0, end]), bytes.subarray(0, end)]);
}

function unique(records: readonly TestRecord[]): TestRecord[] {
  const id = ({ owner, type, data }: TestRecord) =>
    `${owner} ${type} ${type === TYPE.RRSIG ? Buffer.from(data).readUInt16BE() : Buffer.from(data).toString("hex")}`;
  return [...new Map(records.map((record) => [id(record), record])).values()];
}

/** Encodes a reply without compression. */
export function encodeReply({ answers, authority }: TestReply): Uint8Array {
  const header = [0, 0x8180, 0, answers.length, authority.length, 0].map((each) => number(each, 2));
  const records = [...answers, ...authority].flatMap(({ owner, type, data, ttl = 300 }) => [
    encodeName(owner),
    ...[number(type, 2), number(1, 2), number(ttl, 4), number(data.length, 2), data],
  ]);
  return Buffer.concat([...header, ...records]);
}

/** Zones and the resolver that asks them. */
export class World {
  readonly zones: readonly TestZone[];
  readonly now: number;
  /** Every question, in order. */
  readonly asked: string[] = [];
  /** Changes a reply, or replaces it by the reason why there is none. */
  tamper: (question: string, reply: TestReply) => TestReply | string = (_, reply) => reply;

  /** Zones from the root down; a child gets its delegation, and DS records if it is signed. */
  constructor(zones: readonly ZoneOptions[], now = Math.floor(Date.UTC(2026, 10, 22, 8) / 1000)) {
    this.now = now;
    this.zones = zones.map((each) => new TestZone(each, now));
    for (const zone of this.zones) {
      const above = zone.name === "." ? undefined : this.#zoneOf(parent(zone.name));
      if (above === undefined) continue;
      above.records.push(above.record("NS", encodeName("ns.invalid."), zone.name));
      const digests = zone.isSigned ? zone.options.digests : [];
      for (const digest of digests)
        above.records.push(above.record("DS", zone.ksk.ds(zone.name, digest), zone.name));
    }
  }

  zone(name: string): TestZone {
    const found = this.zones.find((each) => each.name === name);
    if (found === undefined) throw new Error(`no zone ${name}`);
    return found;
  }

  #zoneOf(name: string): TestZone | undefined {
    const above = this.zones.filter((zone) => within(name, zone.name));
    return above.sort((a, b) => b.name.length - a.name.length)[0];
  }

  /** The keys of a zone as trust anchors. */
  anchors(zone = "."): TrustAnchor[] {
    const { tag, algorithm } = this.zone(zone).ksk;
    const digest = this.zone(zone).ksk.ds(zone, 2).subarray(4);
    return [{ zone, tag, algorithm, digestType: 2, digest }];
  }

  /** The reply of a resolver that checks nothing. */
  reply(asked: string, type: string): Reply | string {
    const question = `${asked} ${type}`;
    this.asked.push(question);
    const found: TestReply = { rcode: "NOERROR", answers: [], authority: [] };
    let name = asked.toLowerCase();
    for (let links = 0; links < 32; links++) {
      const next = this.#step(name, codeOf(type), found);
      if (next === null) break;
      name = next;
    }
    const changed = this.tamper(question, found);
    return typeof changed === "string"
      ? changed
      : { rcode: changed.rcode, message: encodeReply(changed) };
  }

  readonly ask: ChainOptions["ask"] = async (name, type) => this.reply(name, type);

  /** Adds what the zone of a name says; returns the name that an alias leads to. */
  #step(name: string, type: number, reply: TestReply): string | null {
    const zone = this.#zoneOf(type === TYPE.DS && name !== "." ? parent(name) : name);
    if (zone === undefined) return null;
    const { answers, authority } = reply;
    const own = zone.set(name, type);
    if (own.length > 0) {
      answers.push(...zone.signed(own));
      return null;
    }
    const alias = zone.set(name, TYPE.CNAME);
    if (alias.length > 0) {
      answers.push(...zone.signed(alias));
      return decode(alias[0]?.data);
    }
    const dname = zone.records.find(
      (record) => record.type === TYPE.DNAME && name !== record.owner && within(name, record.owner),
    );
    if (dname !== undefined) {
      const target = name.slice(0, -dname.owner.length) + decode(dname.data);
      answers.push(...zone.signed([dname]), {
        owner: name,
        type: TYPE.CNAME,
        data: encodeName(target),
      });
      return target;
    }
    let encloser = name;
    while (!zone.exists(encloser)) encloser = parent(encloser);
    const source = wildcard(encloser);
    const isWild = encloser !== name && zone.exists(source);
    for (const each of isWild ? [type, TYPE.CNAME] : []) {
      const set = zone.set(source, each);
      if (set.length === 0) continue;
      answers.push(...zone.signed(set).map((record) => ({ ...record, owner: name })));
      if (zone.isSigned) authority.push(...unique(zone.denial(nextCloserOf(name, encloser, zone))));
      return each === TYPE.CNAME && type !== each ? decode(set[0]?.data) : null;
    }
    const isNameError = encloser !== name && !isWild;
    if (isNameError) reply.rcode = "NXDOMAIN";
    const extra = isWild
      ? [...zone.denial(source), ...(zone.options.denial === "nsec" ? [] : zone.denial(encloser))]
      : [];
    const proof = isWild
      ? [...zone.denial(nextCloserOf(name, encloser, zone)), ...extra]
      : zone.proof(name, isNameError);
    authority.push(
      ...unique([...zone.signed(zone.set(zone.name, TYPE.SOA)), ...(zone.isSigned ? proof : [])]),
    );
    return null;
  }
}

/** The name whose absence lets a wildcard stand for another one: for NSEC the name itself will do. */
function nextCloserOf(name: string, encloser: string, zone: TestZone): string {
  if (zone.options.denial === "nsec") return name;
  let nextCloser = name;
  while (parent(nextCloser) !== encloser) nextCloser = parent(nextCloser);
  return nextCloser;
}

function decode(data: Uint8Array = new Uint8Array(1)): string {
  const labels = [];
  for (let at = 0; data[at]; at += 1 + (data[at] ?? 0)) {
    labels.push(Buffer.from(data.subarray(at + 1, at + 1 + (data[at] ?? 0))).toString());
  }
  return `${labels.join(".")}.`;
}
