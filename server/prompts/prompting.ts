import { v7 as uuidv7 } from "uuid";
import type { By } from "../../protocol/client-identity.ts";
import type { ImageBlock } from "../../protocol/content.ts";
import { WireError } from "../../protocol/errors.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import type { Disposition, IfRunning, PromptResult } from "../../protocol/prompt.ts";
import type { SessionCosts } from "../context/cost/session-costs.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { SessionState } from "../core/session-state.ts";
import type { Pushing } from "../delivery/pushing.ts";
import type { Dialogs } from "../dialogs/dialogs.ts";
import { canonicalHash } from "../lib/canonical-json.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import type { Child } from "../pi/child.ts";
import type { PiResponse } from "../pi/records.ts";
import type { StoredPrompt } from "../store/prompts.ts";
import type { PromptLedger, QueuedMessage } from "./prompt-ledger.ts";
import { type QueueKind, queuedTexts } from "./queued-texts.ts";

export interface PromptRequest {
  /** Chosen by the client. Default: a UUIDv7. */
  readonly promptId?: string | undefined;
  /** Resolves when earlier writes that must precede the prompt are on disk. If it rejects, nothing is stored. */
  readonly reserved?: Promise<void> | undefined;
  /** Stores it together with this group, or not at all. */
  readonly group?: string | undefined;
  readonly by?: By | undefined;
  readonly text: string;
  readonly images?: readonly ImageBlock[] | undefined;
  readonly ifRunning: IfRunning;
  /** Only for this run. */
  readonly expectedRunId?: string | undefined;
  readonly ifIdle?: "prompt" | "refuse" | undefined;
  /** If it aborts before the prompt's turn, the prompt is not written. */
  readonly signal?: AbortSignal | undefined;
  /** Called at the place of pi's response in the order of its records. */
  readonly atResponse?: (() => void) | undefined;
}

export interface AbortRequest {
  readonly by?: By | undefined;
  readonly expectedRunId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called at the place of pi's response in the order of its records. */
  readonly atResponse?: (() => void) | undefined;
}

export interface PromptingParts {
  readonly ledger: PromptLedger;
  /** pi waits for open dialogs before it takes a prompt, or ends an aborted run. */
  readonly dialogs: Pick<Dialogs, "cancelAll" | "whileAborting" | "asked">;
  /** Pushes that wait for a prompt go into the transcript before it. */
  readonly pushing: Pick<Pushing, "beforePrompt" | "handOver">;
  /** A spent budget refuses prompts. */
  readonly costs: Pick<SessionCosts, "admitPrompt">;
}

/** How long an abort in progress keeps the session's turn. */
const abortTurnMs = 1_000;
/** A store that does not answer delays an abort no longer than this. */
const maxSilenceMs = 2_000;
/** pi may compact between two requests of a run. */
const maxBetweenMs = 1_000;
/** A run whose tool ignores the abort continues; the caller then gets an error. */
const abortTimeoutMs = 30_000;

/**
 * Sends prompts to pi, one at a time: pi loses one of two that are written before the first is answered, and an abort
 * right after one (measured on both versions). The next may follow pi's response, or a run that begins before it: an
 * extension's command handler may start a run and wait for it before pi answers.
 */
export class Prompting {
  readonly #core: SessionCore;
  readonly #ledger: PromptLedger;
  readonly #dialogs: Pick<Dialogs, "cancelAll" | "whileAborting" | "asked">;
  readonly #pushing: Pick<Pushing, "beforePrompt" | "handOver">;
  readonly #costs: Pick<SessionCosts, "admitPrompt">;
  /** Prompts that pi has not answered yet. */
  readonly #known = new Map<string, UnderWay>();
  /** The number of questions before the prompt that pi has received and not taken yet. */
  #gatedAfter: number | undefined;
  /** The last run that a client aborted. */
  #abortedRun: string | undefined;

