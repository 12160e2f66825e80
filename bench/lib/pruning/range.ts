import { isBlock, type Visible } from "./visible.ts";

export interface Range {
  readonly startId: string;
  readonly endId: string;
  readonly summary: string;
}

/** The range that a model would compress. */
export interface RangeRequest {
  /** Including the blocks before it, or only later messages. */
  readonly takesBlocks: boolean;
  /** The newest answers, with everything after them, that are not compressed. */
  readonly spare: number;
  /** The summary of the range's messages. */
  readonly summary: string;
}

/** The closed work as one range, by the ids in a request. `undefined`: there is none. */
export function closedRange(
  visible: readonly Visible[],
  { takesBlocks, spare, summary }: RangeRequest,
): Range | undefined {
  const closed = visible.filter(({ answersBehind }) => answersBehind > spare);
  const newestBlock = closed.findLastIndex(isBlock);
  const taken = takesBlocks ? closed.slice(Math.max(0, closed.findIndex(isBlock))) : closed.slice(newestBlock + 1);
  const [first, last] = [taken[0], taken.at(-1)];
  if (first === undefined || last === undefined || taken.every(isBlock)) return undefined;
  const blocks = taken.filter(isBlock).map(({ id }) => `(${id})`);
  return { startId: first.id, endId: last.id, summary: [...blocks, summary].join("\n\n") };
}
