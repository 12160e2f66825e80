import { randomBytes } from "node:crypto";
import type { AgentToolResult } from "@earendil-works/pi-coding-agent";
import { messageOf } from "../pi-types.ts";

/** What becomes of a tool's work. */
export type Outcome<D> =
  | { readonly kind: "result"; readonly result: AgentToolResult<D> }
  | { readonly kind: "error"; readonly error: unknown }
  | { readonly kind: "cancelled" };

/** A job as others see it. */
export interface BackgroundJob {
  readonly jobId: string;
  readonly toolName: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** Whether the model has its placeholder, or still waits for the tool's own result. */
  readonly isInBackground: boolean;
}

/** One call of a tool, which may go on when the model's tool call is over. */
export class Job<D> {
  readonly jobId = `job-${randomBytes(4).toString("hex")}`;
  readonly toolName: string;
  readonly startedAt = Date.now();
  /** Never rejects. */
  readonly outcome: Promise<Outcome<D>>;
  readonly #controller = new AbortController();
  readonly #given = Promise.withResolvers<{ readonly kind: "cancelled" }>();
  #isInBackground = false;

  /** `work` begins at once. */
  constructor(toolName: string, work: (signal: AbortSignal, job: Job<D>) => Promise<AgentToolResult<D>>) {
    this.toolName = toolName;
    const worked = settle(() => work(this.#controller.signal, this));
    this.outcome = Promise.race([worked, this.#given.promise]);
  }

  get isInBackground(): boolean {
    return this.#isInBackground;
  }

  get seconds(): number {
    return Math.round((Date.now() - this.startedAt) / 1_000);
  }

  /** Waits for the end of the work, while an abort of the run ends it. `undefined`: it goes on in the background. */
  async foreground(run: AbortSignal | undefined, promoteAfterMs: number): Promise<Outcome<D> | undefined> {
    const abort = (): void => this.#controller.abort(run?.reason);
    if (run?.aborted === true) abort();
    run?.addEventListener("abort", abort, { once: true });
    const threshold = Promise.withResolvers<undefined>();
    const timer =
      promoteAfterMs === 0 ? undefined : setTimeout(() => threshold.resolve(undefined), promoteAfterMs).unref();
    try {
      const first = await Promise.race([this.outcome, threshold.promise]);
      // The run that waits for it is over: its tool ends as any tool does.
      if (first !== undefined || run?.aborted === true) return first ?? (await this.outcome);
      this.#isInBackground = true;
      return undefined;
    } finally {
      clearTimeout(timer);
      run?.removeEventListener("abort", abort);
    }
  }

  /** Ends the work. A tool that does not look at its signal works on, and nobody hears of it. */
  cancel(reason: Error): void {
    this.#given.resolve({ kind: "cancelled" });
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

/** What the model reads of an outcome. */
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
