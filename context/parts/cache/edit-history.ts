import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../../extension/branch-view.ts";
import type { EditForecast, EditPrices } from "../../../protocol/optimisation/report.ts";
import { type BatchCost, recordedIn } from "../recall/record.ts";
import { type AnswerUse, answerIn } from "./branch-use.ts";
import { savedByReading } from "./edit-price.ts";
import { type Cost, missCost } from "./prices.ts";

type Priced = EditPrices["recent"][number];
type Edit = { -readonly [Key in keyof Omit<Priced, "actual">]: Priced[Key] } & {
  readonly actual: { -readonly [Key in keyof EditForecast]: EditForecast[Key] };
};

const maxRecent = 100;
/** The report has no longer ids; pi's have 8 characters. */
const maxIdLength = 128;
/** Edits whose savings are counted at a time; the others are over. A session can have any number of them. */
const maxOpen = 100;

/**
 * The edits on the branch with their forecasts and what came: a fold over the branch, so that a fork and the next pi know
 * them. `isOf`: whether edits of a part count.
 */
export function editPrices(ctx: ExtensionContext, isOf: (part: string) => boolean = () => true): EditPrices {
  const edits = new Edits(ctx);
  for (const entry of [...fromLeaf(ctx.sessionManager)].toReversed()) {
    const batch = recordedIn(entry);
    if (batch?.batch !== undefined && entry.id.length <= maxIdLength) {
      const freedTokens = batch.records.reduce((sum, { tokens }) => sum + tokens, 0);
      edits.made({ part: batch.batch.part, entryId: entry.id, freedTokens }, batch.batch.cost);
    }
    const answer = answerIn(entry);
    if (answer !== undefined) edits.answered(answer);
    if (entry.type === "compaction") edits.compacted();
  }
  const all = edits.all.filter(({ part }) => isOf(part));
  return {
    count: all.length,
    predicted: sumOf(all.map(({ predicted }) => predicted)),
    actual: sumOf(all.map(({ actual }) => actual)),
    recent: all.slice(-maxRecent),
  };
}

class Edits {
  readonly all: Edit[] = [];
  readonly #ctx: ExtensionContext;
  /** Edits that no compaction has followed. */
  #open: Edit[] = [];
  /** Edits that no request has shown. */
  #fresh: Edit[] = [];
  #before: AnswerUse | undefined;

  constructor(ctx: ExtensionContext) {
    this.#ctx = ctx;
  }

  made(edit: Pick<Edit, "part" | "entryId" | "freedTokens">, cost: BatchCost): void {
    const { tokens, usd, requests, savedUsd } = cost;
    const predicted = { missedTokens: tokens, missedUsd: usd, requests, savedUsd };
    const made = { ...edit, isOver: false, predicted, actual: { ...nothing } };
    this.all.push(made);
    this.#open.push(made);
    this.#fresh.push(made);
    if (this.#open.length <= maxOpen) return;
    const oldest = this.#open.shift();
    if (oldest !== undefined) oldest.isOver = true;
  }

  answered(answer: AnswerUse): void {
    const cost = this.#costOf(answer);
    this.#charge(answer, cost);
    for (const { freedTokens, actual } of this.#open) {
      actual.requests += 1;
      actual.savedUsd += savedByReading(cost, answer.inputTokens + freedTokens, freedTokens);
    }
    this.#before = answer;
  }

  compacted(): void {
    for (const edit of this.#open) edit.isOver = true;
    this.#open = [];
    this.#fresh = [];
    this.#before = undefined;
  }

  /** The loss of the first request with the edits. It belongs to the edit that was expected to cost the most. */
  #charge(answer: AnswerUse, cost: Cost | undefined): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    const before = this.#before;
    const dearest = fresh.toSorted((a, b) => b.predicted.missedTokens - a.predicted.missedTokens)[0];
    if (dearest === undefined || before === undefined || before.model !== answer.model) return;
    // A cache that had expired was not lost by an edit.
    if (dearest.predicted.missedTokens === 0 && answer.readTokens === 0) return;
    const freed = fresh.reduce((sum, { freedTokens }) => sum + freedTokens, 0);
    const missed = Math.max(0, Math.min(cachedBy(before) - freed, answer.inputTokens) - answer.readTokens);
    dearest.actual.missedTokens = missed;
    dearest.actual.missedUsd = missCost(cost, answer.inputTokens, missed);
  }

  #costOf({ provider, model }: AnswerUse): Cost | undefined {
    const { model: now, modelRegistry } = this.#ctx;
    if (now?.provider === provider && now.id === model) return now.cost;
    return modelRegistry?.find(provider, model)?.cost ?? now?.cost;
  }
}

/** What the next request could read. A service that reports no writes caches the whole prompt. */
function cachedBy({ inputTokens, cachedTokens, writtenTokens }: AnswerUse): number {
  return writtenTokens > 0 ? cachedTokens : inputTokens;
}

const nothing: EditForecast = { missedTokens: 0, missedUsd: 0, requests: 0, savedUsd: 0 };

function sumOf(all: readonly EditForecast[]): EditForecast {
  const sum = { ...nothing };
  for (const one of all) for (const key of Object.keys(sum) as (keyof EditForecast)[]) sum[key] += one[key];
  return sum;
}