  constructor(core: SessionCore, { ledger, dialogs, pushing, costs }: PromptingParts) {
    this.#core = core;
    this.#ledger = ledger;
    this.#dialogs = dialogs;
    this.#pushing = pushing;
    this.#costs = costs;
  }

  /**
   * Resolves when pi has taken the prompt. Its text is on disk before pi receives it. A used id returns the state of
   * its prompt; then nothing is written. If the caller goes away, the call ends and the prompt continues. Throws
   * `session_busy`, `refused_by_pi`, `forbidden`, `child_exited`, `conflict`, `prompt_lost`, `overloaded`,
   * `run_mismatch`, `session_idle`.
   */
  async prompt(request: PromptRequest): Promise<PromptResult> {
    const { promptId = uuidv7(), signal, text, images, ifRunning } = request;
    const underWay = request.promptId === undefined ? undefined : this.#known.get(promptId);
    // A prompt whose caller went away before its turn will not be written.
    const known = underWay?.isDropped() === true ? undefined : underWay;
    const hash = canonicalHash({ text, images: images ?? [], ifRunning });
    if (known !== undefined && known.hash !== hash) throw conflict(promptId);
    const stored = known === undefined && request.promptId !== undefined ? this.#ledger.find(promptId) : undefined;
    if (stored !== undefined) return await this.#again(stored, hash, signal);
    const result = known?.result ?? this.#first({ ...request, promptId, hash });
    try {
      return await (signal === undefined ? result : unlessAborted(result, signal));
    } catch (error) {
      throw withPromptId(error, promptId);
    }
  }

  /**
   * Resolves when the session is idle; returns whether there was a run to abort. Throws `deadline_exceeded` when a
   * tool ignores the abort.
   */
  async abort(request: AbortRequest = {}): Promise<boolean> {
    const { signal } = request;
    // The abort continues after its caller went away.
    const aborted = this.#dialogs.whileAborting((onSent) => this.#abort(request, onSent));
    return await (signal === undefined ? aborted : unlessAborted(aborted, signal));
  }

  async #abort({ by, expectedRunId, atResponse }: AbortRequest, onSent: () => void): Promise<boolean> {
    await this.#core.leftOver();
    this.#requireRun(expectedRunId);
    const waiting = AbortSignal.timeout(abortTimeoutMs);
    if (this.#gatedAfter !== undefined) this.#dialogs.cancelAll("abort", this.#gatedAfter);
    const turn = this.#core.scope.overtake(async () => {
      this.#requireRun(expectedRunId);
      const stored = this.#core.abortSent(by);
      stored.catch(() => {});
      this.#abortedRun = this.#core.runId;
      // The next daemon must know who aborted, if this one is killed when pi has it.
      if (survives(this.#core.state)) await within(stored, maxSilenceMs).catch(() => {});
      this.#requireRun(expectedRunId);
      const { state } = this.#core;
      if (state.kind !== "running" && state.kind !== "idle") return undefined;
      const response = state.child.send({ type: "abort" }, defined({ onResponse: atResponse }));
      onSent();
      const done = this.#aborted({ child: state.child, response, wasRunning: state.kind === "running" });
      // Calls that wait for their turn find the session idle, unless the abort takes long.
      await within(done, abortTurnMs).catch(() => {});
      return { done, wasRunning: state.kind === "running" };
    }, waiting);
    const sent = await unlessAborted(turn, waiting).catch((error: unknown) => {
      throw error === waiting.reason ? unanswered() : error;
    });
    if (sent === undefined) return false;
    const ended = await within(sent.done, abortTimeoutMs);
    if (ended.kind === "done") return sent.wasRunning;
    throw new WireError(
      "deadline_exceeded",
      `The run has not ended within ${abortTimeoutMs} ms of the abort: a tool may ignore it. Closing the session ends it.`,
    );
  }

