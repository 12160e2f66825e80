import { isBlock, type Visible } from "./visible.ts";

export interface Range {
  readonly startId: string;
  readonly endId: string;
  readonly summary: string;
}

/** What a model would make a block of. */
export interface RangeWish {
  /** With the blocks before it, or only what has come behind them. */
  readonly takesBlocks: boolean;
  /** The newest answers that stay as they are, with what is behind them. */
  readonly spare: number;
  /** What is said of the messages of the range. */
  readonly summary: string;
}

/** What is closed by now as one range, by the ids that a request shows. `undefined`: nothing is. */
export function closedRange(
  visible: readonly Visible[],
  { takesBlocks, spare, summary }: RangeWish,
): Range | undefined {
  const closed = visible.filter(({ answersBehind }) => answersBehind > spare);
  const newestBlock = closed.findLastIndex(isBlock);
  const taken = takesBlocks ? closed.slice(Math.max(0, closed.findIndex(isBlock))) : closed.slice(newestBlock + 1);
  const [first, last] = [taken[0], taken.at(-1)];
  if (first === undefined || last === undefined || taken.every(isBlock)) return undefined;
  const blocks = taken.filter(isBlock).map(({ id }) => `(${id})`);
  return { startId: first.id, endId: last.id, summary: [...blocks, summary].join("\n\n") };
}
