import type { Usage } from "../pruning-services.ts";
import type { Candidate } from "./candidates.ts";
import type { Compressed } from "./compressor.ts";
import { mostCandidates, nothingToCompress, percent } from "./messages.ts";

/** The result text of a successful call: each block, each widened range, and the window usage. */
export function madeText({ record, ranges }: Extract<Compressed, { kind: "made" }>, before: Usage | undefined): string {
  const lines = record.blocks.map(({ id, tokensBefore, tokensAfter }, at) => {
    const range = ranges[at];
    const repaired = range?.isRepaired === true ? ["Its placeholders were put right."] : [];
    const said = [...(range?.widened ?? []), ...repaired].map((sentence) => ` ${sentence}`).join("");
    return `${id} stands for ${range?.label ?? ""}: about ${tokensBefore} tokens before, ${tokensAfter} now.${said}`;
  });
  const freed = record.blocks.reduce((sum, block) => sum + block.tokensBefore - block.tokensAfter, 0);
  return [...lines, ...(before === undefined ? [] : [usageText(before, freed)])].join("\n");
}

function usageText({ tokens, window }: Usage, freed: number): string {
  const left = Math.max(0, Math.round(tokens - freed));
  return `The context is now about ${left} of ${window} tokens (${percent(Math.round((100 * left) / window) / 100)}).`;
}

/** The error text of a refused call: all problems, and the ranges that can be compressed. */
export function refusedText(problems: readonly string[], candidates: readonly Candidate[]): string {
  const ranges = candidates
    .slice(0, mostCandidates)
    .map(({ startId, endId, tokens }) => `${startId}–${endId} (about ${tokens} tokens)`);
  const last = ranges.length === 0 ? nothingToCompress : `Ranges that can be compressed: ${ranges.join(", ")}.`;
  return [...problems, last].join("\n");
}