  /**
   * Empties pi's queue of user messages, and returns their texts. Without a child the queue is empty. Throws
   * `child_exited`, `refused_by_pi`.
   */
  async clearQueue(by?: By, atResponse?: () => void): Promise<{ readonly [K in QueueKind]: string[] }> {
    // A prompt may wait for an extension that asks before pi takes it; later calls would wait as well.
    if (this.#gatedAfter !== undefined) this.#dialogs.cancelAll("clear_queue");
    const taken = await this.#core.scope.run(async () => {
      const { state } = this.#core;
      if (state.kind !== "idle" && state.kind !== "running") return undefined;
      const { child } = state;
      const messages = await this.#takeOut(child, atResponse);
      return { child, messages };
    });
    if (taken === undefined) return { steering: [], followUp: [] };
    await this.#decided(taken.child);
    const left = this.#ledger.withdrawTakenOut(taken.messages, () => true, by);
    const textsOf = (of: QueueKind): string[] => left.filter(({ kind }) => kind === of).map(({ text }) => text);
    return { steering: textsOf("steering"), followUp: textsOf("followUp") };
  }

  /**
   * Withdraws a prompt from pi's queue. pi can only empty its queue as a whole, so the others are returned in order
   * before anything else is sent to pi. Throws `session_busy`, `unsupported_by_pi`, `child_exited`, `link_failed`,
   * `refused_by_pi`; then nothing is withdrawn.
   */
  async cancel(promptId: string, signal?: AbortSignal, by?: By): Promise<void> {
    await this.#core.scope.run(async () => {
      const { state, runId } = this.#core;
      if ((state.kind !== "idle" && state.kind !== "running") || !this.#ledger.isQueued(promptId)) return;
      const { child } = state;
      this.#requireGivable(this.#ledger.queued());
      const still = await within(drained(child), maxBetweenMs);
      if (still.kind !== "done") throw busy("pi is between two requests");
      const messages = await this.#takeOut(child);
      await this.#decided(child);
      this.#ledger.withdrawTakenOut(messages, ({ prompt }) => prompt?.promptId === promptId, by);
      const given = await this.#giveBack({ child, messages, runId }).catch(() => new Set<QueuedMessage>());
      await this.#ledger.endTakenOut(messages, given);
    }, signal);
  }

  /** Resolves when it is known which removed messages are in the transcript. */
  async #decided(child: Child): Promise<void> {
    // A helper that no longer answers has no message in progress.
    await drained(child).catch(() => {});
    if (this.#isReady(child)) return;
    // Another session may have taken the child over.
    if (child.state.kind !== "ready") await child.exited;
    await this.#core.cleaned();
    await this.#ledger.accountTakenOut();
  }

  #isReady(child: Child): boolean {
    return child.state.kind === "ready" && isChildOf(this.#core, child);
  }

  /** An extension's queued message may have images, which pi does not return. Throws `unsupported_by_pi`. */
  #requireGivable(messages: readonly QueuedMessage[]): void {
    for (const { prompt } of messages) {
      if (prompt !== undefined && this.#ledger.imagesOf(prompt.promptId) !== undefined) continue;
      const why = "pi's queue has a message of an extension, and pi can only empty its queue as a whole.";
      throw new WireError("unsupported_by_pi", why);
    }
  }

  /**
   * Returns the removed messages to pi in their original form. If pi ends in the meantime, the next pi gets those
   * that are not in the session file. Returns the messages that pi has taken. Throws errors of starting pi.
   */
  async #giveBack({ child, messages, runId }: GiveBack): Promise<ReadonlySet<QueuedMessage>> {
    const given = await this.#giveTo(child, messages, runId);
    if (this.#isReady(child)) return given;
    await this.#decided(child);
    // An extension's message ends with its extension.
    const prompts = this.#ledger.stillOut(messages).filter(({ prompt }) => prompt !== undefined);
    if (prompts.length === 0) return new Set();
    const next = await this.#core.awake();
    const givenToNext = await this.#giveTo(next, prompts, undefined);
    return this.#isReady(next) ? givenToNext : new Set();
  }

  /** `runId`: the run in which they were removed. */
  async #giveTo(
    child: Child,
    messages: readonly QueuedMessage[],
    runId: string | undefined,
  ): Promise<ReadonlySet<QueuedMessage>> {
    const given = new Set<QueuedMessage>();
    for (const message of this.#ledger.stillOut(messages)) {
      if (!this.#isReady(child)) break;
      const isTaken = await this.#give(child, message, runId).catch(() => false);
      if (isTaken) given.add(message);
    }
    return given;
  }

  /**
   * Sends pi one message; returns whether pi has taken it. If its run has ended by itself in the meantime, pi starts
   * a run with it; after an abort or a failure it stays queued, as it would have.
   */
  async #give(child: Child, message: QueuedMessage, runId: string | undefined): Promise<boolean> {
    const { kind, prompt } = message;
    const promptId = prompt?.promptId;
    const text = prompt?.text ?? message.text;
    const images = promptId === undefined ? [] : (this.#ledger.imagesOf(promptId) ?? []);
    const body = { message: text, ...(images.length === 0 ? {} : { images }) };
    const onResponse = ({ success, data }: PiResponse): void => {
      const disposition = success && isRecord(data) ? data["disposition"] : undefined;
      if (promptId === undefined) return;
      if (disposition === "started") this.#core.runStarted(promptId);
      if (disposition === "handled") this.#ledger.handled(promptId);
    };
    if (promptId !== undefined) {
      this.#ledger.givingBack(promptId);
      this.#ledger.asked(promptId, prompt?.by);
    }
    try {
      if (runId !== undefined && this.#goesOn(runId)) {
        const streamingBehavior = kind === "steering" ? "steer" : "followUp";
        const response = await child.send({ type: "prompt", ...body, streamingBehavior }, { onResponse });
        if (response.success) return true;
      }
      // pi refuses prompts during a compaction, and a prompt would start a run while pi is idle.
      return (await child.send({ type: kind === "steering" ? "steer" : "follow_up", ...body })).success;
    } finally {
      if (promptId !== undefined) {
        this.#ledger.gaveBack(promptId);
        this.#ledger.answered(promptId);
      }
    }
  }

  /**
   * Whether pi would have taken in messages queued in a run: the run is active and not aborted, or has ended by
   * itself.
   */
  #goesOn(runId: string): boolean {
    if (this.#abortedRun === runId) return false;
    if (this.#core.state.kind === "idle") return this.#ledger.hasSettled(runId);
    return this.#core.state.kind === "running";
  }

  /** Empties pi's queue and returns its messages. Throws `child_exited`, `refused_by_pi`. */
  async #takeOut(child: Child, atResponse?: () => void): Promise<readonly QueuedMessage[]> {
    let taken: readonly QueuedMessage[] = [];
    const onResponse = ({ success, data }: PiResponse): void => {
      atResponse?.();
      if (success) taken = this.#ledger.takenOut(queuedTexts(data));
    };
    const response = await child.send({ type: "clear_queue" }, { onResponse });
    if (!response.success) throw refused("clear_queue", response);
    return taken;
  }

  async #aborted({
    child,
    response,
    wasRunning,
  }: {
    child: Child;
    response: Promise<PiResponse>;
    wasRunning: boolean;
  }): Promise<void> {
    const answer = await response;
    if (!answer.success) throw refused("abort", answer);
    if (wasRunning) await Promise.race([this.#core.settled(), child.exited]);
  }

  /** A prompt with an unused id. */
  async #first(request: NewRequest): Promise<PromptResult> {
    const { promptId, hash, signal } = request;
    const result = this.#core.scope.run(() => this.#begin(request), signal).then(({ outcome }) => outcome);
    const isDropped = (): boolean => signal?.aborted === true && !this.#ledger.isOpen(promptId);
    const underWay: UnderWay = { hash, result, isDropped };
    this.#known.set(promptId, underWay);
    try {
      const taken = await result;
      // A command may have given the child to another session.
      if (taken.disposition === "handled" && this.#core.state.kind !== "hibernated") void this.#pushing.handOver();
      return taken;
    } catch (error) {
      if (leavesRest(error, this.#core.state)) void this.#pushing.handOver();
      throw error;
    } finally {
      if (this.#known.get(promptId) === underWay) this.#known.delete(promptId);
    }
  }

  /** The state of a prompt whose id is used again. */
  async #again(stored: StoredPrompt, hash: string, signal: AbortSignal | undefined): Promise<PromptResult> {
    const { promptId, sessionId } = stored;
    if (sessionId !== this.#core.sessionId || stored.hash !== hash) throw conflict(promptId);
    // Its pi ended before it answered: the session file is being read.
    const decided = this.#ledger.decided(promptId);
    const prompt = await (signal === undefined ? decided : unlessAborted(decided, signal));
    if (prompt.state === "lost") throw promptLost(promptId);
    return resultOf(prompt);
  }

  /** Writes the prompt, and holds the session's turn until another prompt may follow. */
  async #begin(request: NewRequest): Promise<{ readonly outcome: Promise<PromptResult> }> {
    const { promptId, hash, text, by, reserved, group } = request;
    this.#requireRunFor(request);
    const mayBeCommand = text.startsWith("/");
    if (!mayBeCommand) await this.#costs.admitPrompt();
    const child = await this.#core.awake("prompt");
    if (child.retires !== undefined) throw busy(`${child.retires}, and it ends after its run`);
    this.#refuseControlText(child, text);
    const isCommand = child.isExtensionCommand(text);
    if (mayBeCommand && !isCommand) await this.#costs.admitPrompt();
    if (this.#core.state.kind === "running" && request.ifRunning === "refuse" && !isCommand)
      throw busy("a run is active");
    if (this.#core.state.kind === "idle" && !isCommand) await this.#pushing.beforePrompt(child);
    request.signal?.throwIfAborted();
    await Promise.race([reserved, Promise.resolve()]);
    const { images = [] } = request;
    await this.#ledger.store({ promptId, text, hash, group, images, ...(by === undefined ? {} : { by }) });
    try {
      await reserved;
      if (!isChildOf(this.#core, child)) {
        const why = "Another session has taken over the session's pi; a second try starts another.";
        throw new WireError("child_exited", why);
      }
      this.#requireRunFor(request);
    } catch (error) {
      this.#ledger.refused(promptId);
      throw error;
    }
    const run = this.#core.nextRun();
    const { asked } = this.#dialogs;
    const outcome = this.#write(child, promptId, request);
    // A command runs immediately in every state of pi, and may take long: later calls must not wait for it.
    outcome.catch(() => {});
    if (isCommand) return { outcome };
    this.#gatedAfter = asked;
    await Promise.race([outcome, run]).catch(() => {});
    this.#gatedAfter = undefined;
    return { outcome };
  }

  async #write(child: Child, promptId: string, request: NewRequest): Promise<PromptResult> {
    const { text, images, ifRunning, by, atResponse } = request;
    const command = {
      type: "prompt",
      message: text,
      ...(images === undefined ? {} : { images }),
      ...(ifRunning === "refuse" ? {} : { streamingBehavior: ifRunning }),
    };
    return await this.#answered({ child, promptId, text, by, atResponse }, (onResponse) =>
      child.prompt(promptId, command, onResponse),
    );
  }

  /**
   * Goes on with the prompts of a former daemon, whose child lives. A prompt that the child never got is lost: `given`
   * has the ids of those that it got.
   */
  resume(child: Child, given: ReadonlySet<string>): void {
    for (const { promptId, text, by } of this.#ledger.unanswered) {
      if (!given.has(promptId)) this.#ledger.account((prompt) => prompt.promptId === promptId).catch(() => {});
      else
        this.#answered({ child, promptId, text, by }, (onResponse) => child.expectPrompt(promptId, onResponse)).catch(
          () => {},
        );
    }
  }

  async #answered(
    { child, promptId, text, by, atResponse }: Asked,
    ask: (onResponse: (response: PiResponse) => void) => Promise<PiResponse>,
  ): Promise<PromptResult> {
    // Set at the exact position of the response: a short run may start and end within the same chunk of records.
    let outcome: Promise<PromptResult> | undefined;
    const onResponse = (response: PiResponse): void => {
      atResponse?.();
      if (!response.success) return;
      outcome = this.#accepted({ child, promptId, text, response });
      outcome.catch(() => {});
    };
    let response: PiResponse;
    this.#ledger.asked(promptId, by);
    try {
      response = await ask(onResponse);
    } catch (error) {
      // A prompt that could not be written never reached pi; one that was written may have.
      if (error instanceof WireError && error.kind === "overloaded") this.#ledger.refused(promptId);
      // The check after the child's end may have happened before this prompt.
      else await this.#ledger.account((prompt) => prompt.promptId === promptId).catch(() => {});
      child.promptDecided(promptId);
      throw error;
    } finally {
      this.#ledger.answered(promptId);
    }
    // Until then the next daemon must know that pi has it.
    if (outcome !== undefined) return await outcome.finally(() => child.promptDecided(promptId));
    this.#ledger.refused(promptId);
    child.promptDecided(promptId);
    const words = response.error ?? "";
    throw /already processing|compact/i.test(words) ? busy(words, words) : refused("prompt", response);
  }

  /** Uses pi's response, or else its state. Runs up to its first await at the position of the response. */
  async #accepted({ child, promptId, text, response }: Accepted): Promise<PromptResult> {
    const said = isRecord(response.data) ? response.data["disposition"] : undefined;
    const known = said === "started" || said === "queued" || said === "handled";
    const { disposition, runId } = known ? this.#said(said, promptId) : await this.#findOut(child, promptId, text);
    if (disposition === "handled") this.#ledger.handled(promptId);
    else this.#ledger.accepted(promptId, disposition, runId);
    return { promptId, disposition, ...(runId === undefined ? {} : { runId }) };
  }

  #said(disposition: Disposition, promptId: string): Outcome {
    return { disposition, runId: disposition === "started" ? this.#core.runStarted(promptId) : this.#core.runId };
  }

  /** An older pi does not report the prompt's disposition: its state right after the response shows it. */
  async #findOut(child: Child, promptId: string, text: string): Promise<Outcome> {
    if (child.isExtensionCommand(text)) return { disposition: "handled", runId: undefined };
    if (this.#core.state.kind === "running") return this.#said("queued", promptId);
    const runs = this.#core.runsStarted;
    this.#ledger.presumeStarted(promptId);
    let outcome: Outcome = { disposition: "handled", runId: undefined };
    await child.send(
      { type: "get_state" },
      {
        onResponse: ({ data }) => {
          const isStreaming = isRecord(data) && data["isStreaming"] === true;
          // A run that has begun and ended by now must not be recorded again.
          if (this.#core.runsStarted > runs) {
            outcome = { disposition: "started", runId: this.#ledger.find(promptId)?.runId ?? this.#core.runId };
          } else if (isStreaming) outcome = this.#said("started", promptId);
        },
      },
    );
    return outcome;
  }

  #requireRunFor({ expectedRunId, ifIdle }: NewRequest): void {
    this.#requireRun(expectedRunId);
    if (ifIdle !== "refuse" || this.#core.state.kind === "running") return;
    throw new WireError("session_idle", "No run is active. Send a prompt to start one.");
  }

  /** Throws `run_mismatch`. */
  #requireRun(expected: string | undefined): void {
    const { runId } = this.#core;
    if (expected === undefined || expected === runId) return;
    const on = runId === undefined ? "No run is active" : `The run "${runId}" is active`;
    throw new WireError("run_mismatch", `${on}; the call is for "${expected}".`, { runId });
  }

  /** A text that begins with the helper's command would be executed as a frame of the link. */
  #refuseControlText(child: Child, text: string): void {
    const { command } = child.link;
    if (command !== undefined && text.startsWith(`/${command}`)) {
      throw new WireError("forbidden", "The text begins with the name of the daemon's own command inside pi.");
    }
  }
}

