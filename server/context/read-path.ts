import { constants } from "node:fs";
import { type FileHandle, open, readlink, realpath, stat } from "node:fs/promises";
import { WireError } from "../../protocol/errors.ts";
import { liesUnder, type Roots } from "../core/roots.ts";
import type { Covers } from "../core/session-scope.ts";
import type { Admit } from "./byte-budget.ts";

/** The caller that names a path or a session. */
export interface ContextCaller {
  /** It has `admin`, and uses the Unix socket. */
  readonly mayReadAny: boolean;
  /** Whether it may read content that it has not sent itself. Default: yes. */
  readonly mayObserve?: boolean;
  /** The sessions that are visible to it. Undefined: all. */
  readonly covers?: Covers | undefined;
  readonly signal: AbortSignal;
}

/** Directories that paths must be in, with links resolved. */
export interface ReadRules {
  /** `context.readRoots`. */
  readonly readRoots: readonly string[];
  readonly roots: Roots;
  /** Directories that are allowed independently of the roots. */
  readonly further: readonly string[];
}

export interface ReadBounds {
  readonly maxBytes: number;
  readonly admit: Admit;
}

/** A file at one moment. */
export interface ReadFile {
  readonly bytes: Buffer;
  readonly path: string;
  readonly mtimeMs: number;
}

/**
 * Reads a file that a client names. All checks use the open descriptor, not the name. Throws `forbidden` (also for a
 * missing file, unless the caller may read any file), `context_transport_failed` and `context_too_large`. The path is
 * never echoed. `admit` is awaited before the bytes are read.
 */
export async function readNamed(
  path: string,
  caller: ContextCaller,
  rules: ReadRules,
  bounds: ReadBounds,
): Promise<ReadFile> {
  const { mayReadAny } = caller;
  const real = await realpath(path).catch((cause: unknown) => {
    throw mayReadAny ? unreadable(cause) : notAllowed();
  });
  // Not even opened, because opening some files has side effects.
  if (!(await isAllowed(real, caller, rules))) throw notAllowed();
  // Opens a pipe without waiting for its writer.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
  if (!(await stat(real).catch(() => undefined))?.isFile()) throw notAllowed();
  const handle = await open(real, flags).catch((cause: unknown) => {
    throw mayReadAny ? unreadable(cause) : notAllowed();
  });
  try {
    const { uid, size, mtimeMs, dev, ino, isFile } = await factsOf(handle);
    if (!isFile || (mayReadAny && uid !== process.getuid?.())) throw notAllowed();
    const opened = await pathOf(handle, real, { dev, ino });
    if (opened !== real && !(opened !== undefined && (await isAllowed(opened, caller, rules)))) throw notAllowed();
    return { bytes: await readAll(handle, size, bounds), path: real, mtimeMs };
  } finally {
    await handle.close();
  }
}

/** Reads a session's own file. Undefined: it does not exist. Throws as {@link readNamed}. */
export async function readOwn(path: string, bounds: ReadBounds): Promise<ReadFile | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return undefined;
    throw unreadable(cause);
  });
  if (handle === undefined) return undefined;
  try {
    const { size, mtimeMs, isFile } = await factsOf(handle);
    if (!isFile) throw unreadable(undefined);
    return { bytes: await readAll(handle, size, bounds), path, mtimeMs };
  } finally {
    await handle.close();
  }
}

async function isAllowed(path: string, { mayReadAny, covers }: ContextCaller, rules: ReadRules): Promise<boolean> {
  if (mayReadAny) return true;
  if (rules.further.length > 0 && (await liesUnder(path, rules.further))) return true;
  // A token for some sessions grants no access to files of others.
  if (covers !== undefined && !covers({ cwd: path })) return false;
  if (rules.readRoots.length === 0) return false;
  return (await liesUnder(path, rules.readRoots)) && (await liesUnder(path, rules.roots));
}

/**
 * The path of an open file, with links resolved: a directory can become a link between the lookup of its name and its
 * opening.
 */
async function pathOf(
  handle: FileHandle,
  named: string,
  { dev, ino }: { readonly dev: number; readonly ino: number },
): Promise<string | undefined> {
  const byDescriptor = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
  if (byDescriptor !== undefined) return byDescriptor;
  const real = await realpath(named).catch(() => undefined);
  const found = real === undefined ? undefined : await stat(real).catch(() => undefined);
  return found?.dev === dev && found.ino === ino ? real : undefined;
}

interface FileFacts {
  readonly uid: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly dev: number;
  readonly ino: number;
  readonly isFile: boolean;
}

async function factsOf(handle: FileHandle): Promise<FileFacts> {
  const found = await handle.stat();
  const { uid, size, mtimeMs, dev, ino } = found;
  return { uid, size, mtimeMs, dev, ino, isFile: found.isFile() };
}

/** Reads as much as the size at the check; later writes are ignored. */
async function readAll(handle: FileHandle, size: number, { maxBytes, admit }: ReadBounds): Promise<Buffer> {
  if (size > maxBytes) throw tooLarge(size, maxBytes);
  await admit(size);
  const bytes = Buffer.from(new ArrayBuffer(size));
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(bytes, length, size - length, length).catch((cause: unknown) => {
      throw unreadable(cause);
    });
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

export function tooLarge(bytes: number, maxBytes: number): WireError {
  const message = `The document has ${grouped(bytes)} bytes; the limit is ${grouped(maxBytes)} (context.maxDocumentBytes).`;
  return new WireError("context_too_large", message, {
    limit: "context.maxDocumentBytes",
    value: bytes,
    max: maxBytes,
  });
}

export function notAllowed(): WireError {
  return new WireError("forbidden", "Reading contexts from this path is not allowed.");
}

/** Errors that pass without intervention. */
const passing: ReadonlySet<string> = new Set(["EIO", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN", "EBUSY", "ETIMEDOUT"]);

function unreadable(cause: unknown): WireError {
  const { code = "not a file" } = (cause ?? {}) as NodeJS.ErrnoException;
  return new WireError("context_transport_failed", `The file with the context cannot be read (${code}).`, {
    reason: code,
    ...(passing.has(code) ? {} : { retryable: false }),
  });
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, " ");
}
