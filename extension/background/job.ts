import { randomBytes } from "node:crypto";
import type { AgentToolResult } from "@earendil-works/pi-coding-agent";
import { messageOf } from "../pi-types.ts";

/** Result of a tool's work. */
export type Outcome<D> =
  | { readonly kind: "result"; readonly result: AgentToolResult<D> }
  | { readonly kind: "error"; readonly error: unknown }
  | { readonly kind: "cancelled" };

/** Public view of a job. */
export interface BackgroundJob {
  readonly jobId: string;
  readonly toolName: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Whether the model received the placeholder instead of waiting for the tool's result. */
  readonly isInBackground: boolean;
}

/** One tool call, which may continue after the model's tool call has returned. */
export class Job<D> {
  readonly jobId = `job-${randomBytes(4).toString("hex")}`;
  readonly toolName: string;
  readonly startedAt = Date.now();
  /** Never rejects. */
  readonly outcome: Promise<Outcome<D>>;
  readonly #controller = new AbortController();
  readonly #cancelled = Promise.withResolvers<{ readonly kind: "cancelled" }>();
  #isInBackground = false;

  /** Starts `work` immediately. */
  constructor(toolName: string, work: (signal: AbortSignal, job: Job<D>) => Promise<AgentToolResult<D>>) {
    this.toolName = toolName;
    const worked = settle(() => work(this.#controller.signal, this));
    this.outcome = Promise.race([worked, this.#cancelled.promise]);
  }

  get isInBackground(): boolean {
    return this.#isInBackground;
  }

  get seconds(): number {
    return Math.round((Date.now() - this.startedAt) / 1_000);
  }

  /**
   * Waits for the work to end; an abort of the run cancels it. Returns `undefined` when the work continues in the
   * background.
   */
  async foreground(run: AbortSignal | undefined, promoteAfterMs: number): Promise<Outcome<D> | undefined> {
    const abort = (): void => this.#controller.abort(run?.reason);
    if (run?.aborted === true) abort();
    run?.addEventListener("abort", abort, { once: true });
    const threshold = Promise.withResolvers<undefined>();
    const timer =
      promoteAfterMs === 0 ? undefined : setTimeout(() => threshold.resolve(undefined), promoteAfterMs).unref();
    try {
      const first = await Promise.race([this.outcome, threshold.promise]);
      // The run is aborted, so the job ends like any other tool.
      if (first !== undefined || run?.aborted === true) return first ?? (await this.outcome);
      this.#isInBackground = true;
      return undefined;
    } finally {
      clearTimeout(timer);
      run?.removeEventListener("abort", abort);
    }
  }

  /** Cancels the work. The result of a tool that ignores its signal is discarded. */
  cancel(reason: Error): void {
    this.#cancelled.resolve({ kind: "cancelled" });
    this.#controller.abort(reason);
  }

  view(): BackgroundJob {
    const { jobId, toolName, startedAt, isInBackground } = this;
    return { jobId, toolName, startedAt, isInBackground };
  }
}

async function settle<D>(work: () => Promise<AgentToolResult<D>>): Promise<Outcome<D>> {
  try {
    return { kind: "result", result: await work() };
  } catch (error) {
    return { kind: "error", error };
  }
}

/** Text of an outcome for the model. */
export function textOf(outcome: Outcome<unknown>): string {
  switch (outcome.kind) {
    case "cancelled":
      return "It was cancelled.";
    case "error":
      return messageOf(outcome.error);
    case "result":
      return outcome.result.content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  }
}