/** The messages removed from pi's queue, with their pi and run. */
interface GiveBack {
  readonly child: Child;
  readonly messages: readonly QueuedMessage[];
  readonly runId: string | undefined;
}

interface UnderWay {
  readonly hash: string;
  readonly result: Promise<PromptResult>;
  /** Whether it will not be written. */
  readonly isDropped: () => boolean;
}

interface NewRequest extends PromptRequest {
  readonly promptId: string;
  readonly hash: string;
}

interface Outcome {
  readonly disposition: Disposition;
  readonly runId: string | undefined;
}

interface Asked {
  readonly child: Child;
  readonly promptId: string;
  readonly text: string;
  readonly by: By | undefined;
  readonly atResponse?: (() => void) | undefined;
}

interface Accepted extends Omit<Asked, "by" | "atResponse"> {
  readonly response: PiResponse;
}

/** Resolves when no removed message is on its way into the transcript. Throws `link_failed`. */
async function drained(child: Child): Promise<void> {
  await child.link.send({ kind: "drained" });
}

function survives(state: SessionState): boolean {
  return (state.kind === "running" || state.kind === "idle") && state.child.keeper !== undefined;
}

/** Whether waiting pushes must be handed over in another way after this failure of the prompt. */
function leavesRest(error: unknown, { kind }: SessionState): boolean {
  if (!(error instanceof WireError) || error.kind === "child_exited") return false;
  // No pi is started for pushes if none was for the prompt.
  return error.kind !== "budget_exceeded" || kind === "idle" || kind === "running";
}

