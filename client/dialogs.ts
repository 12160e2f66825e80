import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import { WireError } from "../protocol/errors.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { pause } from "./pause.ts";
import { errorOf, type FeedListener, type SessionNotification } from "./session-feed.ts";

/** What a handler gets in addition to the dialog. */
export interface DialogCall {
  /** Aborted when the dialog ends: another client answered it, it timed out, or it was withdrawn. */
  readonly signal: AbortSignal;
}

/**
 * Called once for each dialog. Resolves with the answer, or with undefined to leave the dialog to other clients. A handler
 * that throws leaves it to them too; `onDiagnostic` gets its error, and the error of an answer that the daemon refuses.
 */
export type DialogHandler = (
  dialog: Dialog,
  call: DialogCall,
) => Promise<DialogAnswer | undefined> | DialogAnswer | undefined;

/**
 * Makes a call that answers a dialog. If the dialog is reserved for another client, repeats the call when all clients may
 * answer: at the time that the refusal names, or as soon as `open` is aborted.
 */
export async function answerWhenOpen<T>(
  answer: () => Promise<T>,
  { signal, open }: { readonly signal?: AbortSignal | undefined; readonly open?: AbortSignal } = {},
): Promise<T> {
  let ends = [signal, open].filter((end) => end !== undefined);
  for (;;) {
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "dialog_reserved") throw error;
      const { retryAfterMs } = error.data;
      if (typeof retryAfterMs !== "number") throw error;
      await pause(retryAfterMs, AbortSignal.any(ends)).catch(() => {});
      signal?.throwIfAborted();
      // The refusal may be older than the abort of `open`, so the abort shortens one pause only.
      if (open?.aborted === true) ends = ends.filter((end) => end !== open);
    }
  }
}

export interface DialogResponderOptions {
  /** Stops it. */
  readonly signal?: AbortSignal;
}

/** Answers a session's dialogs until it is stopped or the session or the client is closed. */
export class DialogResponder {
  readonly #peer: DaemonPeer;
  readonly #sessionId: string;
  readonly #handler: DialogHandler;
  readonly #listener: FeedListener;
  readonly #signal: AbortSignal | undefined;
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  /** The open dialogs that the handler got. `toOthers` is aborted when all clients may answer. */
  readonly #open = new Map<string, { readonly ended: AbortController; readonly toOthers: AbortController }>();
  /** The dialogs that ended since the last request for the open ones. */
  #ended: Set<string> | undefined;
  #isStopped = false;

  /** Use `SessionHandle.onDialog()`. */
  constructor(peer: DaemonPeer, sessionId: string, handler: DialogHandler, options: DialogResponderOptions = {}) {
    this.#peer = peer;
    this.#sessionId = sessionId;
    this.#handler = handler;
    this.#signal = options.signal;
    this.#ready.promise.catch(() => {});
    this.#listener = {
      dialogs: true,
      begin: () => void this.#refresh().then(this.#ready.resolve, this.#ready.reject),
      resume: () => void this.#refresh().catch(() => {}),
      gap: () => void this.#refresh().catch(() => {}),
      receive: (notification) => this.#receive(notification),
      end: (end) => this.#stop(errorOf(end)),
    };
    if (options.signal?.aborted === true) {
      this.#stop(options.signal.reason);
      return;
    }
    options.signal?.addEventListener("abort", this.#abort, { once: true });
    peer.joinFeed(sessionId, this.#listener);
  }

  /** Resolves when the daemon knows that this client answers dialogs, and the handler has the open ones. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Resolves when it has stopped. Never rejects. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Stops answering. Open dialogs stay open, and their handlers' signals are aborted. */
  stop(): void {
    this.#stop(new Error("This responder was stopped."));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
  }

  readonly #abort = (): void => this.#stop(this.#signal?.reason);

  #receive({ name, params }: SessionNotification): void {
    if (name === "dialog/opened") this.#take(params.dialog);
    if (name === "dialog/updated") this.#open.get(params.dialogId)?.toOthers.abort();
    if (name === "dialog/resolved") this.#settled(params.dialogId);
  }

  /** Asks which dialogs are open: notifications about some may have been missed. */
  async #refresh(): Promise<void> {
    const ended = new Set<string>();
    this.#ended = ended;
    const open = new Map<string, Dialog>();
    for (let after: string | undefined; ; ) {
      const page = await this.#peer.call("dialog/list", {
        sessionId: this.#sessionId,
        ...(after === undefined ? {} : { after }),
      });
      for (const dialog of page.dialogs) open.set(dialog.dialogId, dialog);
      after = page.next;
      if (after === undefined) break;
    }
    // A later refresh has begun.
    if (this.#ended !== ended) return;
    this.#ended = undefined;
    for (const dialogId of [...this.#open.keys()]) if (!open.has(dialogId)) this.#settled(dialogId);
    for (const dialog of open.values()) if (!ended.has(dialog.dialogId)) this.#take(dialog);
  }

  #take(dialog: Dialog): void {
    const { dialogId } = dialog;
    if (this.#isStopped || this.#open.has(dialogId) || this.#ended?.has(dialogId) === true) return;
    const [ended, toOthers] = [new AbortController(), new AbortController()];
    this.#open.set(dialogId, { ended, toOthers });
    void this.#answer(dialog, ended.signal, toOthers.signal);
  }

  async #answer(dialog: Dialog, signal: AbortSignal, open: AbortSignal): Promise<void> {
    const { dialogId } = dialog;
    try {
      const answer = await this.#handler(dialog, { signal });
      if (answer === undefined || signal.aborted) return;
      await answerWhenOpen(() => this.#peer.call("dialog/respond", { dialogId, answer }), { signal, open });
    } catch (error) {
      // Another client answered first, or the dialog has ended.
      if (signal.aborted || (error instanceof WireError && error.kind === "stale")) return;
      this.#peer.diagnose({ kind: "dialog_failed", dialogId, error });
    }
  }

  #settled(dialogId: string): void {
    this.#ended?.add(dialogId);
    this.#open.get(dialogId)?.ended.abort(new Error("The dialog has ended."));
    this.#open.delete(dialogId);
  }

  #stop(reason: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#peer.leaveFeed(this.#sessionId, this.#listener);
    for (const { ended } of this.#open.values()) ended.abort(reason);
    this.#open.clear();
    this.#ready.reject(reason);
    this.#closed.resolve();
  }
}
