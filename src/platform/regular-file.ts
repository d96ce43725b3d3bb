import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  statSync,
} from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { attempt, errorCode } from "../util/errors.ts";

/** The rights of users who are neither a file's owner nor in its group; inode(7). */
const OTHERS = { read: 0o004, enter: 0o001 } as const;

/** The text of a file, as `readRegularBytes` reads it. */
export function readRegularFile(path: string): string {
  return readRegularBytes(path).toString("utf8");
}

/** The text of a file, as `readRegularFile` reads it; empty if there is no such file. */
export function readOrEmpty(path: string): string {
  try {
    return readRegularFile(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return "";
    throw error;
  }
}

/**
 * The content of a regular file. A FIFO is an error, because its reader would wait for a writer.
 *
 * @throws Error if it cannot be read, also if it is not a regular file
 */
export function readRegularBytes(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (stats.isDirectory()) throw new Error("it is a directory");
    if (!stats.isFile()) throw new Error("it is not a regular file");
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** The bits of a mode that `chmod 777` sets; inode(7). */
const PERMISSIONS = 0o777;

/**
 * Replaces the text of a file, whole or not at all, and keeps its mode and owner. A new file is for this user only.
 *
 * @throws Error if that is not possible
 */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  const existing = lstatSync(path, { throwIfNoEntry: false });
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    if (existing?.isFile()) {
      await file.chmod(existing.mode & PERMISSIONS);
      await file.chown(existing.uid, existing.gid);
    }
    await file.sync();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** The text of a file, such as those in /proc; null if there is none, or this user may not read it. */
export function tryRead(path: string): string | null {
  return attempt(() => readFileSync(path, "utf8")) ?? null;
}

/** True if every user of this machine may read a file, and enter each folder above it. */
export function everyUserMayRead(realPath: string): boolean {
  const isOpen = (path: string): boolean =>
    (statSync(path).mode & OTHERS.enter) !== 0 && (path === "/" || isOpen(dirname(path)));
  return (statSync(realPath).mode & OTHERS.read) !== 0 && isOpen(dirname(realPath));
}
