import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Exported } from "./context-daemon.ts";
import { CommandError } from "./errors.ts";
import type { Output } from "./output.ts";
import { printableJson } from "./text.ts";

export interface DocumentTarget {
  /** An absolute path; undefined: stdout. */
  readonly target: string | undefined;
  /** Whether to replace an existing file. */
  readonly force: boolean;
  readonly output: Output;
  readonly signal: AbortSignal;
}

export interface Written {
  readonly diagnostics: Exported["diagnostics"];
  readonly bytes: number;
  /** In hexadecimal. */
  readonly sha256: string;
}

/**
 * Writes the result of `make` as one line of JSON. The file is readable by its owner only, appears complete or not at
 * all, and replaces another file only with `force`. Throws `file_exists` before it calls `make`, and `export_damaged`.
 */
export async function writeDocument(make: () => Promise<Exported>, where: DocumentTarget): Promise<Written> {
  const { target, force, output, signal } = where;
  if (target === undefined) {
    const exported = await make();
    const pieces = printed(exported, output.json);
    return await copy(pieces, { exported, signal, write: async (text) => output.write(text) });
  }
  return await writeNew(target, force, async () => {
    const exported = await make();
    return (write) => copy(documentOf(exported), { exported, signal, write });
  });
}

/** Appends to the file that is being written. */
type Append = (piece: string | Uint8Array) => Promise<void>;

/**
 * Writes a file with the function that `prepare` returns. The file is readable by its owner only, appears complete or not
 * at all, and replaces another file only with `force`. Throws `file_exists` before it calls `prepare`.
 */
export async function writeNew<T>(
  target: string,
  force: boolean,
  prepare: () => Promise<(append: Append) => Promise<T>>,
): Promise<T> {
  if (!force && (await isThere(target))) throw exists(target);
  const write = await prepare();
  const temporary = `${target}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
      throw notCreated(target, error);
    });
    let written: T;
    try {
      written = await write((piece) => file.appendFile(piece));
    } finally {
      await file.close();
    }
    if (force) await rename(temporary, target);
    else await give(temporary, target);
    return written;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Renames a file, unless the name exists, even if it was created just now. */
async function give(path: string, name: string): Promise<void> {
  try {
    await link(path, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST" || (await isThere(name))) throw exists(name);
    // Not every file system supports links.
    await rename(path, name);
  }
}

/** Node's message names the temporary file. */
function notCreated(target: string, { code = "unexpected", message }: NodeJS.ErrnoException): CommandError {
  const why = code === "ENOENT" ? `the directory ${dirname(target)} does not exist` : message.split(",")[0];
  return new CommandError(code, `${target} cannot be written: ${why}.`);
}

function exists(target: string): CommandError {
  return new CommandError("file_exists", `${target} already exists; --force replaces it.`);
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

interface Copying {
  readonly exported: Exported;
  readonly signal: AbortSignal;
  readonly write: (text: string) => Promise<void>;
}

async function copy(pieces: AsyncIterable<string>, { exported, signal, write }: Copying): Promise<Written> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of pieces) {
    signal.throwIfAborted();
    hash.update(piece);
    bytes += Buffer.byteLength(piece);
    await write(piece);
  }
  return { diagnostics: exported.diagnostics, bytes, sha256: hash.digest("hex") };
}

async function* printed(exported: Exported, asJson: boolean): AsyncIterable<string> {
  if (asJson) yield '{"document":';
  for await (const piece of documentOf(exported)) yield printableJson(asJson ? piece.replace(/\n$/, "") : piece);
  if (asJson) yield `,"diagnostics":${printableJson(JSON.stringify(exported.diagnostics))}}\n`;
}

/** The document in pieces, with one line break at its end. */
async function* documentOf({ document, path, sha256 }: Exported): AsyncIterable<string> {
  if (path === undefined) {
    yield JSON.stringify(document);
  } else {
    const hash = createHash("sha256");
    const held = new TrailingBreak();
    for await (const chunk of createReadStream(path, "utf8") as AsyncIterable<string>) {
      hash.update(chunk);
      yield held.take(chunk);
    }
    if (sha256 !== undefined && hash.digest("hex") !== sha256) {
      throw new CommandError(
        "export_damaged",
        "The daemon's file with the document was changed after the daemon wrote it.",
      );
    }
  }
  yield "\n";
}

/** Holds back a line break at the end of a piece until the next piece. */
class TrailingBreak {
  #held = "";

  take(piece: string): string {
    const text = this.#held + piece;
    this.#held = text.endsWith("\n") ? "\n" : "";
    return this.#held === "" ? text : text.slice(0, -1);
  }
}
