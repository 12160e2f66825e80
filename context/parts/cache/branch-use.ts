import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../../extension/branch-view.ts";
import type { SessionEntry } from "../../../extension/pi-types.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry" | "getEntries">;

/** The reported usage of an answer. */
export interface AnswerUse {
  readonly entryId: string;
  readonly provider: string;
  readonly model: string;
  /** Tokens of the whole prompt. */
  readonly inputTokens: number;
  /** Tokens of the prompt in the service's cache, as reported, and those read from it and written to it. */
  readonly cachedTokens: number;
  readonly readTokens: number;
  readonly writtenTokens: number;
}

/** The usage of a branch's requests. */
export interface BranchUse {
  /** The newest answer that reported its usage. */
  readonly last: AnswerUse | undefined;
  /**
   * `provider/model` of the newest answer, with or without usage: the model in the answer and the requested one, because
   * extensions can change the former. Empty: no answer.
   */
  readonly models: readonly string[];
  /** The last use of its cache, by the answer or by a keep-warm request. Milliseconds since the epoch. */
  readonly usedAt: number;
  /** Whether a compaction or a change of branch followed the newest answer. */
  readonly isBroken: boolean;
  /** Mean requests per prompt: 10 before the first prompt has ended, and at least those of the current prompt. */
  readonly requestsPerPrompt: number;
  /** Mean tokens by which a request is larger than the one before. `undefined`: unknown. */
  readonly growthTokens: number | undefined;
  /** Whether at least two answers reported their usage, and none a cached token. */
  readonly isUncached: boolean;
}

/** Older entries do not help to predict. */
const maxRead = 5_000;
const expectedAtFirst = 10;
/** Requests whose growth is averaged. */
const maxGrowths = 100;

/** What was read of each session, until it has another entry or another leaf. A boundary asks several times. */
const known = new WeakMap<
  Session,
  { readonly leaf: SessionEntry | undefined; readonly count: number; readonly use: BranchUse }
>();

/** Reads the session from the leaf towards the root. */
export function branchUse(session: Session): BranchUse {
  const leaf = session.getLeafEntry();
  const entries = session.getEntries();
  const before = known.get(session);
  if (before?.leaf === leaf && before?.count === entries.length) return before.use;
  const use = useOf(session, entries);
  known.set(session, { leaf, count: entries.length, use });
  return use;
}

function useOf(session: Session, entries: readonly SessionEntry[]): BranchUse {
  let last: BranchUse["last"];
  let newest: SessionEntry | undefined;
  let askedOf: string | undefined;
  let usedAt = 0;
  let isBroken = false;
  /** The newest first. */
  const steps: Step[] = [];
  const growth = new Growth();
  let isCached = false;
  for (const entry of fromLeaf(session, maxRead)) {
    const answer = answerIn(entry);
    growth.take(entry, answer);
    isCached ||= answer !== undefined && answer.cachedTokens > 0;
    const isOne = answer !== undefined || isSilent(entry);
    if (newest === undefined) {
      isBroken ||= entry.type === "compaction" || entry.type === "branch_summary";
      usedAt = Math.max(usedAt, warmedAt(entry), isOne ? timeOf(entry) : 0);
      if (isOne) newest = entry;
    } else if (entry.type === "model_change") askedOf ??= `${entry.provider}/${entry.modelId}`;
    last ??= answer;
    const step = stepOf(entry, isOne);
    if (step !== undefined) steps.push(step);
  }
  isBroken ||= newest !== undefined && newestAnswer(entries) !== newest.id;
  const models = newest === undefined ? [] : [modelIn(newest), askedOf].filter((model) => model !== undefined);
  return {
    ...{ last, models, usedAt, isBroken, requestsPerPrompt: perPrompt(steps.reverse()) },
    growthTokens: growth.mean,
    isUncached: !isCached && growth.answers > 1,
  };
}

/** The growth of requests that only add to the one before, read from the newest on. */
class Growth {
  readonly #all: number[] = [];
  #newer: AnswerUse | undefined;
  answers = 0;

