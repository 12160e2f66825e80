import type { AgentToolResult, ExtensionAPI, ToolDefinition } from "@earendil-works/pi-coding-agent";
import type { TSchema } from "typebox";
import type { Content } from "../../protocol/content.ts";
import type { DeliverAs } from "../../protocol/delivery.ts";
import { deliver } from "../api/deliver.ts";
import { DeliveryInputError, SessionReplacedError, ShutDownError } from "../api/errors.ts";
import { openEngine } from "../api/open.ts";
import { type PendingEntry, showPending } from "../api/pending.ts";
import { messageOf } from "../pi-types.ts";
import { type BackgroundJob, Job, type Outcome, textOf } from "./job.ts";
import { capText, OutputDirectory } from "./output.ts";
import { placeholderComponent } from "./placeholder.ts";

export interface BackgroundRunnerOptions {
  /** A tool that takes longer continues in the background. 0: never. At most 2,147,483,647. Default: 30,000. */
  readonly autoBackgroundAfterMs?: number;
  /**
   * Maximum number of concurrent jobs, including foreground ones; further calls are refused. 1 to 100. Default: 10.
   */
  readonly maxJobs?: number;
  /**
   * Length of a result's text in UTF-16 units; longer text is stored in full in a file (mode 0600). 1,000 to 1,000,000.
   * Default: 60,000, which exceeds the limit of `runProcessGroup`, so no output is cut twice.
   */
  readonly maxOutputLength?: number;
  /** `customType` of the messages with the results. Default: `background-job`. */
  readonly customType?: string;
  /** As in `deliver`. Default: `steer`. */
  readonly deliverAs?: DeliverAs;
  /** As in `deliver`. Default: true. */
  readonly triggerTurn?: boolean;
}

/** `details` of a placeholder, instead of the tool's own. */
export interface BackgroundDetails {
  readonly background: BackgroundJob;
}

/** `details` of a call that was refused. */
export interface RefusedDetails {
  readonly refused: "too_many_jobs";
}

type AnyDetails<D> = D | BackgroundDetails | RefusedDetails;

const maxTimerMs = 2_147_483_647;

/**
 * Moves slow tools to the background. A wrapped tool starts immediately. If it exceeds the threshold, its result is a
 * placeholder with a job id, and the real result follows as a message that starts a run or joins the current one. The
 * tool's parameters are unchanged: the model has no say in this.
 *
 * An abort of the run cancels a tool only before it moves to the background. Jobs end without a message when the
 * session is replaced, the extensions are reloaded or pi exits. Call it in the extension's entry function. Throws
 * `DeliveryInputError` for options out of range.
 */
export function createBackgroundRunner(pi: ExtensionAPI, options: BackgroundRunnerOptions = {}): BackgroundRunner {
  openEngine(pi);
  return new BackgroundRunner(pi, options);
}

export class BackgroundRunner {
  readonly #pi: ExtensionAPI;
  readonly #options: Required<BackgroundRunnerOptions>;
  readonly #jobs = new Map<string, Job<unknown>>();
  readonly #directory = new OutputDirectory();
  #ended: Error | undefined;

  /** Use {@link createBackgroundRunner}. */
  constructor(pi: ExtensionAPI, options: BackgroundRunnerOptions) {
    this.#pi = pi;
    this.#options = checked(options);
    pi.on("session_shutdown", ({ reason }) =>
      this.#end(reason === "quit" ? new ShutDownError() : new SessionReplacedError()),
    );
  }

