/** Preloaded by `bun test`, which ends without the event `exit`. */
import { afterAll } from "bun:test";
import { removeShared } from "./shared.ts";

afterAll(removeShared);
