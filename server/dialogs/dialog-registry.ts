import { LRUCache } from "lru-cache";
import type { By } from "../../protocol/client-identity.ts";
import type { Dialog, DialogAnswer, DialogResolution } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import type { DialogStore } from "../store/dialogs.ts";
import type { DialogTimes } from "./dialog-policy.ts";

export interface DialogLimits extends DialogTimes {
  /** Open at a time: of one session, and of all. */
  readonly maxDialogsPerSession: number;
  readonly maxDialogs: number;
  /** One dialog as JSON, and all that are open. */
  readonly maxDialogBytes: number;
  readonly maxDialogsBytes: number;
  /** Of a `select`. */
  readonly maxDialogOptions: number;
  readonly maxAnswerBytes: number;
  /** Of one answer to `dialog/list`, beside its first dialog. */
  readonly maxDialogPageBytes: number;
  /** Dialogs that have ended, in the store and in memory. */
  readonly maxEndedDialogs: number;
  readonly maxEndedDialogsInMemory: number;
  /** How long pi waits for its answer until the extensions have been told that no client can answer. */
  readonly announceMs: number;
}

/** Who has asked: the dialogs of one session. */
export interface DialogOwner {
  find(dialogId: string): Dialog | undefined;
  /** Undefined: it is not open. Throws `invalid_params` and leaves it open. */
  respond(dialogId: string, answer: DialogAnswer, client: By | undefined): DialogResolution | undefined;
}

export interface DialogQuery {
  readonly sessionId?: string | undefined;
  readonly limit?: number | undefined;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** Whether the dialogs of a session are listed. Default: those of all. */
  readonly isListed?: ((sessionId: string) => boolean) | undefined;
}

export interface DialogPage {
  readonly dialogs: Dialog[];
  readonly next?: string;
}

/** Where dialogs are kept. */
type DialogKeeping = Pick<DialogStore, keyof DialogStore>;

interface Entry {
  readonly owner: DialogOwner;
  readonly bytes: number;
  /** Counts dialogs. */
  readonly order: number;
}

interface Ended {
  readonly dialog: Dialog;
  readonly order: number;
}

/** What is kept of a title, and of pi's id, when a dialog has ended. */
const maxShown = 200;

/** Finds the session of a dialog, keeps the bounds that all sessions share, and remembers what has ended. */
export class DialogRegistry {
  readonly limits: DialogLimits;
  readonly #store: DialogKeeping;
  readonly #open = new Map<string, Entry>();
  readonly #ended: LRUCache<string, Ended>;
  readonly #left: Map<string, Dialog[]>;
  #openBytes = 0;
  #opened = 0;
  #endedSinceLimit = 0;

  constructor(store: DialogKeeping, limits: DialogLimits) {
    this.limits = limits;
    this.#store = store;
    this.#ended = new LRUCache({ max: limits.maxEndedDialogsInMemory });
    this.#left = Map.groupBy(store.open(), ({ sessionId }) => sessionId);
  }

  /** What a former daemon has left open of a session. Given once. */
  takeLeft(sessionId: string): readonly Dialog[] {
    const left = this.#left.get(sessionId) ?? [];
    this.#left.delete(sessionId);
    return left;
  }

  /** An open dialog. */
  find(dialogId: string): Dialog | undefined {
    return this.#open.get(dialogId)?.owner.find(dialogId);
  }

  /** How many are open. */
  get openCount(): number {
    return this.#open.size;
  }

  /** Whose dialog it is, or was as long as it is remembered. */
  sessionOf(dialogId: string): string | undefined {
    const dialog = this.find(dialogId) ?? this.#ended.get(dialogId)?.dialog ?? this.#store.get(dialogId);
    return dialog?.sessionId;
  }

  /** Whether one more of this size has a place. */
  hasRoom(bytes: number): boolean {
    return this.#open.size < this.limits.maxDialogs && this.#openBytes + bytes <= this.limits.maxDialogsBytes;
  }

