import { v7 as uuidv7 } from "uuid";
import type { Control } from "../protocol/control.ts";
import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import type { Params, Result } from "../protocol/methods.ts";
import type { Prompt } from "../protocol/prompt.ts";
import type { SessionInfo } from "../protocol/session.ts";
import type { TranscriptCut } from "../protocol/transcript-methods.ts";
import type { EntryLabel } from "../protocol/tree.ts";
import type { CallOptions, DaemonPeer } from "./daemon-peer.ts";
import { DeliveryHandle } from "./delivery.ts";
import { DeliveryChanges, type DeliveryChangesOptions } from "./delivery-changes.ts";
import { answerWhenOpen, type DialogHandler, DialogResponder, type DialogResponderOptions } from "./dialogs.ts";
import { EventStream, type EventsOptions } from "./event-stream.ts";
import type { SettledRun } from "./local-errors.ts";
import { RunFailedError, RunInterruptedError } from "./local-errors.ts";
import { NotificationStream, type NotificationsOptions } from "./notification-stream.ts";
import { ProviderEvents, type ProviderEventsOptions } from "./provider-events.ts";
import type { FeedListener } from "./session-feed.ts";
import { type PromptCall, promptCall } from "./settled-run.ts";

/** `expectedRunId`: rejects with `run_mismatch` if another run, or no run, is active. */
export type AbortOptions = Pick<Params<"session/abort">, "expectedRunId"> & CallOptions;
/** The optional parts of a user's message. */
export type MessageOptions = Omit<Params<"session/followUp">, "sessionId" | "text"> & CallOptions;
export type SteerOptions = Omit<Params<"session/steer">, "sessionId" | "text"> & CallOptions;
export type PromptOptions = Omit<Params<"session/prompt">, "sessionId" | "text"> & CallOptions;
export type PushParams = Omit<Params<"delivery/push">, "sessionId">;
export type ControlOptions = Omit<Params<"session/acquireControl">, "sessionId"> & CallOptions;
/** One of pi's RPC commands without `id` (docs/rpc-commands.md of pi). */
export interface PiCommand {
  readonly type: string;
  readonly [field: string]: unknown;
}
export type BashOptions = Omit<Params<"session/bash">, "sessionId" | "command"> & CallOptions;
export type CompactOptions = Omit<Params<"session/compact">, "sessionId"> & CallOptions;
export type NavigateOptions = Omit<Params<"session/navigate">, "sessionId" | "entryId"> & CallOptions;
/** `after`: the last seq that the listener has; `epoch`: the log to which it belongs. */
export type ListenOptions = Pick<EventsOptions, "after" | "epoch">;
export type TranscriptOptions = Omit<Params<"transcript/page">, "sessionId"> & CallOptions;
export type OutlineOptions = Omit<Params<"transcript/outline">, "sessionId"> & CallOptions;
export type EntryPieceOptions = Pick<Params<"transcript/entry">, "offset" | "length"> & CallOptions;
export type CommandOptions = Omit<Params<"session/command">, "sessionId" | "command"> & CallOptions;

/**
 * One session of the daemon. The object only holds the id: creating it makes no call, and dropping it does not affect the
 * session.
 *
 * Calls reject with the daemon's `WireError`, with `ConnectionClosedError`, or with the reason of their `signal`.
 */
export class SessionHandle {
  readonly id: string;
  readonly #peer: DaemonPeer;
  #info: SessionInfo | undefined;

  /** Use `Client.createSession()` or `Client.session()`. */
  constructor(peer: DaemonPeer, id: string, info?: SessionInfo) {
    this.#peer = peer;
    this.id = id;
    this.#info = info;
  }

  /** The last state of the session that this object got, from `createSession`, {@link get} or {@link reload}. */
  get info(): SessionInfo | undefined {
    return this.#info;
  }

  /** Returns the session's current state. */
  async get(options: CallOptions = {}): Promise<SessionInfo> {
    this.#info = await this.#peer.call("session/get", { sessionId: this.id }, options);
    return this.#info;
  }

  /**
   * Sends pi a user's prompt; resolves when pi has accepted it, not when the run has ended. Rejects with `session_busy`
   * during a run, unless `ifRunning` is `steer` or `followUp`. `settled()` of the returned promise waits for the run.
   */
  prompt(text: string, options: PromptOptions = {}): PromptCall {
    return this.#prompted("session/prompt", text, options);
  }

  /** Inserts a user's message into the run before its next request. In an idle session it acts as a prompt. */
  steer(text: string, options: SteerOptions = {}): PromptCall {
    return this.#prompted("session/steer", text, options);
  }

