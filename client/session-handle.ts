import { v7 as uuidv7 } from "uuid";
import type { Control } from "../protocol/control.ts";
import type { Dialog, DialogAnswer } from "../protocol/dialog.ts";
import type { Params, Result } from "../protocol/methods.ts";
import type { Prompt } from "../protocol/prompt.ts";
import type { SessionInfo } from "../protocol/session.ts";
import type { EntryLabel } from "../protocol/tree.ts";
import type { CallOptions, DaemonPeer } from "./daemon-peer.ts";
import { DeliveryHandle } from "./delivery.ts";
import { DeliveryChanges, type DeliveryChangesOptions } from "./delivery-changes.ts";
import { answerWhenOpen, type DialogHandler, DialogResponder, type DialogResponderOptions } from "./dialogs.ts";
import { EventStream, type EventsOptions } from "./event-stream.ts";
import { RunFailedError, RunInterruptedError } from "./local-errors.ts";
import { NotificationStream, type NotificationsOptions } from "./notification-stream.ts";
import { ProviderEvents, type ProviderEventsOptions } from "./provider-events.ts";
import { type PromptCall, promptCall, type SettledRun } from "./settled-run.ts";

/** `expectedRunId`: rejects with `run_mismatch` where another run is on, or none. */
export type AbortOptions = Pick<Params<"session/abort">, "expectedRunId"> & CallOptions;
/** What a user's message may have in addition to its text. */
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
export type CommandOptions = Omit<Params<"session/command">, "sessionId" | "command"> & CallOptions;

