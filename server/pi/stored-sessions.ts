import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { type FileHandle, lstat, readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../../protocol/objects.ts";
import type { StoredSessionInfo } from "../../protocol/stored-session.ts";
import { openSessionFile } from "./open-file.ts";
import { sessionRoot } from "./session-file.ts";

export interface StoredRequest {
  /** pi's environment, which determines its session directories. */
  readonly env: NodeJS.ProcessEnv;
  /** Only sessions of this directory. */
  readonly cwd: string | undefined;
  /** Files to omit. */
  readonly held: ReadonlySet<string>;
  /** Continues after this cursor of an earlier page. */
  readonly after: string | undefined;
  readonly limit: number;
  /**
   * Whether sessions of a directory, without links, are listed. Default: all are, and the cursor contains the file's
   * path.
   */
  readonly isListed?: ((cwd: string) => boolean) | undefined;
  /** Aborted when the page is no longer needed: no further file is read then. */
  readonly signal?: AbortSignal | undefined;
}

export interface StoredPage {
  readonly sessions: readonly StoredSessionInfo[];
  /** The cursor of the next page; absent on the last one. */
  readonly next?: string;
}

/** Maximum number of files; names begin with the time, so these are the newest. */
const maxFiles = 10_000;
/** Maximum number of files read for one page, even if few of them match the directory. */
const maxRead = 1_000;
const headBytes = 32 * 1024;
const tailBytes = 16 * 1024;
const maxExcerpt = 200;
const atATime = 32;

interface Found {
  readonly file: string;
  readonly bytes: number;
  readonly mtimeMs: number;
}

/** pi's stored sessions, most recently written first. Only the beginning and the end of each file are read. */
export async function listStored(request: StoredRequest): Promise<StoredPage> {
  const { env, cwd, held, after, limit, isListed, signal } = request;
  const all = (await filesIn(sessionRoot(env), signal)).filter(({ file }) => !held.has(file));
  const position = after === undefined ? undefined : placeOf(isListed === undefined ? after : opened(after));
  const left = position === undefined ? all : all.filter((found) => order(found, position) > 0);
  const sessions: StoredSessionInfo[] = [];
  for (const [index, found] of left.entries()) {
    signal?.throwIfAborted();
    const info = await read(found);
    const isWanted = info !== undefined && (cwd === undefined || info.cwd === cwd);
    if (isWanted && (isListed === undefined || (await isListedAt(info.cwd, isListed)))) sessions.push(info);
    const isLast = index === left.length - 1;
    if (!isLast && (sessions.length >= limit || index + 1 >= maxRead)) {
      const next = cursorOf(found);
      return { sessions, next: isListed === undefined ? next : sealed(next) };
    }
  }
  return { sessions };
}

/** The first words of a user in each of these files; undefined where there are none. */
export async function firstMessagesIn(files: readonly string[]): Promise<readonly (string | undefined)[]> {
  const messages: (string | undefined)[] = [];
  for (let at = 0; at < files.length; at += atATime) {
    const some = files.slice(at, at + atATime).map(async (file) => {
      const found = await factsOf(file);
      return found === undefined ? undefined : (await read(found))?.firstMessage;
    });
    messages.push(...(await Promise.all(some)));
  }
  return messages;
}

/** A deleted file has no directory. */
async function isListedAt(cwd: string, isListed: (cwd: string) => boolean): Promise<boolean> {
  const directory = await realpath(cwd).catch(() => undefined);
  return directory !== undefined && isListed(directory);
}

async function filesIn(root: string, signal: AbortSignal | undefined): Promise<Found[]> {
  const resolved = await realpath(root).catch(() => root);
  const entries = await readdir(resolved, { withFileTypes: true }).catch(() => []);
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(resolved, name));
  const names: { readonly name: string; readonly directory: string }[] = [];
  for (const directory of [resolved, ...below]) {
    signal?.throwIfAborted();
    for (const name of await readdir(directory).catch(() => [] as string[])) {
      if (name.endsWith(".jsonl")) names.push({ name, directory });
    }
  }
  const newest = names
    .sort((a, b) => (a.name < b.name ? 1 : -1))
    .slice(0, maxFiles)
    .map(({ name, directory }) => join(directory, name));
  const found: Found[] = [];
  for (let at = 0; at < newest.length; at += atATime) {
    signal?.throwIfAborted();
    const some = await Promise.all(newest.slice(at, at + atATime).map(factsOf));
    found.push(...some.filter((one) => one !== undefined));
  }
  return found.sort(order);
}

