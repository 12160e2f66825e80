import { randomBytes } from "node:crypto";
import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import type {
  Dialog,
  DialogAnswer,
  DialogEnder,
  DialogPolicy,
  DialogResolution,
  DialogSummary,
} from "../../protocol/dialog.ts";
import { WireError } from "../../protocol/errors.ts";
import type { MonotonicClock } from "../lib/monotonic-clock.ts";
import type { Child } from "../pi/child.ts";
import type { PiCommand, PiEvent } from "../pi/records.ts";
import type { OwedNotification, SentAnswer } from "../store/children.ts";
import { openFor, reservedFor, unattendedFor } from "./dialog-policy.ts";
import { type AskedQuestion, checkAnswer, questionOf, replyTo } from "./dialog-question.ts";
import type { DialogOwner, DialogRegistry } from "./dialog-registry.ts";

/** A pi that reads its stdin while it lives. */
export type Reader = Pick<Child, "post" | "state"> & Partial<Pick<Child, "keeper">>;

export interface DialogsOptions {
  readonly sessionId: string;
  readonly registry: DialogRegistry;
  readonly policy: DialogPolicy;
  readonly clock: MonotonicClock;
  /** Notifies all subscribers. */
  readonly say: (
    method: "dialog/opened" | "dialog/updated" | "dialog/resolved",
    params: Readonly<Record<string, unknown>>,
  ) => void;
  /** Number of subscribers that can answer, without some of them. */
  readonly responders: (without?: ReadonlySet<string>) => number;
  /** Whether this subscriber can answer. */
  readonly canAnswer: (subscriberId: string) => boolean;
  /** The client whose prompt or push caused the current questions. */
  readonly owner: () => By | undefined;
  /** Whether this client may answer and has a subscription for it, other than some subscribers. */
  readonly isResponder: (clientId: string, without?: ReadonlySet<string>) => boolean;
  /**
   * Tells the extensions inside the child that no client can answer. Never rejects. Undefined: they cannot be told.
   */
  readonly announce: (child: Reader, dialog: DialogAnnouncement) => Promise<void> | undefined;
  /** Under which id a former daemon has told of this question. */
  readonly toldId: (requestId: string) => string | undefined;
  readonly runId: () => string | undefined;
  readonly generation: () => number;
  /** The child, if one reads its stdin. */
  readonly child: () => Reader | undefined;
  /** The first dialog was opened, or the last one ended. */
  readonly onPending: () => void;
  /** The first dialog of a run was opened, or the last one ended. */
  readonly onRunWaits: (isWaiting: boolean) => void;
  readonly log: Logger;
}

/** What the extensions inside pi are told about a dialog that no client can answer. */
export type DialogAnnouncement = Pick<Dialog, "requestId" | "method" | "title">;

interface OpenDialog {
  dialog: Dialog;
  /** How many questions there were before it. */
  readonly askedAfter: number;
  /** Until when only the owner may answer, on the monotonic clock. Undefined: all clients may. */
  reservedUntil: number | undefined;
  /** On the monotonic clock. */
  readonly endsAt: number;
  readonly endsBy: "pi" | "deadline";
  /** The subscribers that leave the answer to others: at most all that can answer. */
  readonly abstained: Set<string>;
  unattendedAt: number | undefined;
  stopTimer: () => void;
}

interface Sent {
  readonly reply: SentAnswer["reply"];
  /** On the monotonic clock. */
  readonly at: number;
}

interface Asked extends AskedQuestion {
  /** On the monotonic clock. */
  readonly at: number;
}

/** How a dialog ends, and the answer to pi. */
interface Ending {
  readonly how: DialogResolution["how"];
  readonly by: DialogEnder;
  readonly client?: By | undefined;
  readonly answer?: DialogAnswer | undefined;
  /** The client's call. */
  readonly callId?: string | undefined;
  /** Default: the current child. */
  readonly child?: Reader | undefined;
}

