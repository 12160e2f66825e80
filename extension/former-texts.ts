import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { MAX_FORMER_TEXT_BYTES } from "../protocol/link.ts";
import type { OutwardBody } from "./link/outbound.ts";

/** How long the tool waits for a file system that does not answer. */
const readsWithinMs = 5_000;
const changingTools: ReadonlySet<string> = new Set(["edit", "write"]);

interface ToolCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** Reads the files that the tool `write` is about to replace, and reports their texts. Never throws. */
export class FormerTexts {
  readonly #send: (frame: OutwardBody) => void;
  /** The files of calls that pi has not finished, by the ids of the calls. */
  readonly #open = new Map<string, string>();

  constructor(send: (frame: OutwardBody) => void) {
    this.#send = send;
  }

  /** Call it before the tool's work, which waits for it. `isWanted`: report the text. */
  async called({ toolCallId, toolName, input }: ToolCall, cwd: string, isWanted: boolean): Promise<void> {
    if (!changingTools.has(toolName)) return;
    const path = pathOf(input["path"], cwd);
    if (path === undefined) return;
    // pi prepares all calls of a message before their work: another one changes the file before this one does.
    const isChanging = [...this.#open.values()].includes(path);
    this.#open.set(toolCallId, path);
    if (toolName !== "write" || !isWanted || isChanging) return;
    const text = await Promise.race([textOf(path), delay(readsWithinMs, undefined, { ref: false })]);
    if (text !== undefined) this.#send({ kind: "formerText", toolCallId, path, text });
  }

  ended(toolCallId: string): void {
    this.#open.delete(toolCallId);
  }

  /** The run is over: no call is in progress. */
  settled(): void {
    this.#open.clear();
  }
}

const unicodeSpaces = /[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g;

/** The path as the tools of pi resolve it (`resolveToCwd`, 0.87.1 and 1.5.2). Undefined: it is not usable. */
function pathOf(given: unknown, cwd: string): string | undefined {
  if (typeof given !== "string") return undefined;
  const plain = given.replace(unicodeSpaces, " ").replace(/^@/, "");
  const path = resolve(cwd, expanded(plain) ?? "\0");
  return path.includes("\0") ? undefined : path;
}

function expanded(path: string): string | undefined {
  if (path === "~") return homedir();
  if (path.startsWith("~/")) return join(homedir(), path.slice(2));
  if (!path.startsWith("file://")) return path;
  try {
    return fileURLToPath(path);
  } catch {
    return undefined;
  }
}

/** The text of a file; null: there is none. Undefined: it is not text, too large, or cannot be read. */
async function textOf(path: string): Promise<string | null | undefined> {
  try {
    // To open a device or a FIFO can have effects.
    if (!(await stat(path)).isFile()) return undefined;
    const bytes = await bytesOf(path);
    const text = bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text?.includes("\0") ? undefined : text;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "ENOENT" ? null : undefined;
  }
}

/** Undefined: another kind of file is there meanwhile, or it is too large. */
async function bytesOf(path: string): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    if (!(await file.stat()).isFile()) return undefined;
    // Files of /proc have no size, and a file can grow.
    const bytes = Buffer.allocUnsafe(MAX_FORMER_TEXT_BYTES + 1);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await file.read(bytes, length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
    }
    return undefined;
  } finally {
    await file.close();
  }
}
