import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { SessionFileReason } from "../../protocol/custody.ts";
import { WireError } from "../../protocol/errors.ts";
import { exhaustion } from "./exhaustion.ts";

/** A pipe is opened without waiting for its writer. */
const readFlags = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Opens a session file for reading. The caller closes it. Throws `ENOENT` unchanged, and `session_file_unusable` for
 * anything but a regular file: reading a pipe or a device could block, and a few such reads would block all others of
 * the daemon.
 */
export async function openSessionFile(file: string): Promise<FileHandle> {
  const handle = await open(file, readFlags).catch((error: unknown) => {
    throw named(file, error);
  });
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw unusable(file, "not_a_file", "is not a regular file");
}

/** Like {@link openSessionFile}, synchronously. */
export function openSessionFileSync(file: string): number {
  let descriptor: number;
  try {
    descriptor = openSync(file, readFlags);
  } catch (error) {
    throw named(file, error);
  }
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw unusable(file, "not_a_file", "is not a regular file");
}

/** A file that is open for reading. */
export interface OpenFile {
  stat(): Promise<Stats>;
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/**
 * Like {@link openSessionFile}, for a thread that can be ended at any time: Node closes the descriptors of such a thread,
 * but not one that an asynchronous call is just opening.
 */
export async function openInThread(file: string): Promise<OpenFile> {
  const descriptor = openSessionFileSync(file);
  return {
    stat: async () => fstatSync(descriptor),
    read: async (...target) => ({ bytesRead: readSync(descriptor, ...target) }),
    close: async () => closeSync(descriptor),
  };
}

function named(file: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? error : unusable(file, "unreadable", `cannot be read (${code})`, error);
}

/** An error about a session file: `words` say what it is, after its path. */
export function unusable(file: string, reason: SessionFileReason, words: string, cause?: unknown): WireError {
  const message = `pi's session file ${file} ${words}.`;
  // If the daemon cannot open more files, the file itself is not the problem.
  return exhaustion(cause) ?? new WireError("session_file_unusable", message, { file, reason }, { cause });
}
