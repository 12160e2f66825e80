import { LRUCache } from "lru-cache";
import type { By } from "../../protocol/client-identity.ts";
import type { Dialog, DialogAnswer, DialogResolution } from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import { within } from "../lib/deadline.ts";
import type { DialogStore, StoredDialog } from "../store/dialogs.ts";
import { DialogAnswerers } from "./dialog-answerers.ts";
import type { DialogTimes } from "./dialog-policy.ts";

export interface DialogLimits extends DialogTimes {
  /** Maximum number of open dialogs: per session, and in total. */
  readonly maxDialogsPerSession: number;
  readonly maxDialogs: number;
  /** Maximum size of one dialog as JSON, and of all open dialogs. */
  readonly maxDialogBytes: number;
  readonly maxDialogsBytes: number;
  /** Of a `select`. */
  readonly maxDialogOptions: number;
  readonly maxAnswerBytes: number;
  /** Maximum size of one answer to `dialog/list`; its first dialog may exceed it. */
  readonly maxDialogPageBytes: number;
  /** Maximum number of ended dialogs, in the store and in memory. */
  readonly maxEndedDialogs: number;
  readonly maxEndedDialogsInMemory: number;
  /** How long pi's answer is delayed until the extensions were told that no client can answer. */
  readonly announceMs: number;
}

/** A call that answers a dialog. */
export interface AnsweringCall {
  readonly id: string;
  /** Whether an earlier attempt may have answered it. */
  readonly isRepeated: boolean;
}

/** The dialogs of one session. */
export interface DialogOwner {
  find(dialogId: string): Dialog | undefined;
  /** Undefined: it is not open. Throws `invalid_params` and leaves it open. */
  respond(
    dialogId: string,
    answer: DialogAnswer,
    client: By | undefined,
    callId: string | undefined,
  ): DialogResolution | undefined;
  /** How it ended by that, if it did. Throws `invalid_request` for a subscriber that cannot answer. */
  abstain(dialogId: string, subscriberId: string): DialogResolution | undefined;
}

export interface DialogQuery {
  readonly sessionId?: string | undefined;
  readonly limit?: number | undefined;
  /** `next` of the previous page. */
  readonly after?: string | undefined;
  /** Whether a session's dialogs are included. Default: all sessions. */
  readonly isListed?: ((sessionId: string) => boolean) | undefined;
}

export interface DialogPage {
  readonly dialogs: Dialog[];
  readonly next?: string;
}

/** The stored dialogs. */
type DialogKeeping = Pick<DialogStore, keyof DialogStore>;

interface Entry {
  readonly owner: DialogOwner;
  readonly bytes: number;
  /** Sequence number of the dialog. */
  readonly order: number;
}

interface Ended {
  readonly dialog: StoredDialog;
  readonly order: number;
}

const maxSilenceMs = 2_000;

/** Maximum length that is kept of an ended dialog's title and pi id. */
const maxShown = 200;

/** Finds the session of a dialog, enforces the limits shared by all sessions, and remembers ended dialogs. */
export class DialogRegistry {
  readonly limits: DialogLimits;
  readonly answerers = new DialogAnswerers();
  readonly #store: DialogKeeping;
  readonly #open = new Map<string, Entry>();
  readonly #ended: LRUCache<string, Ended>;
  readonly #left: Map<string, Dialog[]>;
  readonly #storing = new Map<string, Promise<void>>();
  #openBytes = 0;
  #opened = 0;
  #endedSinceLimit = 0;

  constructor(store: DialogKeeping, limits: DialogLimits) {
    this.limits = limits;
    this.#store = store;
    this.#ended = new LRUCache({ max: limits.maxEndedDialogsInMemory });
    this.#left = Map.groupBy(store.open(), ({ sessionId }) => sessionId);
  }

  /** Returns the dialogs that a former daemon left open in a session, once. */
  takeLeft(sessionId: string): readonly Dialog[] {
    const left = this.#left.get(sessionId) ?? [];
    this.#left.delete(sessionId);
    return left;
  }

  find(dialogId: string): Dialog | undefined {
    return this.#open.get(dialogId)?.owner.find(dialogId);
  }

  get openCount(): number {
    return this.#open.size;
  }

  /** The session of an open dialog, or of a remembered one. */
  sessionOf(dialogId: string): string | undefined {
    const dialog = this.find(dialogId) ?? this.#ended.get(dialogId)?.dialog ?? this.#store.get(dialogId);
    return dialog?.sessionId;
  }

  /** Whether one more dialog of this size fits. */
  hasRoom(bytes: number): boolean {
    return this.#open.size < this.limits.maxDialogs && this.#openBytes + bytes <= this.limits.maxDialogsBytes;
  }

  /**
   * Records a dialog that is announced at the same moment, after pi's own record and in the order of the log. Its row
   * is written a moment later. If the daemon is killed in between, the gap covers pi's record of the question as
   * well, and the dialog ends with its pi. Waiting for the disk would only block a run while the disk does not
   * answer.
   */
  opened(owner: DialogOwner, dialog: Dialog, bytes: number): void {
    this.reopened(owner, dialog, bytes);
    // The store logs and retries a failed write.
    void this.#store.put(dialog);
  }

