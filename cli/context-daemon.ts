import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { WireError } from "../protocol/errors.ts";
import type { MethodName, Params, Result } from "../protocol/methods.ts";
import { callDaemon } from "./daemon-call.ts";
import { CommandError, UsageError } from "./errors.ts";
import { readAll } from "./message-text.ts";
import { chooseSession } from "./session-argument.ts";
import { type ClientUse, ensured } from "./with-client.ts";

/** The source of a document or a session file. */
export type Source =
  | { readonly kind: "session"; readonly sessionId: string }
  | { readonly kind: "file"; readonly path: string; readonly bytes: number }
  | { readonly kind: "text"; readonly text: string };

/** The result of `context/export`: the document, or a file of the daemon with it. */
export type Exported = Result<"context/export">;

type Call<M extends MethodName> = readonly [method: M, params: Params<M>];
type Where = { readonly path: string } | { readonly document: unknown };

/** Larger files are sent by path, and the daemon reads them if it may. */
const inlineBytes = 1024 * 1024;
/** The daemon's limit of one call, with room for its other params. */
const maxInlineBytes = 15 * 1024 * 1024;

/** Returns the daemon of the state directory; starts one if none runs, unless an option forbids it. */
export async function openDaemon(use: ClientUse): Promise<ContextDaemon> {
  return new ContextDaemon(await ensured(use), use.signal);
}

export class ContextDaemon {
  readonly #stateDir: string;
  readonly #signal: AbortSignal;

  constructor(stateDir: string, signal: AbortSignal) {
    this.#stateDir = stateDir;
    this.#signal = signal;
  }

  get signal(): AbortSignal {
    return this.#signal;
  }

  call<M extends MethodName>(method: M, params: Params<M>): Promise<Result<M>> {
    return callDaemon(method, params, { stateDir: this.#stateDir, signal: this.#signal });
  }

  /** Makes a call with a document: a large file is sent by path, or by content if the daemon cannot read it. */
  async callWith<M extends MethodName>(
    source: Exclude<Source, { readonly kind: "session" }>,
    make: (where: Where) => Call<M>,
  ): Promise<Result<M>> {
    if (source.kind === "file" && source.bytes > inlineBytes) {
      try {
        return await this.call(...make({ path: source.path }));
      } catch (error) {
        if (!isUnread(error) || source.bytes > maxInlineBytes) throw error;
      }
    }
    return await this.call(...make({ document: await documentOf(source, this.#signal) }));
  }

  /** An export that is too large for an answer is a file of the daemon. */
  async export(params: Params<"context/export">): Promise<Exported> {
    try {
      return await this.call("context/export", params);
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "too_large") throw error;
      return await this.call("context/export", { ...params, output: "file" });
    }
  }
}

/** Whether the daemon could not read the file. After another error the call may have taken effect. */
function isUnread(error: unknown): boolean {
  if (!(error instanceof WireError)) return false;
  const { reason } = error.data;
  const isOfFile = typeof reason === "string" && /^(?:E[A-Z0-9]+|not a file)$/.test(reason);
  return error.kind === "forbidden" || (error.kind === "context_transport_failed" && isOfFile);
}

/** Returns what SOURCE means: an existing file, `-` for stdin, else a session. */
export async function sourceOf(word: string, daemon: ContextDaemon): Promise<Source> {
  if (word === "-") {
    if (process.stdin.isTTY === true) throw new UsageError("stdin is a terminal. Name a file instead.", "context");
    return { kind: "text", text: await readAll(process.stdin, daemon.signal, maxInlineBytes) };
  }
  const path = resolve(word);
  const file = await stat(path).catch(() => undefined);
  if (file?.isDirectory() === false) return { kind: "file", path, bytes: file.isFile() ? file.size : 0 };
  if (/[/\\]|\.jsonl?$/.test(word)) throw new CommandError("file_not_found", `File ${path} does not exist.`);
  const { sessions } = await daemon.call("session/list", {});
  return { kind: "session", sessionId: chooseSession(sessions, word) };
}

async function documentOf(
  source: Exclude<Source, { readonly kind: "session" }>,
  signal: AbortSignal,
): Promise<unknown> {
  // A pipe or a device has no known length.
  const text =
    source.kind === "text"
      ? source.text
      : await readAll(createReadStream(source.path), signal, maxInlineBytes, source.path);
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes a piece of the text, which may be confidential.
    const name = source.kind === "text" ? "stdin" : source.path;
    const hint = /^\{"type":"session"/.test(text) ? " It is a session file of pi: see `context export`." : "";
    throw new CommandError("no_document", `${name} is not a valid JSON document.${hint}`);
  }
}
