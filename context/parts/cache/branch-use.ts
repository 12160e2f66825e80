import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../../extension/pi-types.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry" | "getEntries">;

/** What an answer says of its request. */
export interface AnswerUse {
  readonly entryId: string;
  readonly provider: string;
  readonly model: string;
  /** Of the whole prompt. */
  readonly inputTokens: number;
  /** Of these, what the service has in its cache, as it says. */
  readonly cachedTokens: number;
}

/** What a branch says of the requests that were made for it. */
export interface BranchUse {
  /** The newest answer that reported its usage. */
  readonly last: AnswerUse | undefined;
  /**
   * `provider/model` of the newest answer, whether it reported its usage or not: the one that it names, and the one that was
   * asked, for extensions name another in it. Empty: there is no answer.
   */
  readonly models: readonly string[];
  /** When its cache was used last, by it or by a request that only kept it warm. Milliseconds since the epoch. */
  readonly usedAt: number;
  /** Behind it the transcript was compacted, or another branch was the session's. */
  readonly isBroken: boolean;
  /** Mean requests of a prompt: 10 before the first has ended, and no fewer than the present one has had. */
  readonly requestsPerPrompt: number;
}

/** Entries that are looked at, from the leaf on: what lies before them says little of what comes. */
const maxEntries = 5_000;
const expectedAtFirst = 10;

/** Reads it from the session itself, from the leaf towards the root. */
export function branchUse(session: Session): BranchUse {
  let last: BranchUse["last"];
  let newest: SessionEntry | undefined;
  let askedOf: string | undefined;
  let usedAt = 0;
  let isBroken = false;
  /** The newest first. */
  const steps: Step[] = [];
  let entry = session.getLeafEntry();
  for (let seen = 0; entry !== undefined && seen < maxEntries; seen += 1) {
    const answer = answerIn(entry);
    const isOne = answer !== undefined || isSilent(entry);
    if (newest === undefined) {
      isBroken ||= entry.type === "compaction" || entry.type === "branch_summary";
      usedAt = Math.max(usedAt, warmedAt(entry), isOne ? timeOf(entry) : 0);
      if (isOne) newest = entry;
    } else if (entry.type === "model_change") askedOf ??= `${entry.provider}/${entry.modelId}`;
    last ??= answer;
    const step = stepOf(entry, isOne);
    if (step !== undefined) steps.push(step);
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
  isBroken ||= newest !== undefined && newestAnswer(session.getEntries()) !== newest.id;
  const models = newest === undefined ? [] : [modelIn(newest), askedOf].filter((model) => model !== undefined);
  return { last, models, usedAt, isBroken, requestsPerPrompt: perPrompt(steps.reverse()) };
}

/** `call`: an answer behind which the run goes on. `end`: one behind which it does not. `failure`: no answer. */
type Step = "prompt" | "call" | "end" | "failure" | "result";

function perPrompt(steps: readonly Step[]): number {
  /** Requests of each prompt. */
  const prompts: number[] = [];
  let before: Step | undefined;
  for (const step of steps) {
    // What comes between a call and the next answer was put into a run that was on.
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

/** What an assistant's entry says of its request, if that was answered. */
function answerIn(entry: SessionEntry): AnswerUse | undefined {
  if (entry.type !== "message" || entry.message.role !== "assistant") return undefined;
  const { provider, model, usage } = entry.message;
  // A hand-written file need not have it.
  const cachedTokens = countOf(usage?.cacheRead) + countOf(usage?.cacheWrite);
  const inputTokens = countOf(usage?.input) + cachedTokens;
  return inputTokens > 0 ? { entryId: entry.id, provider, model, inputTokens, cachedTokens } : undefined;
}

/** An answer whose service has said nothing of its usage. */
function isSilent(entry: SessionEntry): boolean {
  if (entry.type !== "message" || entry.message.role !== "assistant") return false;
  return entry.message.stopReason !== "error" && entry.message.stopReason !== "aborted";
}

function modelIn(entry: SessionEntry): string | undefined {
  if (entry.type !== "message" || entry.message.role !== "assistant") return undefined;
  return `${entry.message.provider}/${entry.message.model}`;
}

function countOf(value: unknown): number {
  return typeof value === "number" && value > 0 ? value : 0;
}

function timeOf(entry: SessionEntry): number {
  const at = Date.parse(entry.timestamp);
  return Number.isNaN(at) ? 0 : at;
}

/** pi notes what a request cost that only kept the cache warm. */
function warmedAt(entry: SessionEntry): number {
  return entry.type === "usage" && entry.kind === "cache_warm" ? timeOf(entry) : 0;
}

function newestAnswer(entries: readonly SessionEntry[]): string | undefined {
  return entries.findLast((entry) => answerIn(entry) !== undefined || isSilent(entry))?.id;
}