  /** Records a dialog that a former daemon has opened, and whose pi still waits. */
  reopened(owner: DialogOwner, dialog: Dialog, bytes: number): void {
    this.#opened += 1;
    this.#open.set(dialog.dialogId, { owner, bytes, order: this.#opened });
    this.#openBytes += bytes;
  }

  /**
   * Records how a dialog ended, without its content. A dialog that never was open is remembered in memory only. Resolves
   * when it is on disk. `isAwaited`: {@link stored} waits for it.
   */
  async ended(
    { message: _m, options: _o, placeholder: _p, prefill: _f, ...rest }: StoredDialog,
    wasOpen: boolean,
    isAwaited = false,
  ): Promise<void> {
    const { dialogId, title, requestId } = rest;
    const dialog: StoredDialog = { ...rest, title: title.slice(0, maxShown), requestId: requestId.slice(0, maxShown) };
    const { bytes = 0, order = this.#opened } = this.#open.get(dialogId) ?? {};
    this.#open.delete(dialogId);
    this.#openBytes -= bytes;
    this.#ended.set(dialogId, { dialog, order });
    if (!wasOpen) return;
    const stored = this.#store.put(dialog, isAwaited);
    if (isAwaited) {
      this.#storing.set(dialogId, stored);
      const settled = (): void => void this.#storing.delete(dialogId);
      stored.then(settled, settled);
    }
    this.#endedSinceLimit += 1;
    if (this.#endedSinceLimit > this.limits.maxEndedDialogs >> 4) {
      this.#endedSinceLimit = 0;
      void this.#store.limit(this.limits.maxEndedDialogs);
    }
    await stored;
  }

  /**
   * Answers a dialog; a call that has answered it gets the same result again. Throws `invalid_params`, `stale`,
   * `dialog_not_found`, `outcome_unknown`.
   */
  respond(
    dialogId: string,
    answer: DialogAnswer,
    client: By | undefined,
    { id: callId, isRepeated }: Partial<AnsweringCall> = {},
  ): DialogResolution {
    const resolution = this.#open.get(dialogId)?.owner.respond(dialogId, answer, client, callId);
    if (resolution !== undefined) return resolution;
    const dialog = this.#ended.get(dialogId)?.dialog ?? this.#store.get(dialogId);
    if (dialog === undefined) throw unknown(dialogId);
    if (callId !== undefined && dialog.callId === callId && dialog.resolution !== undefined) return dialog.resolution;
    // A pi with pipes may have got the answer before it was stored.
    throw isRepeated === true && dialog.resolution?.by === "daemon_restart" ? mayBeAnswered(dialog) : stale(dialog);
  }

  /**
   * A subscriber leaves the answer to others. Returns how the dialog ended by that; undefined: it is still open. Throws
   * `invalid_request`, `stale`, `dialog_not_found`.
   */
  abstain(dialogId: string, subscriberId: string): DialogResolution | undefined {
    const open = this.#open.get(dialogId);
    if (open !== undefined) return open.owner.abstain(dialogId, subscriberId);
    const dialog = this.#ended.get(dialogId)?.dialog ?? this.#store.get(dialogId);
    throw dialog === undefined ? unknown(dialogId) : stale(dialog);
  }

  /** Resolves when it is on disk how a dialog ended. A store that does not answer delays it for a while only. */
  async stored(dialogId: string): Promise<void> {
    await within(this.#storing.get(dialogId) ?? Promise.resolve(), maxSilenceMs).catch(() => {});
  }

  /** Open dialogs, oldest first. Throws `dialog_not_found` if `after` is no longer known. */
  page({ sessionId, limit = 100, after, isListed }: DialogQuery): DialogPage {
    const lastOrder = after === undefined ? 0 : (this.#open.get(after) ?? this.#ended.get(after))?.order;
    if (lastOrder === undefined) throw unknown(after as string);
    const dialogs: Dialog[] = [];
    let room = this.limits.maxDialogPageBytes;
    for (const [dialogId, { owner, bytes, order }] of this.#open) {
      const dialog = order > lastOrder ? owner.find(dialogId) : undefined;
      if (dialog === undefined || (sessionId !== undefined && dialog.sessionId !== sessionId)) continue;
      if (isListed?.(dialog.sessionId) === false) continue;
      const last = dialogs.at(-1);
      if (last !== undefined && (dialogs.length >= limit || bytes > room)) return { dialogs, next: last.dialogId };
      room -= bytes;
      dialogs.push(dialog);
    }
    return { dialogs };
  }

  /** The session is closed permanently. */
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

function mayBeAnswered({ dialogId, title }: Dialog): WireError {
  const why = `The daemon ended while it answered the dialog "${title.slice(0, 200)}", and pi ended too. Whether pi got the answer is unknown.`;
  return new WireError("outcome_unknown", why, { dialogId });
}

function stale({ dialogId, title, resolution }: Dialog): WireError {
  const why = resolution?.by === "client" ? "a client has answered it" : `it has ended (${resolution?.by})`;
  return new WireError("stale", `The dialog "${title.slice(0, 200)}" is not open any more: ${why}.`, {
    dialogId,
    ...(resolution === undefined ? {} : { resolution }),
  });
}
