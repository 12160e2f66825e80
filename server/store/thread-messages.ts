import type { MessagePort } from "node:worker_threads";
import type { LogState } from "./change-log.ts";
import type { Change, WriterOutcome, WriterRequest } from "./writer.ts";

// Messages between the main thread and the writing thread. Both load this file.

export interface ThreadData {
  readonly path: string;
  /** The file with the number of the newest commit. */
  readonly mark: number | undefined;
  readonly log: LogState | undefined;
  readonly port: MessagePort;
  /** {@link repliesAt} and {@link endedAt}. */
  readonly shared: Int32Array;
}

/**
 * Number of posted replies. A thread that waits for a reply without its event loop waits for a change of this number.
 */
export const repliesAt = 0;
/** 1 when the thread has ended. */
export const endedAt = 1;

/** Changes with each statement's text once, and all their bytes in one buffer, except shared memory. */
export interface PackedChanges {
  /** Texts of statements that were not sent before; a statement's number is its index among all sent texts. */
  readonly texts: readonly string[];
  /** For each change: the number of its statement, the number of its parameters, and the parameters. */
  readonly items: readonly (string | number | null | Uint8Array)[];
  readonly bytes: Uint8Array<ArrayBuffer> | undefined;
  /** For each parameter of bytes: its index in `items`, and its start and end in `bytes`. */
  readonly blobs: readonly number[];
}

export type ThreadRequest =
  | { readonly kind: "commit"; readonly packed: PackedChanges; readonly isSynced: boolean }
  | Exclude<WriterRequest, { kind: "commit" }>
  | { readonly kind: "close" };

/** The first reply says that the thread is ready, or why it is not. */
export interface ThreadReply extends WriterOutcome {
  /** The memory of {@link PackedChanges}, returned for reuse: the thread would collect it late. */
  readonly memory?: ArrayBuffer;
}

/** A larger buffer is not reused. */
const maxSpareBytes = 2 * 1024 * 1024;

/** Packs changes for one thread, and remembers which texts it has. */
export class Packer {
  readonly #numbers = new Map<string, number>();
  #spare: ArrayBuffer | undefined;

  /** Memory of earlier changes, for reuse by later ones. */
  reuse(memory: ArrayBuffer): void {
    if (memory.byteLength <= maxSpareBytes) this.#spare = memory;
  }

  pack(changes: readonly Change[]): PackedChanges {
    const texts: string[] = [];
    const items: (string | number | null | Uint8Array)[] = [];
    const blobs: number[] = [];
    const pieces: Uint8Array[] = [];
    let size = 0;
    for (const { sql, parameters } of changes) {
      let number = this.#numbers.get(sql);
      if (number === undefined) {
        number = this.#numbers.size;
        this.#numbers.set(sql, number);
        texts.push(sql);
      }
      items.push(number, parameters.length);
      for (const parameter of parameters) {
        if (parameter instanceof Uint8Array && !(parameter.buffer instanceof SharedArrayBuffer)) {
          blobs.push(items.length, size, size + parameter.length);
          pieces.push(parameter);
          size += parameter.length;
          items.push(null);
        } else items.push(parameter);
      }
    }
    return { texts, items, blobs, bytes: pieces.length === 0 ? undefined : this.#joined(pieces, size) };
  }

  /** Copied, because the source may be a small part of a large buffer. */
  #joined(pieces: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
    const spare = this.#spare !== undefined && this.#spare.byteLength >= size ? this.#spare : undefined;
    if (spare !== undefined) this.#spare = undefined;
    const bytes = new Uint8Array(spare ?? new ArrayBuffer(size), 0, size);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return bytes;
  }
}

/** The counterpart of {@link Packer}. */
export class Unpacker {
  readonly #texts: string[] = [];

  unpack({ texts, items, bytes, blobs }: PackedChanges): readonly Change[] {
    this.#texts.push(...texts);
    const whole: (string | number | null | Uint8Array)[] = [...items];
    for (let i = 0; i < blobs.length; i += 3) {
      const [place = 0, from, to] = blobs.slice(i, i + 3);
      whole[place] = bytes?.subarray(from, to) ?? null;
    }
    const changes: Change[] = [];
    for (let at = 0; at < whole.length; ) {
      const end = at + 2 + Number(whole[at + 1]);
      changes.push({ sql: this.#texts[Number(whole[at])] ?? "", parameters: whole.slice(at + 2, end) });
      at = end;
    }
    return changes;
  }
}