  take({ type }: SessionEntry, answer: AnswerUse | undefined): void {
    if (type === "context_edit" || type === "compaction" || type === "branch_summary") this.#newer = undefined;
    if (answer === undefined) return;
    this.answers += 1;
    const grown = (this.#newer?.inputTokens ?? 0) - answer.inputTokens;
    if (grown > 0 && this.#newer?.model === answer.model && this.#all.length < maxGrowths) this.#all.push(grown);
    this.#newer = answer;
  }

  get mean(): number | undefined {
    const { length } = this.#all;
    return length === 0 ? undefined : this.#all.reduce((sum, grown) => sum + grown, 0) / length;
  }
}

/** `call`: an answer that continues the run. `end`: an answer that ends it. `failure`: no answer. */
type Step = "prompt" | "call" | "end" | "failure" | "result";

function perPrompt(steps: readonly Step[]): number {
  /** Requests of each prompt. */
  const prompts: number[] = [];
  let before: Step | undefined;
  for (const step of steps) {
    // A prompt between a call and the next answer was inserted into an active run.
    const begins = step === "prompt" && (before === undefined || before === "end" || before === "failure");
    if (begins || prompts.length === 0) prompts.push(0);
    const at = prompts.length - 1;
    if (step === "call" || step === "end") prompts[at] = (prompts[at] ?? 0) + 1;
    before = step;
  }
  const present = prompts.pop() ?? 0;
  if (prompts.length === 0) return Math.max(expectedAtFirst, present);
  const sum = prompts.reduce((total, requests) => total + requests, 0);
  return Math.max(1, sum / prompts.length, (sum + present) / (prompts.length + 1));
}

function stepOf(entry: SessionEntry, isAnswered: boolean): Step | undefined {
  if (entry.type === "custom_message") return "prompt";
  if (entry.type !== "message") return undefined;
  const { message } = entry;
  if (message.role === "user") return "prompt";
  if (message.role === "toolResult") return "result";
  if (message.role !== "assistant") return undefined;
  if (!isAnswered) return "failure";
  return message.stopReason === "toolUse" ? "call" : "end";
}

/** The usage in an assistant entry. `undefined`: not answered. */
export function answerIn(entry: SessionEntry): AnswerUse | undefined {
  if (entry.type !== "message" || entry.message.role !== "assistant") return undefined;
  const { provider, model, usage } = entry.message;
  // A hand-written file need not have it.
  const [readTokens, writtenTokens] = [countOf(usage?.cacheRead), countOf(usage?.cacheWrite)];
  const cachedTokens = readTokens + writtenTokens;
  const inputTokens = countOf(usage?.input) + cachedTokens;
  if (inputTokens === 0) return undefined;
  return { entryId: entry.id, provider, model, inputTokens, cachedTokens, readTokens, writtenTokens };
}

/** Whether an entry is an answer without usage. */
function isSilent(entry: SessionEntry): boolean {
  if (entry.type !== "message" || entry.message.role !== "assistant") return false;
  return entry.message.stopReason !== "error" && entry.message.stopReason !== "aborted";
}

function modelIn(entry: SessionEntry): string | undefined {
  if (entry.type !== "message" || entry.message.role !== "assistant") return undefined;
  return `${entry.message.provider}/${entry.message.model}`;
}

function countOf(value: unknown): number {
  return typeof value === "number" && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0;
}

function timeOf(entry: SessionEntry): number {
  const at = Date.parse(entry.timestamp);
  return Number.isNaN(at) ? 0 : at;
}

/** The time of a keep-warm request, for which pi writes an entry. */
function warmedAt(entry: SessionEntry): number {
  return entry.type === "usage" && entry.kind === "cache_warm" ? timeOf(entry) : 0;
}

function newestAnswer(entries: readonly SessionEntry[]): string | undefined {
  return entries.findLast((entry) => answerIn(entry) !== undefined || isSilent(entry))?.id;
}