  /** Queues a user's message for the moment when the agent would stop. In an idle session it acts as a prompt. */
  followUp(text: string, options: MessageOptions = {}): PromptCall {
    return this.#prompted("session/followUp", text, options);
  }

  /** Aborts the run and resolves when the session is idle; `aborted` is false if there was no run. */
  abort({ expectedRunId, ...options }: AbortOptions = {}): Promise<Result<"session/abort">> {
    const only = expectedRunId === undefined ? {} : { expectedRunId };
    return this.#peer.call("session/abort", { sessionId: this.id, ...only }, options);
  }

  /**
   * Runs a shell command in the session's directory and resolves when it has ended; aborting `signal` ends it. A session
   * runs one at a time. The output arrives as `bash_execution_update` events whose id is `bash:` and the `bashId`, and the
   * context of the next prompt contains it unless `excludeFromContext` is true.
   */
  bash(command: string, { signal, ...rest }: BashOptions = {}): Promise<Result<"session/bash">> {
    return this.#peer.call("session/bash", { ...rest, sessionId: this.id, command }, callOptions(signal));
  }

  /** Replaces the old part of the context by a summary; resolves when done. Rejects with `session_busy` during a run. */
  compact({ signal, ...rest }: CompactOptions = {}): Promise<Result<"session/compact">> {
    return this.#peer.call("session/compact", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Changes the session's model. Rejects with `model_not_found` if pi does not know the model or has no login for it. */
  setModel(provider: string, modelId: string, options: CallOptions = {}): Promise<Result<"session/setModel">> {
    return this.#peer.call("session/setModel", { sessionId: this.id, provider, modelId }, options);
  }

  /** Sends another command of pi's RPC (docs/rpc-commands.md of pi) and resolves with its `data`. */
  async command(command: PiCommand, options: CommandOptions = {}): Promise<unknown> {
    const { signal, ...rest } = options;
    const params = { ...rest, sessionId: this.id, command };
    return (await this.#peer.call("session/command", params, callOptions(signal))).data;
  }

  /** Ends the session's pi and forgets the session. This client's event streams of it end. */
  async close(options: CallOptions = {}): Promise<Result<"session/close">> {
    const result = await this.#peer.call("session/close", { sessionId: this.id }, options);
    this.#peer.closeFeed(this.id);
    return result;
  }

  /**
   * Creates a new session of everything before one of the user's messages, and also returns the text of that message. The
   * new session takes over the pi process; this session is then hibernated.
   */
  async fork(
    entryId: string,
    options: CallOptions = {},
  ): Promise<{ readonly session: SessionHandle; readonly text?: string }> {
    const { session, text } = await this.#peer.call("session/fork", { sessionId: this.id, entryId }, options);
    const handle = new SessionHandle(this.#peer, session.sessionId, session);
    return { session: handle, ...(text === undefined ? {} : { text }) };
  }

  /** Like {@link fork}, with the whole active branch. */
  async clone(options: CallOptions = {}): Promise<SessionHandle> {
    const { session } = await this.#peer.call("session/clone", { sessionId: this.id }, options);
    return new SessionHandle(this.#peer, session.sessionId, session);
  }

  /**
   * Continues from another entry of the session's tree, in the same session. For a user's or a custom message it continues
   * before the message, and the result has its text. With `summarize`, the model summarises the branch that is left. Rejects
   * with `session_busy` during a run; `outcome` is `"cancelled"` if an extension prevents it. Subscribers get
   * `session/navigated`.
   */
  navigate(entryId: string, { signal, ...rest }: NavigateOptions = {}): Promise<Result<"session/navigate">> {
    return this.#peer.call("session/navigate", { ...rest, sessionId: this.id, entryId }, callOptions(signal));
  }

  /** Sets the label of an entry of the session, or removes it with `null`. */
  async setLabel(entryId: string, label: string | null, options: CallOptions = {}): Promise<void> {
    await this.#peer.call("session/setLabel", { sessionId: this.id, entryId, label }, options);
  }

  /** Returns the labels of the session's entries, in the order in which they were set. */
  async labels(options: CallOptions = {}): Promise<readonly EntryLabel[]> {
    return (await this.#peer.call("session/listLabels", { sessionId: this.id }, options)).labels;
  }

  /**
   * Returns the last entries of the active branch, or with `before` of an earlier page those before that page. It starts no
   * pi. A page can be empty while `before` names another one. A subscription from the `cursor` of the first page goes on where
   * its entries end. Rejects with `transcript_changed` if the session's file was rewritten after that page.
   */
  transcript({ signal, ...rest }: TranscriptOptions = {}): Promise<Result<"transcript/page">> {
    return this.#peer.call("transcript/page", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /**
   * Returns the last entries of all branches, each with its parent and first words, or with `before` of an earlier page
   * those before that page. It starts no pi. Rejects with `transcript_changed` if the session's file was rewritten since.
   */
  outline({ signal, ...rest }: OutlineOptions = {}): Promise<Result<"transcript/outline">> {
    return this.#peer.call("transcript/outline", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Returns a piece of a value that a page of the {@link transcript} has cut, at most 4 MiB. */
  entryPiece(
    { entryId, path, place }: Pick<TranscriptCut, "entryId" | "path" | "place">,
    { signal, ...rest }: EntryPieceOptions = {},
  ): Promise<Result<"transcript/entry">> {
    const value = { entryId, path, ...(place === undefined ? {} : { place }) };
    return this.#peer.call("transcript/entry", { ...rest, ...value, sessionId: this.id }, callOptions(signal));
  }

  /** Loads the session's file again, so that the session continues with entries that another process wrote. */
  async reload(options: CallOptions = {}): Promise<SessionInfo> {
    this.#info = await this.#peer.call("session/reload", { sessionId: this.id }, options);
    return this.#info;
  }

  /** Ends the session's pi and deletes the session and its file permanently. This client's event streams of it end. */
  async delete(options: CallOptions = {}): Promise<Result<"session/delete">> {
    const result = await this.#peer.call("session/delete", { sessionId: this.id, confirm: true }, options);
    this.#peer.closeFeed(this.id);
    return result;
  }

  /**
   * Sends a custom message to the agent and returns, without waiting, a handle that reports its progress. Nothing has
   * to be awaited: a refused push rejects `accepted` and calls `onDiagnostic`, and is never an unhandled rejection.
   *
   * `signal` ends the handle's waits; the push may still be stored.
   */
  push(params: PushParams, options: CallOptions = {}): DeliveryHandle {
    const id = params.deliveryId ?? uuidv7();
    const accepted = this.#peer.call("delivery/push", { ...params, sessionId: this.id, deliveryId: id }, options);
    accepted.catch((error: unknown) => this.#peer.diagnose({ kind: "push_failed", deliveryId: id, error }));
    return new DeliveryHandle({ peer: this.#peer, sessionId: this.id, id, accepted, signal: options.signal });
  }

  /** Returns a handle of an earlier push, of this or another client. `accepted` rejects if the daemon does not know it. */
  delivery(deliveryId: string, options: CallOptions = {}): DeliveryHandle {
    const accepted = this.#peer.call("delivery/get", { deliveryId }, options);
    return new DeliveryHandle({
      peer: this.#peer,
      sessionId: this.id,
      id: deliveryId,
      accepted,
      signal: options.signal,
    });
  }

  /** Streams the session's deliveries as they change, from now on, of all clients. */
  deliveryChanges(options: DeliveryChangesOptions = {}): DeliveryChanges {
    return new DeliveryChanges(this.#peer, this.id, options);
  }

  /** Returns the session's open dialogs, oldest first; at most the first 500. */
  async dialogs(options: CallOptions = {}): Promise<readonly Dialog[]> {
    return (await this.#peer.call("dialog/list", { sessionId: this.id, limit: 500 }, options)).dialogs;
  }

  /**
   * Answers a dialog. If it is reserved for another client, the answer waits until all clients may answer. Rejects with
   * `stale` if the dialog has ended, with `invalid_params` if the answer does not fit it.
   */
  respond(
    dialogId: string,
    answer: DialogAnswer,
    options: CallOptions = {},
  ): Promise<Required<Result<"dialog/respond">>> {
    // Only an abstention has no resolution.
    return answerWhenOpen(() => this.#peer.call("dialog/respond", { dialogId, answer }, options), options) as Promise<
      Required<Result<"dialog/respond">>
    >;
  }

  /**
   * Leaves the answer of a dialog to others. It is cancelled once all that can answer have abstained. Rejects with
   * `stale` if the dialog has ended, with `invalid_request` if this client does not follow the session with `dialogs`.
   */
  abstain(dialogId: string, options: CallOptions = {}): Promise<Result<"dialog/respond">> {
    return this.#peer.call("dialog/respond", { dialogId, abstain: true }, options);
  }

  /**
   * Answers the dialogs of the session's extensions with `handler`: the open ones and all later ones, also after a lost
   * connection. An answer to a dialog that is reserved for another client waits until all clients may answer. Until the
   * responder is stopped, the daemon knows that a client can answer.
   */
  onDialog(handler: DialogHandler, options: DialogResponderOptions = {}): DialogResponder {
    return new DialogResponder(this.#peer, this.id, handler, options);
  }

  /** Returns pi's queue of users' messages, of all clients, in the order in which pi will insert them. */
  getQueue(options: CallOptions = {}): Promise<Result<"session/getQueue">> {
    return this.#peer.call("session/getQueue", { sessionId: this.id }, options);
  }

  /** Empties pi's queue of users' messages and drops the pushes that wait in it. */
  clearQueue(options: CallOptions = {}): Promise<Result<"session/clearQueue">> {
    return this.#peer.call("session/clearQueue", { sessionId: this.id }, options);
  }

  /** Streams the session's events from now on, or from a cursor. This call requests the subscription. */
  events(options: EventsOptions = {}): EventStream {
    return new EventStream(this.#peer, this.id, options);
  }

  /** Like {@link events}, with the daemon's own notifications about the session in addition to pi's events. */
  notifications(options: NotificationsOptions = {}): NotificationStream {
    return new NotificationStream(this.#peer, this.id, options);
  }

  /**
   * Calls `listener` with each notification in the moment of its arrival, from now on or after a cursor, until the returned
   * function is called. The listener must not throw.
   */
  listen(listener: FeedListener, { after, epoch }: ListenOptions = {}): () => void {
    this.#peer.joinFeed(this.id, listener, after, epoch);
    return () => this.#peer.leaveFeed(this.id, listener);
  }

  /** Streams the session's requests to its model's provider, from now on: when each was sent and how it ended. */
  providerEvents(options: ProviderEventsOptions = {}): ProviderEvents {
    return new ProviderEvents(this.#peer, this.id, options);
  }

  /**
   * Resolves when the session is idle: no run, no compaction, and no waiting call, prompt or push.
   * Rejects with `deadline_exceeded` after `timeoutMs` (default: 600000).
   */
  waitForIdle({
    signal,
    ...rest
  }: { readonly timeoutMs?: number } & CallOptions = {}): Promise<Result<"session/waitForIdle">> {
    return this.#peer.call("session/waitForIdle", { sessionId: this.id, ...rest }, callOptions(signal));
  }

  /**
   * Makes this client the session's controller for `ttlMs` (default: 60000), or renews that. With `policy: "exclusive"` no
   * other client may change the session. Rejects with `not_controller` while another client is the controller, unless
   * `takeOver` is true.
   */
  acquireControl({ signal, ...rest }: ControlOptions = {}): Promise<Control> {
    return this.#peer.call("session/acquireControl", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Releases the control, or hands it over to the connected client `to`. */
  releaseControl({ signal, ...rest }: { readonly to?: string } & CallOptions = {}): Promise<Control> {
    return this.#peer.call("session/releaseControl", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Returns a prompt's current state, with its text while pi has not stored it, so that a lost prompt can be sent again. */
  getPrompt(promptId: string, options: CallOptions = {}): Promise<Prompt> {
    return this.#peer.call("prompt/get", { promptId }, options);
  }

  /**
   * Sends a prompt and resolves with the text of the last assistant message when pi has settled, after tool calls, retries
   * and compaction. Rejects with `RunFailedError` if the run failed or was aborted, with `RunInterruptedError` if pi or
   * the daemon ended during it or the session was closed. `signal` ends the wait, not the run: see {@link abort}.
   */
  async promptAndWait(text: string, options: PromptOptions = {}): Promise<string> {
    const run = await this.runUntilSettled(text, options);
    if (run.outcome === "failed" || run.outcome === "aborted") throw new RunFailedError(run);
    if (run.outcome === "interrupted") throw new RunInterruptedError(this.id, run);
    return run.text;
  }

  /** Like {@link promptAndWait}, but resolves with the whole outcome, also of a failed or interrupted run. */
  async runUntilSettled(text: string, options: PromptOptions = {}): Promise<SettledRun> {
    options.signal?.throwIfAborted();
    return await this.prompt(text, options).settled(callOptions(options.signal));
  }

  #prompted(method: PromptMethod, text: string, { signal, ...rest }: PromptOptions): PromptCall {
    const taken = this.#peer.call(method, { ...rest, sessionId: this.id, text }, callOptions(signal));
    return promptCall(this.#peer, this.id, taken);
  }
}

type PromptMethod = "session/prompt" | "session/steer" | "session/followUp";

function callOptions(signal: AbortSignal | undefined): CallOptions {
  return signal === undefined ? {} : { signal };
}
