import type { By } from "../../protocol/client-identity.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { RunOutcome } from "../../protocol/prompt.ts";
import type { RunWords } from "../core/session-context.ts";
import type { Receipts } from "../delivery/session-receipts.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import { textOf } from "../log/user-entries.ts";
import type { OwedNotification } from "../store/children.ts";
import type { OpenRun, RunStore } from "../store/runs.ts";

/** How a run ended; `by` is the client that aborted it. */
export interface RunEnd extends OpenRun {
  readonly outcome: RunOutcome;
  readonly stopReason?: string;
  readonly error?: string;
  /** Text of the last assistant message; absent if there was none. */
  readonly text?: string;
  readonly textTruncated?: boolean;
}

/** The prompt or push that started a run, and its client. */
export interface RunStarter {
  /** Absent: a push. */
  readonly promptId?: string;
  readonly by?: By;
}

export interface RunsOptions {
  readonly sessionId: string;
  readonly store: RunStore;
  readonly receipts: Receipts;
  readonly onStarted: (run: OpenRun) => void;
  /** Called before the end is reported. */
  readonly onEnded: (end: RunEnd, said: RunWords) => void;
  /** What clients are told of an end. */
  readonly ended: (end: RunEnd) => OwedNotification;
}

interface Run {
  facts: OpenRun;
  readonly settled: Deferred<void>;
  last: AssistantEnd | undefined;
  said: RunWords;
  /** Whether pi's agent is active: between `agent_start` and `agent_end`. */
  isActive: boolean;
}

/** Maximum number of prompt ids reported at the end of a run. */
const maxPromptIds = 256;

/** The runs of one session, at most one at a time: their start, prompts and outcome. */
export class Runs {
  readonly #options: RunsOptions;
  #started = 0;
  #run: Run | undefined;
  #next = deferred<void>();

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Number of runs so far. */
  get started(): number {
    return this.#started;
  }

  /** Resolves when the next run begins. */
  get next(): Promise<void> {
    return this.#next.promise;
  }

  /** Resolves when no run is active. */
  get settled(): Promise<void> {
    return this.#run?.settled.promise ?? Promise.resolve();
  }

  /** The active run. */
  get runId(): string | undefined {
    return this.#run?.facts.runId;
  }

  /** The client whose prompt or push started the active run, if known. */
  get startedBy(): By | undefined {
    return this.#run?.facts.by;
  }

  /** Whether pi's agent is active, so that it cannot have settled. */
  get isActive(): boolean {
    return this.#run?.isActive ?? false;
  }

  begin(runId: string, starter?: RunStarter): void {
    const { sessionId, store, onStarted } = this.#options;
    const promptIds = starter?.promptId === undefined ? [] : [starter.promptId];
    const by = starter?.by;
    const facts: OpenRun = { runId, startedAt: Date.now(), promptIds, ...(by === undefined ? {} : { by }) };
    this.#started += 1;
    this.#run = { facts, settled: deferred(), last: undefined, isActive: false, said: {} };
    void store.put(sessionId, facts);
    onStarted(facts);
    this.#next.resolve();
    this.#next = deferred();
  }

  /** The run that a former daemon left. */
  get left(): OpenRun | undefined {
    return this.#options.store.of(this.#options.sessionId).at(-1);
  }

  /** Goes on with {@link left}, whose child lives. */
  resume({ last, isActive }: RunProgress): void {
    const facts = this.left;
    if (facts === undefined) return;
    this.#started += 1;
    this.#run = { facts, settled: deferred(), last, isActive, said: last === undefined ? {} : said({}, last) };
  }

  /** Adds a prompt to the active run. */
  took(promptId: string): void {
    const run = this.#run;
    if (run === undefined || run.facts.promptIds.includes(promptId)) return;
    void this.#change(run, { promptIds: [...run.facts.promptIds, promptId].slice(-maxPromptIds) });
  }

  /** pi's agent starts or ends its work, possibly several times in a run. */
  agentIs(activity: "active" | "done"): void {
    if (this.#run !== undefined) this.#run.isActive = activity === "active";
  }

  assistantEnded(last: AssistantEnd): void {
    const run = this.#run;
    if (run === undefined) return;
    run.last = last;
    run.said = said(run.said, last);
    const { abort } = run.facts;
    if (abort !== undefined && abort.isLate !== true && isFinished(last))
      void this.#change(run, { abort: { ...abort, isLate: true } });
  }

  /** pi has compacted the context: what is known of its size no longer holds. */
  compacted(): void {
    if (this.#run === undefined) return;
    const { usedTokens: _, ...words } = this.#run.said;
    this.#run.said = words;
  }

  /** A client's abort is about to be written to pi. Resolves when that is stored. */
  async abortSent(by?: By): Promise<void> {
    if (this.#run !== undefined) await this.#change(this.#run, { abort: by === undefined ? {} : { by } }, true);
  }

  /** pi has settled; `aborted` is pi's own field. */
  settle(aborted: boolean | undefined): void {
    const run = this.#run;
    if (run === undefined) return;
    const { last, facts } = run;
    this.#end(
      run,
      outcomeOf({
        settledAborted: aborted,
        abortWasSent: facts.abort !== undefined && facts.abort.isLate !== true,
        last,
      }),
    );
  }

  /** pi has ended. Returns whether a run was active. */
  interrupt(): boolean {
    if (this.#run === undefined) return false;
    this.#end(this.#run, "interrupted");
    return true;
  }

  /** Ends runs that were active in a former daemon. */
  recover(): void {
    for (const { by: _starter, abort: _abort, ...run } of this.#options.store.of(this.#options.sessionId)) {
      this.#tell({ ...run, outcome: "interrupted" }, {});
    }
  }

  #change(run: Run, change: Partial<Pick<OpenRun, "promptIds" | "abort">>, isAwaited = false): Promise<void> {
    run.facts = { ...run.facts, ...change };
    return this.#options.store.put(this.#options.sessionId, run.facts, isAwaited);
  }

  #end({ facts, last, settled, said: words }: Run, outcome: RunOutcome): void {
    this.#run = undefined;
    const { by: _starter, abort, ...run } = facts;
    const end: RunEnd = {
      ...run,
      outcome,
      ...(outcome === "aborted" && abort?.by !== undefined ? { by: abort.by } : {}),
      ...(last?.stopReason === undefined ? {} : { stopReason: last.stopReason }),
      ...(last?.error === undefined ? {} : { error: last.error }),
      ...(last === undefined ? {} : { text: last.text }),
      ...(last?.isCut === true ? { textTruncated: true } : {}),
    };
    this.#tell(end, words);
    settled.resolve();
  }

  #tell(end: RunEnd, words: RunWords): void {
    const { sessionId, store, receipts, onEnded, ended } = this.#options;
    const stored = store.end(sessionId, end.runId, end.outcome);
    onEnded(end, words);
    receipts.tell(stored, () => ended(end));
  }
}

