import { readFileSync } from "node:fs";
import { mkdir, stat, unlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { DELIVERY_MARK } from "../../protocol/link.ts";
import { isRecord } from "../../protocol/objects.ts";
import { openSessionFile } from "./open-file.ts";
import { parseBounded } from "./structure.ts";

/** Session files belong to pi: they are where a terminal pi searches for them. */
export interface SessionFileRequest {
  readonly sessionId: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly now: Date;
  /** Its directory. Default: pi's directory for the working directory. */
  readonly directory?: string | undefined;
  /** Its path. Default: a name of the time and the id, in the directory. */
  readonly file?: string | undefined;
  /** For its header. Default: none. */
  readonly parentSession?: string | undefined;
}

/** The path of a new session's file. */
export function sessionFilePath(request: SessionFileRequest): string {
  const { sessionId, cwd, env, now, directory = sessionDirectory(cwd, env) } = request;
  if (request.file !== undefined) return request.file;
  return join(directory, `${now.toISOString().replace(/[:.]/g, "-")}_${sessionId}.jsonl`);
}

/**
 * Creates a session's file with only its header. Then pi writes every entry immediately; if pi creates the file
 * itself, it keeps the first messages in memory only (measured on both versions).
 */
export async function createSessionFile(request: SessionFileRequest): Promise<string> {
  const file = sessionFilePath(request);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, header(request), { flag: "wx", mode: 0o600 });
  return file;
}

/**
 * Writes the header again if the file is missing or empty: otherwise pi would begin a session with another id there.
 * Resolves with whether that was necessary.
 */
export async function ensureSessionFile(file: string, request: Omit<SessionFileRequest, "env">): Promise<boolean> {
  const size = await stat(file).then(
    (found) => found.size,
    () => 0,
  );
  if (size > 0) return false;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, header(request), { mode: 0o600 });
  return true;
}

/** The first line of a session's file. */
export function header({ sessionId: id, cwd, now, parentSession }: Omit<SessionFileRequest, "env">): string {
  return `${JSON.stringify({ type: "session", version: 3, id, timestamp: now.toISOString(), cwd, parentSession })}\n`;
}

/** Deletes a file without messages: pi would list it as "(no messages)". */
export async function removeIfEmpty(file: string): Promise<boolean> {
  try {
    if (!(await hasNoMessage(file))) return false;
    await unlink(file);
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether a session file has no message, and nothing else that an extension may need. Reads only the start of the file:
 * the entries that pi writes before any message are few and small.
 */
export async function hasNoMessage(file: string): Promise<boolean> {
  const handle = await openSessionFile(file);
  try {
    const { size } = await handle.stat();
    const limit = 256 * 1024;
    if (size > limit) return false;
    const text = (await handle.readFile("utf8")).trim();
    return text.split("\n").every((line) => {
      const entry = JSON.parse(line) as { type?: unknown; message?: { role?: unknown } };
      if (entry.type === "message") return entry.message?.role === "system";
      return entry.type !== "custom_message" && entry.type !== "custom" && entry.type !== "compaction";
    });
  } finally {
    await handle.close();
  }
}

/** How much of a session file's end is read to find a child's last entries. */
const maxTailBytes = 16 * 1024 * 1024;

/** The newest entries of a session file. Torn lines and lines that are not objects are skipped, as by pi. */
export async function readEntries(
  file: string,
  maxBytes: number = maxTailBytes,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const entries: Record<string, unknown>[] = [];
  for (const line of (await tailOf(file, Math.min(maxBytes, maxTailBytes))).split("\n")) {
    try {
      const entry = line === "" ? undefined : parseBounded(Buffer.from(line));
      if (isRecord(entry) && entry["type"] !== "session") entries.push(entry);
    } catch {
      // Torn by a crash, or by the cut.
    }
  }
  return entries;
}

/** A longer entry is not a push: the content of pushes is smaller. */
const maxEntryBytes = 64 * 1024 * 1024;

/**
 * Which of these deliveries have an entry in the file. Empty if the file is missing. The whole file is read, since
 * many large pushes may have been written at once; one line at a time is in memory.
 */
export async function deliveriesIn(file: string, deliveryIds: readonly string[]): Promise<ReadonlySet<string>> {
  const wanted = new Set(deliveryIds);
  const found = new Set<string>();
  try {
    const look = (line: Buffer): void => {
      const id = line.includes(`"${DELIVERY_MARK}"`) ? deliveryIn(line) : undefined;
      if (id !== undefined && wanted.has(id)) found.add(id);
    };
    const splitter = new JsonlSplitter({ maxRecordBytes: maxEntryBytes, onRecord: look, onOversize: () => {} });
    const handle = await openSessionFile(file);
    for await (const chunk of handle.createReadStream()) splitter.push(chunk as Buffer);
    // pi also accepts an entry that only lacks its line feed.
    splitter.push(Buffer.from("\n"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return found;
}

/** The delivery of a line's entry. Torn lines are skipped, as by pi. */
function deliveryIn(line: Buffer): string | undefined {
  try {
    const entry = parseBounded(line);
    if (!isRecord(entry) || entry["type"] !== "custom_message") return undefined;
    return markedDelivery(entry["details"]);
  } catch {
    return undefined;
  }
}

/** The delivery that the helper has noted in the `details` of a custom message. Code inside pi can name another one. */
export function markedDelivery(details: unknown): string | undefined {
  const mark = isRecord(details) ? details[DELIVERY_MARK] : undefined;
  const id = isRecord(mark) ? mark["deliveryId"] : undefined;
  return typeof id === "string" ? id : undefined;
}

async function tailOf(file: string, maxBytes: number): Promise<string> {
  const handle = await openSessionFile(file);
  try {
    const { size } = await handle.stat();
    const length = Math.min(size, maxBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** pi's directory for the sessions of a working directory. */
export function sessionDirectory(cwd: string, env: NodeJS.ProcessEnv): string {
  const agentDirectory = agentDirectoryOf(env);
  const chosen = env["PI_CODING_AGENT_SESSION_DIR"] || settingsSessionDir(agentDirectory);
  if (chosen !== undefined && chosen !== "") return expand(chosen, env);
  const name = `--${cwd.replace(/^\//, "").replace(/[/\\:]/g, "-")}--`;
  return join(agentDirectory, "sessions", name);
}

/** The configured directory for all sessions, or the directory that contains one for each working directory. */
export function sessionRoot(env: NodeJS.ProcessEnv): string {
  const agentDirectory = agentDirectoryOf(env);
  const chosen = env["PI_CODING_AGENT_SESSION_DIR"] || settingsSessionDir(agentDirectory);
  return chosen === undefined || chosen === "" ? join(agentDirectory, "sessions") : expand(chosen, env);
}

/** pi's own directory. */
export function agentDirectoryOf(env: NodeJS.ProcessEnv): string {
  return expand(env["PI_CODING_AGENT_DIR"] ?? "~/.pi/agent", env);
}

function settingsSessionDir(agentDirectory: string): string | undefined {
  try {
    const settings = JSON.parse(readFileSync(join(agentDirectory, "settings.json"), "utf8")) as Record<string, unknown>;
    return typeof settings["sessionDir"] === "string" ? settings["sessionDir"] : undefined;
  } catch {
    return undefined;
  }
}

function expand(path: string, env: NodeJS.ProcessEnv): string {
  const home = env["HOME"] ?? homedir();
  const expanded = path === "~" ? home : path.startsWith("~/") ? join(home, path.slice(2)) : path;
  return isAbsolute(expanded) ? expanded : resolve(expanded);
}
