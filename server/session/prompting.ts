import { v7 as uuidv7 } from "uuid";
import type { ImageBlock } from "../../protocol/content.ts";
import { WireError } from "../../protocol/errors.ts";
import type { IfRunning, PromptResult } from "../../protocol/session.ts";
import { within } from "../lib/deadline.ts";
import type { Child } from "../pi/child.ts";
import { isRecordObject, type PiResponse } from "../pi/records.ts";
import type { PromptLedger } from "./prompt-ledger.ts";
import { isChildOf, type SessionCore } from "./session-core.ts";

export interface PromptRequest {
  readonly text: string;
  readonly images?: readonly ImageBlock[] | undefined;
  readonly ifRunning: IfRunning;
  /** A prompt of a caller that has gone before its turn is not written. */
  readonly signal?: AbortSignal | undefined;
}

/** What pushes have to do with prompts. */
export interface PromptCompanion {
  /** Puts into the transcript whatever waits for a prompt. */
  beforePrompt(child: Child): Promise<void>;
  /** No run came of the prompt: what waits gets its moment otherwise. */
  handOver(): Promise<void>;
}

/** How long an abort that is under way keeps the session's turn. */
const abortTurnMs = 1_000;
/** A run whose tool ignores the abort goes on; the caller hears of it then. */
const abortTimeoutMs = 30_000;

/**
 * Gives prompts to pi, one at a time: pi loses one of two that are written before the first is answered, and an abort
 * right behind one (measured on both versions). The gate is pi's response, or a run that begins before it: the handler of
 * an extension's command may start one and wait for it before it lets pi answer.
 */
export class Prompting {
  readonly #core: SessionCore;
  readonly #ledger: PromptLedger;
  readonly #companion: PromptCompanion;

  constructor(core: SessionCore, ledger: PromptLedger, companion: PromptCompanion) {
    this.#core = core;
    this.#ledger = ledger;
    this.#companion = companion;
  }