async function factsOf(file: string): Promise<Found | undefined> {
  const found = await lstat(file).catch(() => undefined);
  return found?.isFile() === true ? { file, bytes: found.size, mtimeMs: found.mtimeMs } : undefined;
}

async function read({ file, bytes, mtimeMs }: Found): Promise<StoredSessionInfo | undefined> {
  const handle = await openSessionFile(file).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const head = await textAt(handle, 0, Math.min(headBytes, bytes));
    const tailStart = Math.max(headBytes, bytes - tailBytes);
    const tail = tailStart < bytes ? await textAt(handle, tailStart, bytes - tailStart) : "";
    const [header, ...entries] = linesOf(head);
    const { type, id, cwd, timestamp } = header ?? {};
    if (type !== "session" || typeof id !== "string" || typeof cwd !== "string") return undefined;
    const name = [...entries, ...linesOf(tail)].findLast((entry) => entry["type"] === "session_info")?.["name"];
    const first = entries.map(userText).find((text) => text !== undefined);
    const createdAt = Date.parse(String(timestamp));
    return {
      sessionId: id,
      file,
      cwd,
      ...(typeof name === "string" && name !== "" ? { name: name.slice(0, maxExcerpt) } : {}),
      ...(first === undefined ? {} : { firstMessage: first.slice(0, maxExcerpt) }),
      bytes,
      createdAt: Number.isNaN(createdAt) ? 0 : createdAt,
      updatedAt: Math.floor(mtimeMs),
    };
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

async function textAt(handle: FileHandle, position: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
  return buffer.toString("utf8", 0, bytesRead);
}

/** Incomplete lines are skipped. */
function linesOf(text: string): Readonly<Record<string, unknown>>[] {
  return text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return isRecord(value) ? [value] : [];
    } catch {
      return [];
    }
  });
}

function userText({ type, message }: Readonly<Record<string, unknown>>): string | undefined {
  if (type !== "message" || !isRecord(message) || message["role"] !== "user") return undefined;
  const { content } = message;
  if (typeof content === "string") return content;
  const block: unknown = Array.isArray(content)
    ? content.find((one) => isRecord(one) && one["type"] === "text")
    : undefined;
  return isRecord(block) && typeof block["text"] === "string" ? block["text"] : undefined;
}

function order(a: Pick<Found, "file" | "mtimeMs">, b: Pick<Found, "file" | "mtimeMs">): number {
  return b.mtimeMs - a.mtimeMs || (a.file < b.file ? -1 : a.file > b.file ? 1 : 0);
}

function cursorOf({ file, mtimeMs }: Found): string {
  return Buffer.from(JSON.stringify([mtimeMs, file])).toString("base64url");
}

/**
 * A page may end at a file that is not listed, whose path no client may learn. Can be decrypted while the daemon
 * runs.
 */
const seal = randomBytes(32);

function sealed(cursor: string): string {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", seal, nonce);
  const text = Buffer.concat([cipher.update(cursor, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64url");
}

/** Empty for a cursor that was not encrypted here. */
function opened(cursor: string): string {
  try {
    const bytes = Buffer.from(cursor, "base64url");
    const decipher = createDecipheriv("aes-256-gcm", seal, bytes.subarray(0, 12), { authTagLength: 16 });
    decipher.setAuthTag(bytes.subarray(12, 28));
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString("utf8");
  } catch {
    return "";
  }
}

/** An invalid cursor starts from the beginning. */
function placeOf(cursor: string): Pick<Found, "file" | "mtimeMs"> | undefined {
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString("utf8"));
    if (!Array.isArray(place) || typeof place[0] !== "number" || typeof place[1] !== "string") return undefined;
    return { mtimeMs: place[0], file: place[1] };
  } catch {
    return undefined;
  }
}