const dismissed: DialogAnswer = { cancelled: true };
const noSummaries: readonly DialogSummary[] = [];
const maxSummaryTitle = 200;
/** After this time pi has an answer that was written to it, or has ended. */
const maxOnTheWayMs = 10_000;
/** How long answers wait for an abort that pi has not got. */
const maxHeldMs = 1_000;
/** pi's own ids have 36 characters. */
const maxRequestId = 200;

/**
 * The questions of a session's extensions. Each is open until the first of: a valid answer, its deadline, the end of
 * its run or of its child, an abort. The first event removes it and notifies all subscribers once; later events have
 * no effect. pi gets an answer in all cases in which it may still wait.
 */
export class Dialogs implements DialogOwner {
  readonly #options: DialogsOptions;
  readonly #open = new Map<string, OpenDialog>();
  /** Asked while pi starts, when it does not read answers. */
  #early: Asked[] = [];
  #isRunWaiting = false;
  #asked = 0;
  /** Aborts in progress that pi has not got yet. */
  #coming = 0;
  /** Aborts in progress that pi has. */
  #aborts = 0;
  /** Answers that pi gets after an abort. */
  #held: (() => void)[] = [];
  /** Ended dialogs that the extensions are being told about. */
  #announcing = 0;
  /** Answers that the next daemon must send again if this one is killed. */
  readonly #sent = new Map<string, Sent>();
  /** Reports of ended dialogs that are not stored yet. */
  readonly #untold = new Set<OwedNotification>();
  #isResuming = false;

  constructor(options: DialogsOptions) {
    this.#options = options;
  }

  /** Number of questions so far. */
  get asked(): number {
    return this.#asked;
  }

  /** Number of open dialogs. */
  get size(): number {
    return this.#open.size;
  }

  find(dialogId: string): Dialog | undefined {
    return this.#open.get(dialogId)?.dialog;
  }

