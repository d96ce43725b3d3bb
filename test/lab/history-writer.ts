/** Writes runs into a history until it is killed, and prints the time of each that is kept. */
import { History } from "../../src/watch/history.ts";
import { quietLog, runAt } from "../watch/runs.ts";

const [file = "", from = "0"] = process.argv.slice(2);
const history = new History(file, 1, quietLog);
for (let at = Number(from); ; at++) {
  const isKept = history.addRun(`ping 2001:db8::${at % 3}`, runAt(at));
  if (isKept) process.stdout.write(`${at}\n`);
}