  /** Running jobs, oldest first. */
  jobs(): BackgroundJob[] {
    return [...this.#jobs.values()].map((job) => job.view());
  }

  /** Cancels a job and tells the model. Returns whether the job existed. */
  cancel(jobId: string): boolean {
    const job = this.#jobs.get(jobId);
    job?.cancel(new Error("The job was cancelled."));
    return job !== undefined;
  }

  /** Returns the tool to register instead of the given one. */
  wrap<P extends TSchema, D, S>(tool: ToolDefinition<P, D, S>): ToolDefinition<P, AnyDetails<D>, S> {
    const { renderResult, ...rest } = tool;
    return {
      ...rest,
      execute: async (toolCallId, params, signal, onUpdate, ctx) => {
        if (this.#ended !== undefined) throw this.#ended;
        if (this.#jobs.size >= this.#options.maxJobs) return this.#refusal();
        const job = new Job<D>(tool.name, (own, self) => {
          const update: typeof onUpdate = (partial) => {
            if (!self.isInBackground) onUpdate?.(partial);
          };
          return tool.execute(toolCallId, params, own, update, ctx);
        });
        return await this.#run(job, signal);
      },
      ...(renderResult === undefined
        ? {}
        : {
            renderResult: (result, ...rest): ReturnType<typeof renderResult> =>
              isOurs(result.details)
                ? placeholderComponent(result.content)
                : renderResult(result as AgentToolResult<D>, ...rest),
          }),
    };
  }

  async #run<D>(job: Job<D>, signal: AbortSignal | undefined): Promise<AgentToolResult<AnyDetails<D>>> {
    this.#jobs.set(job.jobId, job as Job<unknown>);
    const outcome = await job.foreground(signal, this.#options.autoBackgroundAfterMs);
    if (outcome === undefined) {
      void this.#background(job);
      return placeholder(job);
    }
    this.#jobs.delete(job.jobId);
    if (outcome.kind === "result") return this.#capped(job, outcome.result);
    throw outcome.kind === "error" ? outcome.error : (this.#ended ?? new Error("The job was cancelled."));
  }

  /** Never rejects. */
  async #background<D>(job: Job<D>): Promise<void> {
    let entry: PendingEntry | undefined;
    try {
      entry = showPending(this.#pi, `${job.toolName} (${job.jobId})`);
      const outcome = await job.outcome;
      if (this.#ended !== undefined) entry.end();
      else entry.until(this.#deliver(job, outcome));
    } catch (thrown) {
      entry?.fail(messageOf(thrown));
    } finally {
      this.#jobs.delete(job.jobId);
    }
  }

  #deliver(job: Job<unknown>, outcome: Outcome<unknown>): Promise<unknown> {
    const { customType, deliverAs, triggerTurn } = this.#options;
    const verb = { result: "has ended", error: "has failed", cancelled: "was cancelled" }[outcome.kind];
    const head = `Background job ${job.jobId} (${job.toolName}) ${verb} after ${job.seconds} s.`;
    const { text, file } = this.#cap(job, textOf(outcome));
    const whole = outcome.kind === "cancelled" || text === "" ? head : `${head}\n\n${text}`;
    const images = outcome.kind === "result" ? outcome.result.content.filter(({ type }) => type === "image") : [];
    const details = {
      background: job.view(),
      isError: outcome.kind !== "result",
      ...(file === undefined ? {} : { outputFile: file }),
    };
    const send = (content: Content): Promise<unknown> =>
      deliver(this.#pi, { customType, content, details }, { deliverAs, triggerTurn }).delivered;
    if (images.length === 0) return send(whole);
    try {
      return send([{ type: "text", text: whole }, ...(images as Exclude<Content, string>)]);
    } catch (thrown) {
      if (!(thrown instanceof DeliveryInputError)) throw thrown;
      return send(`${whole}\n\n[${images.length} images were left out: ${thrown.message}]`);
    }
  }

  #capped<D>(job: Job<D>, result: AgentToolResult<D>): AgentToolResult<D> {
    const whole = textOf({ kind: "result", result });
    if (whole.length <= this.#options.maxOutputLength) return result;
    const { text } = this.#cap(job, whole);
    return { ...result, content: [{ type: "text", text }, ...result.content.filter(({ type }) => type !== "text")] };
  }

  #cap({ jobId }: Job<unknown>, text: string): ReturnType<typeof capText> {
    const { maxOutputLength: maxLength } = this.#options;
    return capText(text, { maxLength, directory: this.#directory, name: `${jobId}.txt` });
  }

  #refusal(): AgentToolResult<RefusedDetails> {
    const text = `too_many_jobs: ${this.#jobs.size} jobs are under way, which is the limit. Wait for one of them to end.`;
    return { content: [{ type: "text", text }], details: { refused: "too_many_jobs" } };
  }

  #end(why: Error): void {
    this.#ended ??= why;
    for (const job of this.#jobs.values()) job.cancel(why);
  }
}

function placeholder(job: Job<unknown>): AgentToolResult<BackgroundDetails> {
  const text =
    `${job.toolName} goes on in the background as ${job.jobId}. Its result will come by itself, in a message that names ` +
    "this job. Go on with something else, or end your turn; do not call the tool again for it.";
  return { content: [{ type: "text", text }], details: { background: job.view() } };
}

function isOurs(details: unknown): details is BackgroundDetails | RefusedDetails {
  if (typeof details !== "object" || details === null) return false;
  return "background" in details || ("refused" in details && details.refused === "too_many_jobs");
}

function checked(options: BackgroundRunnerOptions): Required<BackgroundRunnerOptions> {
  const whole = (value: number, name: string, from: number, to: number): number => {
    if (Number.isSafeInteger(value) && value >= from && value <= to) return value;
    throw new DeliveryInputError("option", `${name} must be an integer from ${from} to ${to}.`);
  };
  return {
    autoBackgroundAfterMs: whole(options.autoBackgroundAfterMs ?? 30_000, "autoBackgroundAfterMs", 0, maxTimerMs),
    maxJobs: whole(options.maxJobs ?? 10, "maxJobs", 1, 100),
    maxOutputLength: whole(options.maxOutputLength ?? 60_000, "maxOutputLength", 1_000, 1_000_000),
    customType: options.customType ?? "background-job",
    deliverAs: options.deliverAs ?? "steer",
    triggerTurn: options.triggerTurn ?? true,
  };
}