  /** The open dialogs, oldest first. */
  summaries(): readonly DialogSummary[] {
    if (this.#open.size === 0) return noSummaries;
    return Array.from(this.#open.values(), ({ dialog: { dialogId, requestId, method, title, deadline } }) => ({
      dialogId,
      requestId,
      method,
      title: title.slice(0, maxSummaryTitle),
      deadline,
    }));
  }

  /** Reads an event of pi, which may be a question. */
  look(event: PiEvent): void {
    const question = questionOf(event);
    if (question === undefined) return;
    const isLarge = question.bytes > this.#options.registry.limits.maxDialogBytes;
    // A question that will be refused for its size is not kept in full until then.
    const asked = { ...(isLarge ? outlineOf(question) : question), at: this.#options.clock.now() };
    if (this.#options.child() !== undefined) this.#ask(asked);
    else if (this.#early.length < this.#options.registry.limits.maxDialogsPerSession) this.#early.push(asked);
  }

  /** Another child starts: questions of the previous one are void. */
  childStarting(): void {
    this.#early = [];
  }

  /** The child reads from now on, so its waiting questions can be offered. */
  childReady(): void {
    const early = this.#early;
    this.#early = [];
    for (const asked of early) this.#ask(asked);
  }

  /** Throws `dialog_reserved` and `invalid_params`, and leaves the dialog open. */
  respond(
    dialogId: string,
    answer: DialogAnswer,
    client: By | undefined,
    callId: string | undefined,
  ): DialogResolution | undefined {
    const entry = this.#open.get(dialogId);
    if (entry === undefined) return undefined;
    this.#refuseOthers(entry, client);
    checkAnswer(entry.dialog, answer, this.#options.registry.limits.maxAnswerBytes);
    const how = "cancelled" in answer ? "cancelled" : "answered";
    return this.#end(entry, { how, by: "client", client, answer, callId });
  }

  /** Throws `invalid_request` if this subscriber could not answer. */
  abstain(dialogId: string, subscriberId: string): DialogResolution | undefined {
    const entry = this.#open.get(dialogId);
    if (entry === undefined) return undefined;
    if (!this.#options.canAnswer(subscriberId))
      throw new WireError(
        "invalid_request",
        "Only a connection that follows the session and can answer its dialogs can abstain.",
      );
    entry.abstained.add(subscriberId);
    this.ownersChanged();
    return this.#endIfAllAbstain(entry);
  }

  /** A client that can answer has connected or gone. */
  respondersChanged(): void {
    for (const entry of this.#open.values()) this.#leave(entry, this.#leftMs(entry));
    this.ownersChanged();
  }

  /** How long the dialog may stay open now. Undefined: a client can answer. */
  #leftMs({ abstained }: OpenDialog): number | undefined {
    const { policy, registry, responders } = this.#options;
    const { limits } = registry;
    const ms = unattendedFor(policy, "left", limits);
    if (responders() === 0) return ms;
    // Those that are left have abstained. Another one may have lost its connection, and return.
    return responders(abstained) === 0 ? Math.min(ms ?? Number.POSITIVE_INFINITY, limits.maxAwayMs) : undefined;
  }

  /** Nobody is left who would answer: the dialog does not wait for its deadline, under any policy. */
  #endIfAllAbstain(entry: OpenDialog): DialogResolution | undefined {
    const { abstained } = entry;
    for (const id of abstained) if (!this.#options.canAnswer(id)) abstained.delete(id);
    if (abstained.size === 0 || this.#options.responders(abstained) > 0) return undefined;
    return this.#end(entry, { how: "cancelled", by: "no_responder", answer: dismissed });
  }

  /** A client can no longer answer, may not or does not want to: its dialogs are open to others immediately. */
  ownersChanged(): void {
    for (const entry of this.#open.values()) {
      const { owner, dialogId, requestId } = entry.dialog;
      if (!this.#isReserved(entry) || owner === undefined) continue;
      if (this.#options.isResponder(owner.clientId, entry.abstained)) continue;
      const openToOthersAt = Date.now();
      entry.reservedUntil = undefined;
      entry.dialog = { ...entry.dialog, openToOthersAt };
      this.#options.say("dialog/updated", { dialogId, requestId, openToOthersAt });
    }
  }

  /** A run has settled: pi no longer waits for its questions, or must not. */
  runSettled(runId: string | undefined): void {
    for (const entry of this.#all()) {
      // If its signal ended the dialog, pi ignores the answer; otherwise pi must not be left waiting.
      if (entry.dialog.runId === runId && runId !== undefined) {
        this.#end(entry, { how: "ended", by: "pi", answer: dismissed });
      }
    }
  }

  /** Dismisses all dialogs in pi, or those asked after a number of questions. */
  cancelAll(by: "abort" | "clear_queue", after = 0): void {
    for (const entry of this.#all()) {
      if (entry.askedAfter >= after) this.#end(entry, { how: "cancelled", by, answer: dismissed });
    }
  }

  /** The child has ended, or belongs to another session, which does not offer questions of this one. */
  childEnded(child: Reader): void {
    const by = child.state.kind === "exited" ? "child_exited" : "pi";
    for (const entry of this.#all()) this.#end(entry, { how: "ended", by, answer: dismissed, child });
  }

  /** The child is about to be ended. */
  endAll(by: "hibernate" | "close"): void {
    for (const entry of this.#all()) this.#end(entry, { how: "ended", by });
  }

  /**
   * `work` calls its argument when pi has the abort. From then on until it has ended, open and new dialogs are cancelled,
   * because pi's abort waits for them (measured). Before that, answers wait: one that reached pi before the abort would let
   * a tool go on. They do not wait long, because pi may need one before it takes the abort.
   */
  async whileAborting<T>(work: (onSent: () => void) => Promise<T>): Promise<T> {
    let isSent = false;
    const onSent = (): void => {
      if (isSent) return;
      isSent = true;
      stopTimer();
      this.#coming -= 1;
      this.#aborts += 1;
      this.#release();
      this.cancelAll("abort");
    };
    this.#coming += 1;
    const stopTimer = this.#options.clock.after(maxHeldMs, onSent);
    try {
      return await work(onSent);
    } finally {
      stopTimer();
      if (isSent) this.#aborts -= 1;
      else {
        this.#coming -= 1;
        this.#release();
      }
    }
  }

  /**
   * Goes on with the dialogs of a former daemon, whose child lives. Their clients may come back. pi ignores a second
   * answer. {@link resumed} follows.
   */
  resume(child: Reader, answers: readonly SentAnswer[]): void {
    const { registry, policy, clock, sessionId } = this.#options;
    this.#isResuming = true;
    for (const { dialogId, reply } of answers) {
      this.#sent.set(dialogId, { reply, at: clock.now() });
      child.post(reply as unknown as PiCommand);
    }
    for (const dialog of registry.takeLeft(sessionId)) {
      const { unattendedUntil: _, openToOthersAt: __, ...rest } = dialog;
      const endsAt = clock.now() + Math.max(0, dialog.deadline - Date.now());
      const stopTimer = (): void => {};
      const times = { reservedUntil: undefined, endsAt, endsBy: "deadline", unattendedAt: undefined } as const;
      const entry: OpenDialog = { dialog: rest, askedAfter: this.#asked, ...times, abstained: new Set(), stopTimer };
      this.#open.set(dialog.dialogId, entry);
      registry.reopened(this, rest, Buffer.byteLength(JSON.stringify(rest)));
      this.#leave(entry, unattendedFor(policy, "left", registry.limits));
    }
    this.#noteRun();
  }

  /** What happened without a daemon is known. */
  resumed(): void {
    this.#isResuming = false;
  }

  /** Answers that pi may not have got. */
  get answers(): readonly SentAnswer[] {
    const oldest = this.#options.clock.now() - maxOnTheWayMs;
    for (const [dialogId, { at }] of this.#sent) if (at < oldest) this.#sent.delete(dialogId);
    return Array.from(this.#sent, ([dialogId, { reply }]) => ({ dialogId, reply }));
  }

  /** Reports of ended dialogs that are stored, or being stored. */
  get owed(): readonly OwedNotification[] {
    return [...this.#untold];
  }

  /** A former daemon was killed, and its child has ended. */
  recover(): void {
    for (const dialog of this.#options.registry.takeLeft(this.#options.sessionId)) {
      this.#tell(dialog, { how: "ended", by: "daemon_restart" }, true);
    }
  }

  #ask({ question, timeoutMs, bytes, at }: Asked): void {
    const { registry, clock, policy, log } = this.#options;
    const { limits } = registry;
    for (const { dialog } of this.#open.values()) {
      if (dialog.requestId !== question.requestId) continue;
      log.warn({ requestId: question.requestId }, "pi asks the same question twice; it is open already");
      return;
    }
    const askedAfter = this.#asked;
    this.#asked += 1;
    const { ms, by: endsBy } = openFor(policy, timeoutMs, limits);
    const endsAt = at + ms;
    const { sessionId, runId: runIdOf, generation } = this.#options;
    const runId = runIdOf();
    const openedAt = Date.now();
    const owner = this.#options.owner();
    const openMs = endsAt - clock.now();
    const reservedMs =
      owner !== undefined && this.#options.isResponder(owner.clientId) ? reservedFor(openMs, limits) : 0;
    const dialog: Dialog = {
      // Letters and digits only: a command line cannot mistake it for an option.
      dialogId: this.#options.toldId(question.requestId) ?? randomBytes(16).toString("hex"),
      sessionId,
      generation: generation(),
      ...(runId === undefined ? {} : { runId }),
      ...question,
      ...(owner === undefined ? {} : { owner }),
      ...(reservedMs > 0 ? { openToOthersAt: openedAt + reservedMs } : {}),
      openedAt,
      deadline: Math.max(openedAt, Math.round(openedAt + openMs)),
      state: "open",
    };
    const refusal = this.#refusal(dialog, bytes, endsAt);
    if (refusal !== undefined) {
      this.#tell(dialog, refusal, false);
      return;
    }
    const entry: OpenDialog = {
      dialog,
      askedAfter,
      reservedUntil: reservedMs > 0 ? clock.now() + reservedMs : undefined,
      endsAt,
      endsBy,
      abstained: new Set(),
      unattendedAt: undefined,
      stopTimer: () => {},
    };
    this.#open.set(dialog.dialogId, entry);
    const isAttended = this.#options.responders() > 0;
    this.#leave(entry, isAttended ? undefined : this.#unattendedMs);
    registry.opened(this, entry.dialog, bytes);
    this.#options.say("dialog/opened", { dialog: entry.dialog });
    if (this.#open.size === 1) this.#options.onPending();
    this.#noteRun();
  }

  /** Why a question is not offered to clients. */
  #refusal({ requestId, options = [] }: Dialog, bytes: number, endsAt: number): Ending | undefined {
    const { registry, clock, responders } = this.#options;
    const { limits } = registry;
    // pi applies its default by itself in a moment.
    if (endsAt <= clock.now()) return { how: "ended", by: "pi" };
    const cancelled = (by: DialogEnder): Ending => ({ how: "cancelled", by, answer: dismissed });
    if (this.#aborts > 0) return cancelled("abort");
    if (bytes > limits.maxDialogBytes || options.length > limits.maxDialogOptions || requestId.length > maxRequestId)
      return cancelled("too_large");
    // Announcements count too: an extension that asks endlessly must not cause endless frames.
    if (this.#open.size + this.#announcing >= limits.maxDialogsPerSession || !registry.hasRoom(bytes))
      return cancelled("too_many");
    if (responders() === 0 && this.#unattendedMs === 0) return cancelled("no_responder");
    return undefined;
  }

  /** How long a new dialog may be open without a client that can answer. */
  get #unattendedMs(): number | undefined {
    const { policy, registry } = this.#options;
    return unattendedFor(policy, this.#isResuming ? "left" : "opened", registry.limits);
  }

  #isReserved({ reservedUntil }: OpenDialog): boolean {
    return reservedUntil !== undefined && this.#options.clock.now() < reservedUntil;
  }

  /** Throws `dialog_reserved` where only the dialog's owner may answer now, and this is another client. */
  #refuseOthers(entry: OpenDialog, client: By | undefined): void {
    const { owner, title, openToOthersAt, dialogId } = entry.dialog;
    const { reservedUntil = 0 } = entry;
    if (owner === undefined || owner.clientId === client?.clientId || !this.#isReserved(entry)) return;
    const retryAfterMs = Math.max(1, Math.ceil(reservedUntil - this.#options.clock.now()));
    const whose = owner.name === undefined ? owner.clientId : `${owner.name} (${owner.clientId})`;
    throw new WireError(
      "dialog_reserved",
      `The dialog "${title.slice(0, maxSummaryTitle)}" is for ${whose} first, whose prompt led to it. Answer it again in ${retryAfterMs} ms.`,
      { dialogId, owner, openToOthersAt, retryAfterMs },
    );
  }

  /** Starts the time without a client that can answer; undefined: no limit. */
  #leave(entry: OpenDialog, ms: number | undefined): void {
    const { clock } = this.#options;
    entry.unattendedAt = ms === undefined ? undefined : clock.now() + ms;
    const { unattendedUntil: _, ...rest } = entry.dialog;
    entry.dialog = ms === undefined ? rest : { ...rest, unattendedUntil: Date.now() + ms };
    entry.stopTimer();
    const nextAt = Math.min(entry.endsAt, entry.unattendedAt ?? Number.POSITIVE_INFINITY);
    entry.stopTimer = clock.after(nextAt - clock.now(), () => this.#timeUp(entry));
  }

  #timeUp(entry: OpenDialog): void {
    const { clock } = this.#options;
    const { endsAt, endsBy, unattendedAt = Number.POSITIVE_INFINITY } = entry;
    const now = clock.now();
    // A timer may fire a moment early.
    if (now < Math.min(endsAt, unattendedAt)) {
      entry.stopTimer = clock.after(Math.min(endsAt, unattendedAt) - now + 1, () => this.#timeUp(entry));
    } else if (unattendedAt < endsAt) {
      this.#end(entry, { how: "cancelled", by: "no_responder", answer: dismissed });
    } else if (endsBy === "pi") {
      this.#end(entry, { how: "ended", by: "pi" });
    } else {
      this.#end(entry, { how: "cancelled", by: "deadline", answer: dismissed });
    }
  }

  /** Ends an open dialog; ignores others. */
  #end(entry: OpenDialog, ending: Ending): DialogResolution | undefined {
    if (!this.#open.delete(entry.dialog.dialogId)) return undefined;
    entry.stopTimer();
    const resolution = this.#tell(entry.dialog, ending, true);
    if (this.#open.size === 0) this.#options.onPending();
    this.#noteRun();
    return resolution;
  }

  #noteRun(): void {
    const isWaiting = [...this.#open.values()].some(({ dialog }) => dialog.runId !== undefined);
    if (isWaiting === this.#isRunWaiting) return;
    this.#isRunWaiting = isWaiting;
    this.#options.onRunWaits(isWaiting);
  }

  #tell(
    { unattendedUntil: _, ...dialog }: Dialog,
    { how, by, client, answer, callId, child = this.#options.child() }: Ending,
    wasOpen: boolean,
  ): DialogResolution {
    const resolution: DialogResolution = { how, by, ...(client === undefined ? {} : { client }), at: Date.now() };
    const isAnswered = answer !== undefined && child !== undefined;
    const isKept = isAnswered && child.keeper !== undefined;
    const ended = { ...dialog, state: "resolved", resolution, callId } as const;
    const stored = this.#options.registry.ended(ended, wasOpen, isKept);
    const { dialogId, requestId, method, title } = dialog;
    const { at: _at, ...end } = resolution;
    const params = {
      dialogId,
      requestId: requestId.slice(0, maxRequestId),
      method,
      title: title.slice(0, maxSummaryTitle),
      ...end,
    };
    const tell = (): void => {
      if (isAnswered) this.#reply(child, dialog, answer, by);
      this.#options.say("dialog/resolved", params);
    };
    stored.catch(() => {});
    if (!isAnswered || !isKept) {
      tell();
      return resolution;
    }
    // If this daemon is killed, pi gets the answer from the next one; or the dialog is open, and nobody has heard of it.
    const notification = { method: "dialog/resolved", params } as const;
    this.#sent.set(dialogId, { reply: { ...replyTo(dialog, answer) }, at: this.#options.clock.now() });
    this.#untold.add(notification);
    void this.#options.registry.stored(dialogId).then(() => {
      this.#untold.delete(notification);
      tell();
    });
    return resolution;
  }

  /**
   * Sends pi its answer. If no client could answer, the extensions are told first, so that they know when pi
   * continues.
   */
  #reply(child: Reader, dialog: Dialog, answer: DialogAnswer, by: DialogEnder): void {
    const reply = replyTo(dialog, answer);
    const { requestId, method, title } = dialog;
    const announced =
      by === "no_responder"
        ? this.#options.announce(child, { requestId, method, title: title.slice(0, maxSummaryTitle) })
        : undefined;
    if (announced === undefined) {
      this.#post(child, reply, by);
      return;
    }
    const { clock, registry } = this.#options;
    let isOver = false;
    const answerNow = (): void => {
      if (isOver) return;
      isOver = true;
      stopTimer();
      this.#announcing -= 1;
      this.#post(child, reply, by);
    };
    this.#announcing += 1;
    const stopTimer = clock.after(registry.limits.announceMs, answerNow);
    void announced.then(answerNow);
  }

  #post(child: Reader, reply: PiCommand, by: DialogEnder): void {
    if (this.#coming > 0 && this.#aborts === 0 && by !== "abort") this.#held.push(() => child.post(reply));
    else child.post(reply);
  }

  #release(): void {
    const held = this.#held;
    this.#held = [];
    for (const post of held) post();
  }

  #all(): readonly OpenDialog[] {
    return [...this.#open.values()];
  }
}

/** The reported part of a question that is too large. */
function outlineOf({ question: { requestId, method, title }, ...asked }: AskedQuestion): AskedQuestion {
  return { ...asked, question: { requestId, method, title: title.slice(0, maxSummaryTitle) } };
}