/** Facts about a run at its end. */
interface RunFacts {
  /** `aborted` of pi's `agent_settled`; undefined if pi is too old to report it. */
  readonly settledAborted: boolean | undefined;
  /** Whether a client's abort was written to pi during the run, and no message was finished after it. */
  readonly abortWasSent: boolean;
  /** The last complete assistant message. */
  readonly last: AssistantEnd | undefined;
}

/** Whether the agent finished, so that an abort before it came too late. */
function isFinished({ stopReason }: AssistantEnd): boolean {
  return stopReason === "stop" || stopReason === "length";
}

/** What is known of a run only from its events. */
export interface RunProgress {
  readonly last: AssistantEnd | undefined;
  readonly isActive: boolean;
}

/** The end of an assistant message. */
export interface AssistantEnd {
  /** When pi began it, in Unix milliseconds. */
  readonly at: number;
  /** What it and its request took of the context. Absent if it is incomplete, or its provider counts nothing. */
  readonly usedTokens?: number;
  readonly stopReason: string | undefined;
  readonly error: string | undefined;
  readonly text: string;
  /** Whether the text was cut. */
  readonly isCut: boolean;
}

const maxTextBytes = 64 * 1024;
const maxErrorLength = 2_000;

/**
 * The outcome of a settled run. pi's own `aborted` decides first. An older pi does not report it; then the last
 * message decides, or the abort that was sent: an abort during a tool ends with an error there (0.87.1). `failed`:
 * the last message is an error, and pi does not retry.
 */
function outcomeOf({ settledAborted, abortWasSent, last }: RunFacts): Exclude<RunOutcome, "interrupted"> {
  const stopReason = last?.stopReason;
  if (settledAborted === true || stopReason === "aborted") return "aborted";
  if (settledAborted === undefined && abortWasSent) return "aborted";
  return stopReason === "error" ? "failed" : "settled";
}

/** As pi's own measure of the context: the provider's total, else the sum. */
function usedIn(usage: unknown): number | undefined {
  if (!isRecord(usage)) return undefined;
  const { totalTokens, input, output, cacheRead, cacheWrite } = usage;
  const count = (value: unknown): number => (typeof value === "number" && value > 0 ? value : 0);
  const used = count(totalTokens) || count(input) + count(output) + count(cacheRead) + count(cacheWrite);
  return Number.isSafeInteger(used) && used > 0 ? used : undefined;
}

const maxShownText = 200;

function said(before: RunWords, { text, at, usedTokens }: AssistantEnd): RunWords {
  const shown = text.trim();
  return {
    ...before,
    ...(shown === "" ? {} : { lastText: { text: shown.slice(0, maxShownText).toWellFormed(), at } }),
    ...(usedTokens === undefined ? {} : { usedTokens }),
  };
}

/** The end of an assistant message from `message_end`; undefined for other messages. */
export function assistantEnd(message: unknown): AssistantEnd | undefined {
  if (!isRecord(message) || message["role"] !== "assistant") return undefined;
  const { stopReason, errorMessage, timestamp } = message;
  const isComplete = stopReason !== "error" && stopReason !== "aborted";
  const usedTokens = isComplete ? usedIn(message["usage"]) : undefined;
  const whole = Buffer.from(textOf(message["content"]) ?? "");
  const isCut = whole.length > maxTextBytes;
  // A character that is cut in half is dropped.
  const text = isCut ? whole.toString("utf8", 0, maxTextBytes).replace(/\ufffd+$/, "") : whole.toString("utf8");
  return {
    at: typeof timestamp === "number" && Number.isSafeInteger(timestamp) && timestamp >= 0 ? timestamp : Date.now(),
    ...(usedTokens === undefined ? {} : { usedTokens }),
    stopReason: typeof stopReason === "string" ? stopReason.slice(0, 64) : undefined,
    error: typeof errorMessage === "string" ? errorMessage.slice(0, maxErrorLength) : undefined,
    text,
    isCut,
  };
}
