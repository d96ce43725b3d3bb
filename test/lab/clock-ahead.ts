/** Preloaded by a service whose clock is to be ahead, by the milliseconds in the file TEST_CLOCK_FILE. */
import { readFileSync } from "node:fs";

const now = Date.now;

Date.now = () => now() + Number(readFileSync(process.env["TEST_CLOCK_FILE"] ?? "", "utf8"));
