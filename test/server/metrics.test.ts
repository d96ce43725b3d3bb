/** The names under which this machine's metrics may be read. */
import { expect, test } from "bun:test";
import { ownNames } from "../../src/server/metrics.ts";

const HOSTS =
  "127.0.0.1 localhost\n127.0.1.1 Box.office.example box # box.evil.example\n::1 other.example\n";

test("a machine has the names in its own files, and no other", () => {
  const names = ownNames("box", HOSTS, "search lab.example corp.example\nnameserver ::1\n");
  expect([...names].toSorted()).toEqual([
    "box",
    "box.corp.example",
    "box.lab.example",
    "box.office.example",
  ]);
});