  /**
   * Notes a dialog that is told in the same moment, behind pi's own record and in the order of the log. Its row is on disk a
   * moment later: what a daemon that is killed in between had told, its own record of pi's question, is not on disk either
   * and is named as a gap, and the dialog ends with its pi. Waiting for the disk would only keep a run waiting where that
   * does not answer.
   */
  opened(owner: DialogOwner, dialog: Dialog, bytes: number): void {
    this.#opened += 1;
    this.#open.set(dialog.dialogId, { owner, bytes, order: this.#opened });
    this.#openBytes += bytes;
    // A failed write is logged by the store, and made again.
    void this.#store.put(dialog);
  }

  /** Notes how a dialog has ended, without what it was about. One that never was open is remembered in memory alone. */
  ended({ message: _m, options: _o, placeholder: _p, prefill: _f, ...rest }: Dialog, wasOpen: boolean): void {
    const { dialogId, title, requestId } = rest;
    const dialog: Dialog = { ...rest, title: title.slice(0, maxShown), requestId: requestId.slice(0, maxShown) };
    const { bytes = 0, order = this.#opened } = this.#open.get(dialogId) ?? {};
    this.#open.delete(dialogId);
    this.#openBytes -= bytes;
    this.#ended.set(dialogId, { dialog, order });
    if (!wasOpen) return;
    void this.#store.put(dialog);
    this.#endedSinceLimit += 1;
    if (this.#endedSinceLimit <= this.limits.maxEndedDialogs >> 4) return;
    this.#endedSinceLimit = 0;
    void this.#store.limit(this.limits.maxEndedDialogs);
  }

  /** Gives a dialog its answer. Throws `invalid_params`, `stale`, `dialog_not_found`. */
  respond(dialogId: string, answer: DialogAnswer, client: By | undefined): DialogResolution {
    const resolution = this.#open.get(dialogId)?.owner.respond(dialogId, answer, client);
    if (resolution !== undefined) return resolution;
    const dialog = this.#ended.get(dialogId)?.dialog ?? this.#store.get(dialogId);
    throw dialog === undefined ? unknown(dialogId) : stale(dialog);
  }

  /** Open dialogs, the oldest first. Throws `dialog_not_found` where `after` is forgotten. */
  page({ sessionId, limit = 100, after, isListed }: DialogQuery): DialogPage {
    const behind = after === undefined ? 0 : (this.#open.get(after) ?? this.#ended.get(after))?.order;
    if (behind === undefined) throw unknown(after as string);
    const dialogs: Dialog[] = [];
    let room = this.limits.maxDialogPageBytes;
    for (const [dialogId, { owner, bytes, order }] of this.#open) {
      const dialog = order > behind ? owner.find(dialogId) : undefined;
      if (dialog === undefined || (sessionId !== undefined && dialog.sessionId !== sessionId)) continue;
      if (isListed?.(dialog.sessionId) === false) continue;
      const last = dialogs.at(-1);
      if (last !== undefined && (dialogs.length >= limit || bytes > room)) return { dialogs, next: last.dialogId };
      room -= bytes;
      dialogs.push(dialog);
    }
    return { dialogs };
  }

  /** A session is closed for good. */
  forget(sessionId: string): Promise<void> {
    for (const [dialogId, { dialog }] of this.#ended) {
      if (dialog.sessionId === sessionId) this.#ended.delete(dialogId);
    }
    return this.#store.deleteOf(sessionId);
  }
}

function unknown(dialogId: string): WireError {
  return new WireError("dialog_not_found", `There is no dialog "${dialogId}".`, { dialogId });
}

function stale({ dialogId, title, resolution }: Dialog): WireError {
  const why = resolution?.by === "client" ? "a client has answered it" : `it has ended (${resolution?.by})`;
  return new WireError("stale", `The dialog "${title.slice(0, 200)}" is not open any more: ${why}.`, {
    dialogId,
    ...(resolution === undefined ? {} : { resolution }),
  });
}
