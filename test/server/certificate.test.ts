import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Certificate,
  CertificateError,
  followCertificate,
  outOfTime,
  readCertificate,
} from "../../src/server/certificate.ts";
import { createLog } from "../../src/util/log.ts";
import { makeCertificate } from "../lab/certificate.ts";
import { programMissing, testWith } from "../lab/lab.ts";
import { run } from "../lab/run.ts";

const missing = programMissing("openssl");
const opensslTest = testWith(missing);

const DAY_MS = 86_400_000;
const NOW = Date.now();

let folder: string;
const files = { certFile: "", keyFile: "" };
let log: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "sixscope-certificate-"));
  Object.assign(files, { certFile: join(folder, "cert.pem"), keyFile: join(folder, "key.pem") });
  if (missing !== null) return;
  for (const days of [2, 3, 20]) {
    const pair = { certFile: join(folder, `${days}.pem`), keyFile: join(folder, `${days}.key`) };
    await makeCertificate({ commonName: `${days} days`, days, ...pair });
  }
});

afterAll(() => rmSync(folder, { recursive: true }));

beforeEach(() => {
  log = [];
});

/** Puts the pair that is valid for `days` days at the paths in `files`. */
function use(days: 2 | 3 | 20): void {
  copyFileSync(join(folder, `${days}.pem`), files.certFile);
  copyFileSync(join(folder, `${days}.key`), files.keyFile);
}

describe("a path that is not a file", () => {
  const paths: [string, () => string, why: string][] = [
    ["a FIFO", () => join(folder, "fifo"), "it is not a regular file"],
    ["a device", () => "/dev/zero", "it is not a regular file"],
    ["a folder", () => folder, "it is a directory"],
  ];
  test.each(paths)("is refused at once, not waited for: %s", async (_, path, why) => {
    await run(["mkfifo", "-m", "600", join(folder, "fifo")]);
    expect(() => readCertificate({ ...files, certFile: path() })).toThrow(why);
    rmSync(join(folder, "fifo"));
  });
});

/** A renewal with a clock that is `daysAhead` days ahead, and the certificates that it reports. */
function start(daysAhead: number) {
  // Earlier renewals go on, with logs of their own.
  const own = log;
  const write = (line: string) => own.push(line);
  const options = { level: "info", format: "text", priorities: false, write } as const;
  const renewal = followCertificate(files, createLog(options), () => NOW + daysAhead * DAY_MS);
  const renewed: Certificate[] = [];
  renewal.watch(async (certificate) => void renewed.push(certificate));
  return { renewal, renewed };
}

opensslTest("a file with certificate and key may be replaced while it is read", async () => {
  const both = join(folder, "both.pem");
  for (const days of [2, 3]) {
    const parts = [`${days}.pem`, `${days}.key`].map((name) => readFileSync(join(folder, name)));
    writeFileSync(join(folder, `${days}.both`), Buffer.concat(parts));
  }
  const replace = `while :; do for days in 2 3; do cp $days.both new && mv new ${both}; done; done`;
  copyFileSync(join(folder, "2.both"), both);
  await using _ = Bun.spawn(["sh", "-c", replace], { cwd: folder });
  const READINGS = 3_000;
  for (let reading = 0; reading < READINGS; reading++) {
    readCertificate({ certFile: both, keyFile: both });
  }
});

opensslTest("a chain that is cut behind its first certificate is refused", () => {
  use(2);
  const certificate = readFileSync(files.certFile, "utf8");
  writeFileSync(files.certFile, certificate + certificate.slice(0, -100));
  const problem = `${files.certFile} and ${files.keyFile} cannot be served: error:`;
  expect(() => readCertificate(files)).toThrow(problem);
});

describe("the validity of a certificate", () => {
  const certificate = { cert: "", key: "", beginsMs: 1000, expiresMs: 2000 };
  test.each([
    [999, "is not valid before 1970-01-01T00:00:01.000Z"],
    [1000, null],
    [2000, null],
    [2001, "expired at 1970-01-01T00:00:02.000Z"],
  ])("at %i", (nowMs, expected) => {
    expect(outOfTime(certificate, nowMs)).toBe(expected);
  });

  opensslTest("is read from the file", () => {
    use(20);
    const { beginsMs, expiresMs } = readCertificate(files);
    // openssl reads the clock once for each, which may be in another second.
    expect((expiresMs - beginsMs) / DAY_MS).toBeCloseTo(20, 2);
    expect(Math.abs(beginsMs - NOW)).toBeLessThan(DAY_MS);
  });
});

describe("a renewal", () => {
  opensslTest("uses a new pair that is valid", async () => {
    use(2);
    const lab = start(1);
    use(20);
    lab.renewal.reload();
    await Bun.sleep(0);
    expect(lab.renewed).toHaveLength(1);
    expect(log).toEqual([]);
  });

  opensslTest("does not replace a valid pair by an expired one", () => {
    use(20);
    const current = readCertificate(files);
    const lab = start(5);
    use(2);
    lab.renewal.reload();
    expect(lab.renewed).toEqual([]);
    expect(lab.renewal.current()).toEqual(current);
    expect(log.join("")).toMatch(/level=error .*expired at .*the old certificate stays in use/);
  });

  opensslTest("replaces an expired pair by another expired one", async () => {
    use(2);
    const lab = start(5);
    expect(log.join("")).toMatch(/level=warning .*expired at .*clients reject it/);
    use(3);
    lab.renewal.reload();
    await Bun.sleep(0);
    expect(lab.renewed).toHaveLength(1);
  });

  opensslTest(
    "keeps the old pair if certificate and key of the new one do not belong together",
    () => {
      use(2);
      const lab = start(1);
      copyFileSync(join(folder, "20.pem"), files.certFile);
      lab.renewal.reload();
      writeFileSync(files.certFile, "nonsense");
      lab.renewal.reload();
      expect(lab.renewed).toEqual([]);
      expect(log).toHaveLength(2);
      expect(() => readCertificate(files)).toThrow(CertificateError);
    },
  );
});