/**
 * One session of the daemon's. The object holds nothing but the id: making one costs no call, and dropping it changes
 * nothing for the session.
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

  /** What the daemon last said about the session to this object, by `createSession` or {@link get}. */
  get info(): SessionInfo | undefined {
    return this.#info;
  }

  /** The session as it is now. */
  async get(options: CallOptions = {}): Promise<SessionInfo> {
    this.#info = await this.#peer.call("session/get", { sessionId: this.id }, options);
    return this.#info;
  }

  /**
   * Gives pi a user's prompt; resolves when pi has taken it, not when the run has ended. While a run is on it rejects
   * with `session_busy`, unless `ifRunning` says `steer` or `followUp`. `settled()` of what it gives waits for the run.
   */
  prompt(text: string, options: PromptOptions = {}): PromptCall {
    return this.#prompted("session/prompt", text, options);
  }

  /** Puts a user's message into the run before its next request. While idle it acts as a prompt. */
  steer(text: string, options: SteerOptions = {}): PromptCall {
    return this.#prompted("session/steer", text, options);
  }

  /** Gives the agent a user's message for when it would stop. While idle it acts as a prompt. */
  followUp(text: string, options: MessageOptions = {}): PromptCall {
    return this.#prompted("session/followUp", text, options);
  }

  /** Aborts the run and resolves when the session is idle; `aborted` is false if there was none. */
  abort({ expectedRunId, ...options }: AbortOptions = {}): Promise<Result<"session/abort">> {
    const only = expectedRunId === undefined ? {} : { expectedRunId };
    return this.#peer.call("session/abort", { sessionId: this.id, ...only }, options);
  }

  /**
   * Runs a shell command in the session's directory and resolves when it has ended; aborting `signal` ends it. One runs at
   * a time in a session. Its output comes as `bash_execution_update` events whose id is `bash:` and the `bashId`, and is
   * in the context of the next prompt unless `excludeFromContext` is true.
   */
  bash(command: string, { signal, ...rest }: BashOptions = {}): Promise<Result<"session/bash">> {
    return this.#peer.call("session/bash", { ...rest, sessionId: this.id, command }, callOptions(signal));
  }

  /** Replaces what is old in the context by a summary; resolves when it is done. `session_busy` while a run is on. */
  compact({ signal, ...rest }: CompactOptions = {}): Promise<Result<"session/compact">> {
    return this.#peer.call("session/compact", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Gives the session another model. Rejects with `model_not_found` where pi has none of this name, or no login for it. */
  setModel(provider: string, modelId: string, options: CallOptions = {}): Promise<Result<"session/setModel">> {
    return this.#peer.call("session/setModel", { sessionId: this.id, provider, modelId }, options);
  }

  /** Sends any other command of pi's RPC (docs/rpc-commands.md of pi) and resolves with its `data`. */
  async command(command: PiCommand, options: CommandOptions = {}): Promise<unknown> {
    const { signal, ...rest } = options;
    const params = { ...rest, sessionId: this.id, command };
    return (await this.#peer.call("session/command", params, callOptions(signal))).data;
  }

  /** Ends the session's pi and forgets the session. Its event streams here end. */
  async close(options: CallOptions = {}): Promise<Result<"session/close">> {
    const result = await this.#peer.call("session/close", { sessionId: this.id }, options);
    this.#peer.closeFeed(this.id);
    return result;
  }

  /**
   * Makes a new session of what stands before one of the user's messages, and gives the text of that message too. The new
   * session has the pi; this one goes on as one that has hibernated.
   */
  async fork(
    entryId: string,
    options: CallOptions = {},
  ): Promise<{ readonly session: SessionHandle; readonly text?: string }> {
    const { session, text } = await this.#peer.call("session/fork", { sessionId: this.id, entryId }, options);
    const handle = new SessionHandle(this.#peer, session.sessionId, session);
    return { session: handle, ...(text === undefined ? {} : { text }) };
  }

  /** As {@link fork}, with the whole active branch. */
  async clone(options: CallOptions = {}): Promise<SessionHandle> {
    const { session } = await this.#peer.call("session/clone", { sessionId: this.id }, options);
    return new SessionHandle(this.#peer, session.sessionId, session);
  }

  /**
   * Goes on from another entry of the session's tree, in the same session. Of a user's or a custom message: before it, and
   * the result has its text. With `summarize`, the model sums up what is left. Rejects with `session_busy` while a run is
   * on; `outcome: "cancelled"` where an extension does not allow it. Subscribers hear of it by `session/navigated`.
   */
  navigate(entryId: string, { signal, ...rest }: NavigateOptions = {}): Promise<Result<"session/navigate">> {
    return this.#peer.call("session/navigate", { ...rest, sessionId: this.id, entryId }, callOptions(signal));
  }

  /** Gives an entry of the session a label, or removes it with `null`. */
  async setLabel(entryId: string, label: string | null, options: CallOptions = {}): Promise<void> {
    await this.#peer.call("session/setLabel", { sessionId: this.id, entryId, label }, options);
  }

  /** The labels of the session's entries, in the order in which they were set. */
  async labels(options: CallOptions = {}): Promise<readonly EntryLabel[]> {
    return (await this.#peer.call("session/listLabels", { sessionId: this.id }, options)).labels;
  }

  /** Goes on with the session's file as it is now, whoever has written to it. */
  async reload(options: CallOptions = {}): Promise<SessionInfo> {
    this.#info = await this.#peer.call("session/reload", { sessionId: this.id }, options);
    return this.#info;
  }

  /** Ends the session's pi, forgets the session and deletes its file, for good. Its event streams here end. */
  async delete(options: CallOptions = {}): Promise<Result<"session/delete">> {
    const result = await this.#peer.call("session/delete", { sessionId: this.id, confirm: true }, options);
    this.#peer.closeFeed(this.id);
    return result;
  }

  /**
   * Sends a custom message to the agent; the handle it gives at once tells how far the message has come. Nothing has
   * to be awaited: a refused push rejects `accepted` and is told to `onDiagnostic`, and is never an unhandled rejection.
   *
   * `signal` ends the handle's waits (the push may be stored all the same).
   */
  push(params: PushParams, options: CallOptions = {}): DeliveryHandle {
    const id = params.deliveryId ?? uuidv7();
    const accepted = this.#peer.call("delivery/push", { ...params, sessionId: this.id, deliveryId: id }, options);
    accepted.catch((error: unknown) => this.#peer.diagnose({ kind: "push_failed", deliveryId: id, error }));
    return new DeliveryHandle({ peer: this.#peer, sessionId: this.id, id, accepted, signal: options.signal });
  }

  /** A delivery that was pushed before, by this client or another. `accepted` tells whether the daemon knows it. */
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

  /** The session's deliveries as they change, from now on, whoever pushed them. */
  deliveryChanges(options: DeliveryChangesOptions = {}): DeliveryChanges {
    return new DeliveryChanges(this.#peer, this.id, options);
  }

  /** The session's open dialogs, the oldest first; at most the first 500. */
  async dialogs(options: CallOptions = {}): Promise<readonly Dialog[]> {
    return (await this.#peer.call("dialog/list", { sessionId: this.id, limit: 500 }, options)).dialogs;
  }

  /**
   * Answers a dialog. One that is for another client first is answered as soon as others may. Rejects with `stale` when it
   * has ended already, with `invalid_params` when this is not an answer to it.
   */
  respond(dialogId: string, answer: DialogAnswer, options: CallOptions = {}): Promise<Result<"dialog/respond">> {
    return answerWhenOpen(() => this.#peer.call("dialog/respond", { dialogId, answer }, options), options);
  }

  /**
   * Answers the questions of the session's extensions by `handler`, from those that are open now on, and also after the
   * connection was lost. An answer to one that is for another client first waits until others may answer. While it goes on, the daemon knows that somebody is there who can answer.
   */
  onDialog(handler: DialogHandler, options: DialogResponderOptions = {}): DialogResponder {
    return new DialogResponder(this.#peer, this.id, handler, options);
  }

  /** pi's queue of users' messages, of all clients, in the order in which pi takes them in. */
  getQueue(options: CallOptions = {}): Promise<Result<"session/getQueue">> {
    return this.#peer.call("session/getQueue", { sessionId: this.id }, options);
  }

  /** Empties pi's queue of users' messages, and drops the pushes that are to go with it. */
  clearQueue(options: CallOptions = {}): Promise<Result<"session/clearQueue">> {
    return this.#peer.call("session/clearQueue", { sessionId: this.id }, options);
  }

  /** The session's events from now on, or from a cursor. The subscription is requested by this call. */
  events(options: EventsOptions = {}): EventStream {
    return new EventStream(this.#peer, this.id, options);
  }

  /** All that the daemon tells of the session, from now on or from a cursor: as {@link events}, beside pi's events too. */
  notifications(options: NotificationsOptions = {}): NotificationStream {
    return new NotificationStream(this.#peer, this.id, options);
  }

  /** The session's requests to its model's provider, from now on: when each left, and how it ended. */
  providerEvents(options: ProviderEventsOptions = {}): ProviderEvents {
    return new ProviderEvents(this.#peer, this.id, options);
  }

  /**
   * Resolves when nothing is under way in the session: no run, no compaction, no call, prompt or push that waits.
   * Rejects with `deadline_exceeded` after `timeoutMs` (default: 600000).
   */
  waitForIdle({
    signal,
    ...rest
  }: { readonly timeoutMs?: number } & CallOptions = {}): Promise<Result<"session/waitForIdle">> {
    return this.#peer.call("session/waitForIdle", { sessionId: this.id, ...rest }, callOptions(signal));
  }

  /**
   * Makes this client the session's controller for `ttlMs` (default: 60000), or renews that; with `policy: "exclusive"`
   * nobody else may change anything then. Rejects with `not_controller` while another has it, unless `takeOver` is true.
   */
  acquireControl({ signal, ...rest }: ControlOptions = {}): Promise<Control> {
    return this.#peer.call("session/acquireControl", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** Gives the control up, or hands it over to the connected client `to`. */
  releaseControl({ signal, ...rest }: { readonly to?: string } & CallOptions = {}): Promise<Control> {
    return this.#peer.call("session/releaseControl", { ...rest, sessionId: this.id }, callOptions(signal));
  }

  /** A prompt as it is now, with its whole text as long as that stands nowhere else: a lost one can be sent again. */
  getPrompt(promptId: string, options: CallOptions = {}): Promise<Prompt> {
    return this.#peer.call("prompt/get", { promptId }, options);
  }

  /**
   * Prompts and resolves with the text of the last assistant message when pi has settled: through tool calls, retries
   * and compaction. Rejects with `RunFailedError` if the run failed or was aborted, with `RunInterruptedError` if pi or
   * the daemon ended in it, or the session was closed. `signal` ends the wait, not the run: see {@link abort}.
   */
  async promptAndWait(text: string, options: PromptOptions = {}): Promise<string> {
    const run = await this.runUntilSettled(text, options);
    if (run.outcome === "failed" || run.outcome === "aborted") throw new RunFailedError(run);
    if (run.outcome === "interrupted") throw new RunInterruptedError(this.id, run);
    return run.text;
  }

  /** As {@link promptAndWait}, with all there is to know of the run; a failed or interrupted run resolves too. */
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
