import type { Memory } from "../../../extension/memory.ts";
import type { RecallRecord } from "./record.ts";
/** A cut that no entry of the session's file is known to record yet. */
export interface PendingCut {
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly record: RecallRecord;
  /** The stored result. Its details lack the record, because another extension replaced them. */
  readonly resultId?: string;
}

/** By number. */
export type PendingCuts = Map<number, PendingCut>;

/** The pending cuts that outlive a reload of the modules. */
export function keptCuts({ kept }: Pick<Memory, "kept">): PendingCuts {
  const cuts = kept.of<PendingCuts>("cuts");
  cuts.value ??= new Map();
  return cuts.value;
}

/** Maximum pending cuts. Older ones are known only by the details of their results. */
const maxPending = 256;
/** Largest gap between numbers. Marks beyond it were not written by this extension. */
const longestStep = 1_000;
const anyMark = /\[… [^[\]\n]{1,120}; recall r(\d{3,9}) …\]/gu;

/** Remembers the cut of a result that is about to be stored, because another extension can drop its record. */
export function keepPending(cuts: PendingCuts, cut: PendingCut): void {
  cuts.set(cut.record.number, cut);
  for (const number of cuts.keys()) {
    if (cuts.size <= maxPending) return;
    cuts.delete(number);
  }
}

/** Returns the numbers in the marks of a text. */
export function numbersIn(text: string): number[] {
  if (!text.includes("; recall r")) return [];
  return [...text.matchAll(anyMark)].map(([, digits]) => Number(digits));
}

/** Returns the highest plausible number of a text, at least the given one. */
export function highestNamed(numbers: readonly number[], highest: number): number {
  return numbers.reduce((most, number) => (number > most && number <= highest + longestStep ? number : most), highest);
}
