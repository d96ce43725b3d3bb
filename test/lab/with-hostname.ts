/**
 * Gives the UTS namespace another name, by sethostname(2), and becomes a command. `hostname` takes no
 * address for a name, and /proc/sys/kernel/hostname takes one from the machine's root alone.
 *
 * Arguments: the name, and the command.
 */
import { C, loadLibc } from "../../src/platform/libc.ts";
import { findProgram } from "./run.ts";

const [name = "", program = "", ...rest] = process.argv.slice(2);
const libc = loadLibc({ sethostname: { args: [C.pointer, C.uint], returns: C.int } });
const bytes = new TextEncoder().encode(name);
if (libc.sethostname(bytes, bytes.length) !== 0) throw new Error(`errno ${libc.errno()}`);
process.execve?.(findProgram(program) ?? program, [program, ...rest], process.env);
