import { closeSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "../../protocol/objects.ts";
import { openSessionFileSync } from "./open-file.ts";
import { sessionRoot } from "./session-file.ts";

/** A session according to pi's own file. */
export interface FoundSessionFile {
  readonly file: string;
  readonly cwd: string;
  readonly createdAt: number;
}

/** A longer header is ignored. */
const maxHeaderBytes = 64 * 1024;
const chunkBytes = 1024 * 1024;

/** Finds a session's file in pi's directories, and in `further` ones, by its name and the id in its header. */
export function findSessionFile(
  sessionId: string,
  env: NodeJS.ProcessEnv,
  further: readonly string[] = [],
): FoundSessionFile | undefined {
  const root = sessionRoot(env);
  const ending = `_${sessionId}.jsonl`;
  for (const directory of [root, ...directoriesIn(root), ...further]) {
    for (const name of namesIn(directory)) {
      const found = name.endsWith(ending) ? readHeader(join(directory, name), sessionId) : undefined;
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Which of these texts occur in a file. An unreadable file contains none. */
export function textsIn(file: string, texts: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>();
  const overlap = Math.max(0, ...Array.from(texts, (text) => text.length));
  try {
    const descriptor = openSessionFileSync(file);
    try {
      const chunk = Buffer.alloc(chunkBytes);
      let rest = "";
      for (let size = readSync(descriptor, chunk); size > 0; size = readSync(descriptor, chunk)) {
        const text = rest + chunk.toString("latin1", 0, size);
        for (const wanted of texts) if (text.includes(wanted)) found.add(wanted);
        rest = text.slice(-overlap);
      }
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // It contains none of them.
  }
  return found;
}

function readHeader(file: string, sessionId: string): FoundSessionFile | undefined {
  try {
    const descriptor = openSessionFileSync(file);
    try {
      const bytes = Buffer.alloc(maxHeaderBytes);
      const [line = ""] = bytes.toString("utf8", 0, readSync(descriptor, bytes)).split("\n");
      const header: unknown = JSON.parse(line);
      if (!isRecord(header) || header["id"] !== sessionId || typeof header["cwd"] !== "string") return undefined;
      const createdAt = Date.parse(String(header["timestamp"]));
      return { file, cwd: header["cwd"], createdAt: Number.isNaN(createdAt) ? 0 : createdAt };
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return undefined;
  }
}

function directoriesIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name));
  } catch {
    return [];
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