function busy(why: string, piError?: string): WireError {
  return new WireError(
    "session_busy",
    `The session is busy (${why}). Wait for agent_settled, or set ifRunning: "steer" or "followUp".`,
    piError === undefined ? undefined : { piError },
  );
}

export function refused(command: string, response: PiResponse): WireError {
  const { error = "no reason given" } = response;
  // pi's advice is for its own terminal.
  const advice = /(?:^|\s)\/login\b/.test(error)
    ? " Run `pi-rpcd pi`, then `/login`, or start the daemon with a provider's key."
    : "";
  return new WireError("refused_by_pi", `pi refused "${command}": ${error}${advice}`, { piError: response.error });
}

function unanswered(): WireError {
  return new WireError(
    "deadline_exceeded",
    `The abort could not be written within ${abortTimeoutMs} ms: pi has not answered the prompt before it. Closing the session ends it.`,
  );
}

function conflict(promptId: string): WireError {
  return new WireError("conflict", `The id "${promptId}" was used before for another prompt.`, { promptId });
}

function promptLost(promptId: string): WireError {
  const why =
    "pi ended, and the prompt is not in the transcript. prompt/get has its text; send it again if you want to.";
  return new WireError("prompt_lost", why, { promptId });
}

/** A prompt's receipt for a repeated call. */
export function resultOf({
  promptId,
  disposition,
  runId,
  state,
  outcome,
  stopReason,
  error,
}: StoredPrompt): PromptResult {
  return {
    promptId,
    // pi's answer may be lost; a prompt in the transcript was at least started.
    disposition: disposition ?? (state === "handled" ? "handled" : state === "queued" ? "queued" : "started"),
    state,
    ...(runId === undefined ? {} : { runId }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(error === undefined ? {} : { error }),
  };
}

function withPromptId(error: unknown, promptId: string): unknown {
  if (!(error instanceof WireError)) return error;
  return new WireError(error.kind, error.message, { ...error.data, promptId }, { cause: error });
}
