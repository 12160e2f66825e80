import type { AgentMessage } from "../../../extension/pi-types.ts";
import { ends, transcriptOf } from "../../parts/compaction/transcript.ts";

/** The summary's share of the window, and the minimum share of the summary for messages outside blocks. */
const bareShare = 0.25;
const leastSaid = 0.25;
const charsPerToken = 3;
/** Characters of each result. */
const resultChars = 100;

export interface Bare {
  /** In transcript order, shortened to {@link bareTokens}. */
  readonly blocks: readonly { readonly id: string; readonly text: string }[];
  /** Messages that no block covers. */
  readonly said: readonly AgentMessage[];
  /** Tokens. */
  readonly window: number;
}

/** Tokens that a summary without a model may have. */
export function bareTokens(window: number): number {
  return bareShare * window;
}

/** A summary without a model: the blocks, which are summaries already, and the other messages shortened. */
export function bareSummary({ blocks, said, window }: Bare): string {
  const most = bareTokens(window) * charsPerToken;
  const texts = blocks.map(({ id, text }) => `(${id}; recall ${id} gives all of it)\n${text}`);
  const taken = texts.reduce((sum, text) => sum + text.length, 0);
  const rest = ends(transcriptOf(said, resultChars), Math.floor(Math.max(most - taken, leastSaid * most)));
  return [
    "No summary could be made.",
    ...(texts.length === 0 ? [] : ["These sections were compressed before:", ...texts]),
    `This is what ${texts.length === 0 ? "" : "else "}was said, shortened:`,
    rest,
  ].join("\n\n");
}
