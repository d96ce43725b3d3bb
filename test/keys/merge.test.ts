/** Copies of the keys that lose and regain each other. */
import { describe, expect, setSystemTime, test } from "bun:test";
import fc from "fast-check";
import { isActive, type KeyRecord } from "../../src/keys/key-file.ts";
import { mergeKeys, revokedKeys } from "../../src/keys/merge.ts";
import { createLog } from "../../src/util/log.ts";
import type { RunScript } from "../../src/valkey/connection.ts";
import { changeSharedKeys, createSharedKeys } from "../../src/valkey/keys.ts";

const LOG = createLog({ level: "error", format: "text", priorities: false, write: () => {} });

const time = fc.constantFrom(
  "2026-01-01T00:00:00Z",
  "2026-02-01T00:00:00Z",
  "2027-01-01T00:00:00Z",
);

const record: fc.Arbitrary<KeyRecord> = fc.record(
  {
    name: fc.constantFrom("a", "b"),
    sha256: fc.constantFrom(...["0", "1", "2", "3"].map((digit) => digit.repeat(64))),
    created: time,
    limit: fc.integer({ min: 1, max: 3 }),
    expires: time,
    revoked: time,
  },
  { requiredKeys: ["name", "sha256", "created"] },
);

const list = fc.array(record, { maxLength: 6 });

describe("a merge of keys", () => {
  test("is the same in any order, in any groups, and twice", () => {
    fc.assert(
      fc.property(list, list, list, (a, b, c) => {
        const all = mergeKeys(a, b, c);
        expect(mergeKeys(c, b, a)).toEqual(all);
        expect(mergeKeys(mergeKeys(a, b), c)).toEqual(all);
        expect(mergeKeys(a, mergeKeys(b, c))).toEqual(all);
        expect(mergeKeys(all, all, b)).toEqual(all);
      }),
      { numRuns: 1000 },
    );
  });

  test("loses no key, and gives none more rights than each list does", () => {
    fc.assert(
      fc.property(list, list, (a, b) => {
        const merged = mergeKeys(a, b);
        for (const one of [...a, ...b]) {
          const same = merged.filter(({ sha256 }) => sha256 === one.sha256);
          expect(same.length).toBe(1);
          const [key] = same as [KeyRecord];
          if (one.revoked !== undefined) expect(key.revoked).toBeDefined();
          for (const nowMs of [0, Date.parse("2026-06-01T00:00:00Z")]) {
            expect(isActive(key, nowMs) && !isActive(one, nowMs)).toBe(false);
          }
          expect(key.limit ?? Number.POSITIVE_INFINITY).toBeLessThanOrEqual(
            one.limit ?? Number.POSITIVE_INFINITY,
          );
        }
      }),
      { numRuns: 1000 },
    );
  });
});

/** The keys in Valkey, which may vanish, by SHA-256, and the changes of them. */
interface Stored {
  readonly keys: ReadonlyMap<string, string>;
  readonly changes: readonly (readonly [id: string, texts: readonly string[]])[];
}

const NAMES = ["keys", "changes"] as const;

const EMPTY: Stored = { keys: new Map(), changes: [] };

/** A Valkey that runs the scripts of the keys, and can lose its data or go back to older ones. */
function fakeValkey() {
  let stored = EMPTY;
  let count = 0;
  const snapshots = [EMPTY];
  const revision = () => stored.changes.at(-1)?.[0] ?? null;
  const run: RunScript = async (wanted, _, args) => {
    // Others may be served in between.
    for (let turn = 0; turn < 3; turn++) await Promise.resolve();
    const [first = "", ...texts] = args.map(String);
    const reply = () => {
      if (wanted.source.includes("HSCAN")) return pageFrom(Number(first));
      if (!wanted.source.includes("HSET")) {
        const at = stored.changes.findIndex(([id]) => id === first);
        return at < 0 ? null : stored.changes.slice(at + 1);
      }
      if ((revision() ?? "") !== first) return null;
      const pairs = texts.flatMap((text, at) => (at % 2 === 0 ? [[text, texts[at + 1]]] : []));
      const keys = new Map([...stored.keys, ...(pairs as [string, string][])]);
      // An id comes again if Valkey goes back, but not with the same time.
      stored = { keys, changes: [...stored.changes.slice(-3), [`${count++}`, texts]] };
      snapshots.push(stored);
      return revision();
    };
    return wanted.result().parse(reply());
  };
  /** Two keys at once. */
  const pageFrom = (at: number) => {
    const rows = [...stored.keys].slice(at, at + 2);
    return [at + 2 < stored.keys.size ? `${at + 2}` : "0", rows.flat(), revision()];
  };
  return {
    run,
    get revision() {
      return revision();
    },
    keys: () => mergeKeys([...stored.keys.values()].map((text): KeyRecord => JSON.parse(text))),
    /** Takes back the revocations of all keys, in a way that is in no stream. */
    restore() {
      const plain = (text: string) => JSON.stringify({ ...JSON.parse(text), revoked: undefined });
      const keys = new Map([...stored.keys].map(([sha256, text]) => [sha256, plain(text)]));
      stored = { ...stored, keys };
    },
    /** Takes back one of the states that it has had, or is empty. */
    lose(which: number) {
      stored = snapshots[which % snapshots.length] ?? EMPTY;
    },
  };
}

