import { isRecord } from "../../protocol/objects.ts";
import { openSessionFile } from "./open-file.ts";
import { parseBounded } from "./structure.ts";

/** An entry of a session file, and its unchanged line. */
export interface EntryLine {
  readonly entry: Readonly<Record<string, unknown>>;
  readonly line: Buffer;
}

const firstBytes = 64 * 1024;

/**
 * The entries of a session file after an offset, in the file's order; for -1, all entries in the last `maxBytes`.
 * Torn lines are skipped, as by pi. Empty if the file is missing.
 */
export async function entriesAfter(
  file: string,
  place: (entries: readonly EntryLine["entry"][]) => number,
  maxBytes: number,
): Promise<readonly EntryLine[]> {
  const handle = await openSessionFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (handle === undefined) return [];
  try {
    const { size } = await handle.stat();
    for (let length = Math.min(size, firstBytes); ; length = Math.min(size, length * 8)) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
      const lines = linesOf(buffer.subarray(0, bytesRead));
      // The first line may be the end of a longer one.
      const entries = (length < size ? lines.slice(1) : lines).flatMap(entryLine);
      const known = place(entries.map(({ entry }) => entry));
      if (known !== -1 || length === size || length >= maxBytes) return entries.slice(known + 1);
    }
  } finally {
    await handle.close();
  }
}

function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    lines.push(bytes.subarray(start, end));
    start = end + 1;
  }
  // pi accepts a last line without a line feed.
  if (start < bytes.length) lines.push(bytes.subarray(start));
  return lines;
}

function entryLine(line: Buffer): EntryLine[] {
  try {
    const entry = parseBounded(line);
    return isRecord(entry) && entry["type"] !== "session" ? [{ entry, line }] : [];
  } catch {
    return [];
  }
}
