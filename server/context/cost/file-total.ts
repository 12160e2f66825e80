import { spendingOf } from "../../../context/cost/spending.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { SessionSummary } from "../../../protocol/session.ts";
import { FileFold, type FilePlace } from "./file-fold.ts";

/** What the requests in a session file have cost. It is JSON, so that a later daemon goes on from it. */
export interface FileTotal {
  readonly place: FilePlace;
  readonly totalTokens: number;
  readonly costUsd: number;
  /** Pi knows no price for a part of the tokens. */
  readonly isUnpriced: boolean;
}

/** What one call reads at most. It is more than an entry may have, so that each call comes further. */
const maxReadBytes = 16 * 1024 * 1024;

class TotalFold {
  totalTokens: number;
  costUsd: number;
  isUnpriced: boolean;

  constructor({ totalTokens = 0, costUsd = 0, isUnpriced = false }: Partial<FileTotal> = {}) {
    this.totalTokens = totalTokens;
    this.costUsd = costUsd;
    this.isUnpriced = isUnpriced;
  }

  add(entry: unknown): void {
    const spending = isRecord(entry) ? spendingOf(entry) : undefined;
    if (spending === undefined) return;
    this.totalTokens += spending.usage.totalTokens;
    this.costUsd += spending.usage.cost.total;
    this.isUnpriced ||= spending.isUnpriced;
  }

  pass(): void {}
}

/**
 * Goes on from a former total of the same file: reads what was added since, at most 16 MiB. Undefined without a file.
 * Throws errors of reading.
 */
export async function fileTotal(
  file: string,
  former?: FileTotal,
  maxBytes = maxReadBytes,
): Promise<FileTotal | undefined> {
  const from = former && { fold: new TotalFold(former), place: former.place };
  const fold = new FileFold(file, () => new TotalFold(), { from, maxBytes });
  const { totalTokens, costUsd, isUnpriced } = await fold.read();
  const { place } = fold;
  return place && { place, totalTokens, costUsd, isUnpriced };
}

/** What clients are told of it. Undefined while a part of the file was not read. */
export function usageOf({ place, totalTokens, costUsd, isUnpriced }: FileTotal): SessionSummary["usage"] {
  if (!place.isAtEnd) return undefined;
  return { totalTokens, ...(isUnpriced ? {} : { costUsd }) };
}