/** A keyring in memory, and the keys that it has ever seen revoked. */
function fakeKeyring() {
  let keys: readonly KeyRecord[] = [];
  const seen = new Set<string>();
  return {
    seen,
    merge(more: readonly KeyRecord[]) {
      keys = mergeKeys(keys, more);
      for (const { sha256, revoked } of keys) if (revoked !== undefined) seen.add(sha256);
      return more.map(({ sha256 }) => keys.find((key) => key.sha256 === sha256) as KeyRecord);
    },
    forget() {
      keys = revokedKeys(keys);
    },
    records: () => keys,
    activeCount: () => 0,
  };
}

const isRevoked = (keys: readonly KeyRecord[], sha256: string) =>
  keys.some((key) => key.sha256 === sha256 && key.revoked !== undefined);

test("three instances never let a key come back that one of them knows as revoked", async () => {
  const step = fc.oneof(
    fc.record({ add: fc.nat(2) }),
    fc.record({ revoke: fc.nat(2) }),
    fc.record({ follow: fc.subarray([0, 1, 2], { minLength: 1 }) }),
    fc.record({ lose: fc.nat(20) }),
  );
  let writtenBack = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const valkey = fakeValkey();
      const instances = [0, 1, 2].map(() => {
        const keyring = fakeKeyring();
        // biome-ignore lint/suspicious/noExplicitAny: the part of a keyring that is used
        const keys = createSharedKeys(valkey.run, NAMES, keyring as any, "/nowhere/copy", LOG);
        return { keyring, follow: () => keys.follow(valkey.revision) };
      });
      const follow = (which: readonly number[]) =>
        Promise.all(which.map((index) => instances[index]?.follow()));
      const change = (edit: (keys: readonly KeyRecord[]) => readonly KeyRecord[]) =>
        changeSharedKeys(valkey.run, NAMES, edit);
      /** Revoked by the operator, and not lost since. */
      const ordered = new Set<string>();
      for (const each of steps) {
        const shaOf = (key: number) => `${key}`.repeat(64);
        const created = "2026-01-01T00:00:00Z";
        if ("add" in each) {
          const added = { name: "same", sha256: shaOf(each.add), created };
          // As `keys add` does, it leaves out the keys that had the name.
          if (!valkey.keys().some(({ sha256 }) => sha256 === added.sha256)) {
            await change((keys) => [...keys.filter(({ revoked }) => revoked === undefined), added]);
          }
        } else if ("revoke" in each) {
          await change((keys) =>
            keys.map((key) =>
              key.sha256 === shaOf(each.revoke) ? { ...key, revoked: created } : key,
            ),
          );
        } else if ("follow" in each) await follow(each.follow);
        else valkey.lose(each.lose);
        if ("lose" in each) ordered.clear();
        if ("revoke" in each && isRevoked(valkey.keys(), shaOf(each.revoke)))
          ordered.add(shaOf(each.revoke));
        for (const { keyring } of instances) {
          for (const sha256 of keyring.seen)
            expect(isRevoked(keyring.records(), sha256)).toBe(true);
        }
      }
      // In the end all agree, and on what any of them knew.
      const known = instances.flatMap(({ keyring }) => [...keyring.seen]);
      const before = valkey.keys();
      for (let round = 0; round < 4; round++) await follow([0, 1, 2]);
      for (const sha256 of known) {
        expect(isRevoked(valkey.keys(), sha256)).toBe(true);
        if (!isRevoked(before, sha256)) writtenBack += 1;
      }
      for (const sha256 of ordered) expect(isRevoked(valkey.keys(), sha256)).toBe(true);
      for (const { keyring } of instances) expect(keyring.records()).toEqual(valkey.keys());
    }),
    { numRuns: 500 },
  );
  // The runs contain what they are for.
  expect(writtenBack).toBeGreaterThan(10);
});

test("a revoked key that is restored past the stream is found within ten minutes, and Valkey is told", async () => {
  const valkey = fakeValkey();
  const keyring = fakeKeyring();
  // biome-ignore lint/suspicious/noExplicitAny: the part of a keyring that is used
  const keys = createSharedKeys(valkey.run, NAMES, keyring as any, "/nowhere/copy", LOG);
  const created = "2026-01-01T00:00:00Z";
  const key = { name: "one", sha256: "1".repeat(64), created };
  await changeSharedKeys(valkey.run, NAMES, () => [{ ...key, revoked: created }]);
  const startMs = Date.now();
  const followAt = async (minutes: number) => {
    setSystemTime(startMs + minutes * 60_000);
    await keys.follow(valkey.revision);
  };
  try {
    await followAt(0);
    valkey.restore();
    const { revision } = valkey;
    await followAt(4);
    expect([valkey.keys(), valkey.revision]).toEqual([[key], revision]);
    expect(isRevoked(keyring.records(), key.sha256)).toBe(true);
    await followAt(11);
    expect(isRevoked(valkey.keys(), key.sha256)).toBe(true);
    // The write is a change as any other, so all other instances read it.
    expect(valkey.revision).not.toBe(revision);
    const { revision: after } = valkey;
    for (const minutes of [12, 23, 34]) await followAt(minutes);
    expect(valkey.revision).toBe(after);
  } finally {
    setSystemTime();
  }
});
