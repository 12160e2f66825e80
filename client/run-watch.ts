import type { PromptResult } from "../protocol/prompt.ts";
import type { SessionInfo } from "../protocol/session.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { RunInterruptedError } from "./local-errors.ts";
import { isAgentSettled, isMessageEnd, type PiEvent, type PiMessage, textOf } from "./pi-events.ts";
import type { FeedEnd, FeedListener, SessionNotification } from "./session-feed.ts";

/** What a prompt came to. */
export interface SettledRun {
  readonly promptId: string;
  /** `handled`: an extension or command took the prompt, and there was no run. */
  readonly disposition: PromptResult["disposition"];
  /** The text of the run's last assistant message; empty if there was none. */
  readonly text: string;
  /** That message as pi wrote it. */
  readonly message?: PiMessage;
  /** pi's word for how that message ended: `stop`, `length`, `toolUse`, `error`, `aborted`. */
  readonly stopReason?: string;
  readonly errorMessage?: string;
}

interface Outcome {
  readonly message: PiMessage | undefined;
}

/**
 * Watches a session from before a prompt until the run that took it has settled. Keeps the last assistant message and
 * nothing else, so a long run costs no memory.
 */
export class RunWatch {
  readonly #peer: DaemonPeer;
  readonly #sessionId: string;
  readonly #listener: FeedListener;
  readonly #ready = Promise.withResolvers<void>();
  readonly #settled = Promise.withResolvers<SettledRun>();
  readonly #lostPromptIds = new Set<string>();
  #prompt: PromptResult | undefined;
  /** Whether a run has begun that has not settled. */
  #running = false;
  #message: PiMessage | undefined;
  /** The first run that both began and settled under watch. */
  #firstRun: Outcome | undefined;
  #lastSettled: Outcome | undefined;
  #session: SessionInfo | undefined;

  constructor(peer: DaemonPeer, sessionId: string) {
    this.#peer = peer;
    this.#sessionId = sessionId;
    this.#ready.promise.catch(() => {});
    this.#settled.promise.catch(() => {});
    this.#listener = {
      begin: () => this.#ready.resolve(),
      resume: ({ gap }) => {
        if (gap !== undefined) this.stop(new RunInterruptedError(sessionId, gap));
      },
      receive: (notification) => this.#receive(notification),
      end: (end) => this.#onEnd(end),
    };
    peer.joinFeed(sessionId, this.#listener);
  }

  /** Resolves when nothing that follows can be missed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** The outcome of the run that took this prompt. */
  settled(prompt: PromptResult): Promise<SettledRun> {
    this.#prompt = prompt;
    this.#decide();
    return this.#settled.promise;
  }

  /** Gives up: `settled` rejects with `error`. */
  stop(error: unknown): void {
    this.#peer.leaveFeed(this.#sessionId, this.#listener);
    this.#ready.reject(error);
    this.#settled.reject(error);
  }

  #receive(notification: SessionNotification): void {
    if (notification.name === "session/event") this.#onEvent(notification.params.event);
    if (notification.name !== "session/updated") return;
    const { session, lostPrompts = [] } = notification.params;
    this.#session = session;
    // The prompt's own answer, which brings its id, may come later.
    for (const { promptId } of lostPrompts) this.#lostPromptIds.add(promptId);
    this.#decide();
  }

  #onEvent(event: PiEvent): void {
    // `agent_start` is repeated within a run, by retries for example.
    if (event.type === "agent_start" && !this.#running) {
      this.#running = true;
      this.#message = undefined;
    } else if (isMessageEnd(event) && event.message.role === "assistant") {
      this.#message = event.message;
    } else if (isAgentSettled(event)) {
      this.#lastSettled = { message: this.#message };
      if (this.#running) this.#firstRun ??= this.#lastSettled;
      this.#running = false;
      this.#decide();
    }
  }

  #decide(): void {
    if (this.#prompt === undefined) return;
    const outcome = outcomeOf(this.#prompt, this.#firstRun, this.#running ? undefined : this.#lastSettled);
    if (outcome !== undefined) this.#settled.resolve(settledRun(this.#prompt, outcome.message));
    else if (this.#session?.state === "crashed" || this.#lostPromptIds.has(this.#prompt.promptId)) {
      this.#settled.reject(new RunInterruptedError(this.#sessionId, this.#session));
    }
  }

  #onEnd(end: FeedEnd): void {
    this.stop(end.kind === "session_closed" ? new RunInterruptedError(this.#sessionId) : end.error);
  }
}

/**
 * A prompt that started a run waits for the first run that began under watch: an earlier one that only settles in it
 * is another's. A queued one waits for the end of the run that is on.
 */
function outcomeOf(
  prompt: PromptResult,
  firstRun: Outcome | undefined,
  settledNow: Outcome | undefined,
): Outcome | undefined {
  switch (prompt.disposition) {
    case "handled":
      return { message: undefined };
    case "started":
      return firstRun;
    case "queued":
      return settledNow;
  }
}

function settledRun({ promptId, disposition }: PromptResult, message: PiMessage | undefined): SettledRun {
  if (message === undefined) return { promptId, disposition, text: "" };
  const { stopReason, errorMessage } = message;
  return {
    promptId,
    disposition,
    text: textOf(message),
    message,
    ...(stopReason !== undefined && { stopReason }),
    ...(errorMessage !== undefined && { errorMessage }),
  };
}