  /**
   * Resolves when pi has taken the prompt. Its text is on disk before pi gets it.
   * Throws `session_busy`, `refused_by_pi`, `forbidden`, `child_exited`.
   */
  async prompt(request: PromptRequest): Promise<PromptResult> {
    const { outcome } = await this.#core.scope.run(() => this.#begin(request), request.signal);
    try {
      const result = await outcome;
      // A command may have given the child to another session.
      if (result.disposition === "handled" && this.#core.state.kind !== "hibernated") void this.#companion.handOver();
      return result;
    } catch (error) {
      if (error instanceof WireError && error.kind !== "child_exited") void this.#companion.handOver();
      throw error;
    }
  }

  /**
   * Resolves when the session is idle, with whether there was a run to abort. Throws `deadline_exceeded` when a tool
   * ignores the abort.
   */
  async abort(): Promise<boolean> {
    const sent = await this.#core.scope.overtake(async () => {
      const { state } = this.#core;
      if (state.kind !== "running" && state.kind !== "idle") return undefined;
      const response = state.child.send({ type: "abort" });
      const done = this.#aborted({ child: state.child, response, wasRunning: state.kind === "running" });
      // What waits for its turn finds the session idle, unless the abort takes long.
      await within(done, abortTurnMs).catch(() => {});
      return { done, wasRunning: state.kind === "running" };
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
   * Empties pi's queue of users' messages, and gives their texts. Without a child nothing is queued.
   * Throws `child_exited`, `refused_by_pi`.
   */
  async clearQueue(): Promise<QueuedTexts> {
    return await this.#core.scope.run(async () => {
      const { state } = this.#core;
      if (state.kind !== "idle" && state.kind !== "running") return { steering: [], followUp: [] };
      const response = await state.child.send({ type: "clear_queue" });
      if (!response.success) throw refused("clear_queue", response);
      const { steering, followUp } = isRecordObject(response.data) ? response.data : {};
      const cleared = { steering: texts(steering), followUp: texts(followUp) };
      this.#ledger.cleared([...cleared.steering, ...cleared.followUp]);
      return cleared;
    });
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

  /** Writes the prompt, and holds the session's turn until another prompt can follow. */
  async #begin(request: PromptRequest): Promise<{ readonly outcome: Promise<PromptResult> }> {
    const child = await this.#core.awake("prompt");
    this.#refuseControlText(child, request.text);
    const isCommand = child.isExtensionCommand(request.text);
    if (this.#core.state.kind === "running" && request.ifRunning === "refuse" && !isCommand) throw busy("a run is on");
    if (this.#core.state.kind === "idle" && !isCommand) await this.#companion.beforePrompt(child);
    const promptId = uuidv7();
    await this.#ledger.store(promptId, request.text);
    if (!isChildOf(this.#core, child)) {
      this.#ledger.forget(promptId);
      throw new WireError(
        "child_exited",
        "Another session has taken over the session's pi; a second try starts another.",
      );
    }
    const run = this.#core.nextRun();
    const outcome = this.#write(child, promptId, request);
    // A command runs at once in every state of pi, for as long as it likes: nothing has to wait behind it.
    if (!isCommand) await Promise.race([outcome, run]).catch(() => {});
    outcome.catch(() => {});
    return { outcome };
  }

  async #write(child: Child, promptId: string, { text, images, ifRunning }: PromptRequest): Promise<PromptResult> {
    // Set in the very place of the response: a short run may start and end within the same chunk of records.
    let outcome: Promise<PromptResult> | undefined;
    const onResponse = (response: PiResponse): void => {
      if (!response.success) return;
      outcome = this.#accepted({ child, promptId, text, response });
      outcome.catch(() => {});
    };
    let response: PiResponse;
    try {
      response = await child.send(
        {
          type: "prompt",
          message: text,
          ...(images === undefined ? {} : { images }),
          ...(ifRunning === "refuse" ? {} : { streamingBehavior: ifRunning }),
        },
        { onResponse },
      );
    } catch (error) {
      throw withPromptId(error, promptId);
    }
    if (outcome !== undefined) return await outcome;
    this.#ledger.forget(promptId);
    const words = response.error ?? "";
    throw /already processing|compact/i.test(words) ? busy(words) : refused("prompt", response);
  }

  /** What pi said, or what its state says. Runs up to its first await in the place of the response. */
  async #accepted({ child, promptId, text, response }: Accepted): Promise<PromptResult> {
    const said = isRecordObject(response.data) ? response.data["disposition"] : undefined;
    const known = said === "started" || said === "queued" || said === "handled";
    const { disposition, runId } = known ? this.#said(said) : await this.#findOut(child, promptId, text);
    if (disposition === "handled") this.#ledger.forget(promptId);
    else this.#ledger.accepted(promptId, disposition);
    return { promptId, disposition, ...(runId === undefined ? {} : { runId }) };
  }

  #said(disposition: PromptResult["disposition"]): Outcome {
    return { disposition, runId: disposition === "started" ? this.#core.runStarted() : this.#core.runId };
  }

  /** An older pi does not say what became of the prompt: its state right behind the response does. */
  async #findOut(child: Child, promptId: string, text: string): Promise<Outcome> {
    if (child.isExtensionCommand(text)) return { disposition: "handled", runId: undefined };
    if (this.#core.state.kind === "running") return this.#said("queued");
    const runs = this.#core.runsStarted;
    this.#ledger.accepted(promptId, "started");
    let outcome: Outcome = { disposition: "handled", runId: undefined };
    await child.send(
      { type: "get_state" },
      {
        onResponse: ({ data }) => {
          const isStreaming = isRecordObject(data) && data["isStreaming"] === true;
          // A run that has begun and ended by now must not be noted once more.
          if (this.#core.runsStarted > runs) outcome = { disposition: "started", runId: this.#core.runId };
          else if (isStreaming) outcome = this.#said("started");
        },
      },
    );
    return outcome;
  }

  /** Text that begins with the helper's command would be run as a frame of the link. */
  #refuseControlText(child: Child, text: string): void {
    const { command } = child.link;
    if (command !== undefined && text.startsWith(`/${command}`)) {
      throw new WireError("forbidden", "The text begins with the name of the daemon's own command inside pi.");
    }
  }
}

/** What pi had queued of users' messages. */
interface QueuedTexts {
  readonly steering: string[];
  readonly followUp: string[];
}

interface Outcome {
  readonly disposition: PromptResult["disposition"];
  readonly runId: string | undefined;
}

interface Accepted {
  readonly child: Child;
  readonly promptId: string;
  readonly text: string;
  readonly response: PiResponse;
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}

function busy(why: string): WireError {
  return new WireError(
    "session_busy",
    `The session is busy (${why}). Wait for agent_settled, or say ifRunning: "steer" or "followUp".`,
  );
}

export function refused(command: string, response: PiResponse): WireError {
  return new WireError("refused_by_pi", `pi refused "${command}": ${response.error ?? "it gave no reason"}`, {
    piError: response.error,
  });
}

function withPromptId(error: unknown, promptId: string): unknown {
  if (!(error instanceof WireError)) return error;
  return new WireError(error.kind, error.message, { ...error.data, promptId }, { cause: error });
}
