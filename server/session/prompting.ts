import { v7 as uuidv7 } from "uuid";
import type { ImageBlock } from "../../protocol/content.ts";
import { WireError } from "../../protocol/errors.ts";
import type { IfRunning, PromptResult } from "../../protocol/session.ts";
import type { Child } from "../pi/child.ts";
import { isRecordObject, type PiResponse } from "../pi/records.ts";
import type { PromptLedger } from "./prompt-ledger.ts";
import type { SessionCore } from "./session-core.ts";

export interface PromptRequest {
  readonly text: string;
  readonly images?: readonly ImageBlock[] | undefined;
  readonly ifRunning: IfRunning;
}

/** Whatever must be in the transcript before the prompt is written. */
export type BeforePrompt = (child: Child) => Promise<void>;

/**
 * Gives prompts to pi, one at a time: pi loses one of two that are written before the first is answered, and an abort
 * right behind one (measured on both versions). The gate is pi's response, never `agent_start`: a prompt that an
 * extension handles starts no agent.
 */
export class Prompting {
  readonly #core: SessionCore;
  readonly #ledger: PromptLedger;
  readonly #beforePrompt: BeforePrompt;

  constructor(core: SessionCore, ledger: PromptLedger, beforePrompt: BeforePrompt) {
    this.#core = core;
    this.#ledger = ledger;
    this.#beforePrompt = beforePrompt;
  }

  /**
   * Resolves when pi has taken the prompt. Its text is on disk before pi gets it.
   * Throws `session_busy`, `refused_by_pi`, `forbidden`, `child_exited`.
   */
  prompt(request: PromptRequest): Promise<PromptResult> {
    return this.#core.scope.run(async () => {
      const child = await this.#core.awake();
      this.#refuseControlText(child, request.text);
      if (this.#core.state.kind === "running" && request.ifRunning === "refuse") throw busy("a run is on");
      if (this.#core.state.kind === "idle") await this.#beforePrompt(child);
      const promptId = uuidv7();
      await this.#ledger.store(promptId, request.text);
      return await this.#write(child, promptId, request);
    });
  }

  /** Resolves when the session is idle, with whether there was a run to abort. */
  abort(): Promise<boolean> {
    return this.#core.scope.overtake(async () => {
      const { state } = this.#core;
      if (state.kind !== "running" && state.kind !== "idle") return false;
      const response = await state.child.send({ type: "abort" });
      if (!response.success) throw refused("abort", response);
      if (state.kind === "idle") return false;
      await Promise.race([this.#core.settled(), state.child.exited]);
      return true;
    });
  }

  async #write(child: Child, promptId: string, { text, images, ifRunning }: PromptRequest): Promise<PromptResult> {
    // Set in the very place of the response: a short run may start and end within the same chunk of records.
    let outcome: Promise<PromptResult> | undefined;
    const onResponse = (response: PiResponse): void => {
      if (response.success) outcome = this.#accepted(child, promptId, response);
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

  async #accepted(child: Child, promptId: string, response: PiResponse): Promise<PromptResult> {
    const said = isRecordObject(response.data) ? response.data["disposition"] : undefined;
    const disposition =
      said === "started" || said === "queued" || said === "handled" ? said : await this.#findOut(child, promptId);
    if (disposition === "handled") {
      this.#ledger.forget(promptId);
      return { promptId, disposition };
    }
    this.#ledger.accepted(promptId, disposition);
    const runId = disposition === "started" ? this.#core.runStarted() : this.#core.runId;
    return { promptId, disposition, ...(runId === undefined ? {} : { runId }) };
  }

  /** An older pi does not say what became of the prompt: its state right behind the response does. */
  async #findOut(child: Child, promptId: string): Promise<PromptResult["disposition"]> {
    if (this.#core.state.kind === "running") return "queued";
    const runs = this.#core.runsStarted;
    this.#ledger.accepted(promptId, "started");
    let streaming = false;
    await child.send(
      { type: "get_state" },
      {
        onResponse: ({ data }) => {
          streaming = isRecordObject(data) && data["isStreaming"] === true;
          if (streaming) this.#core.runStarted();
        },
      },
    );
    return streaming || this.#core.runsStarted > runs ? "started" : "handled";
  }

  /** Text that begins with the helper's command would be run as a frame of the link. */
  #refuseControlText(child: Child, text: string): void {
    const { command } = child.link;
    if (command !== undefined && text.startsWith(`/${command}`)) {
      throw new WireError("forbidden", "The text begins with the name of the daemon's own command inside pi.");
    }
  }
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
