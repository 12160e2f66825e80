import type { AgentMessage } from "../../../extension/pi-types.ts";
import { ends, transcriptOf } from "../../parts/compaction/transcript.ts";

/** Of the window, that all of it may take, and the least of that which is left to what was said beside blocks. */
const bareShare = 0.25;
const leastSaid = 0.25;
const charsPerToken = 3;
/** Characters of each result. */
const resultChars = 100;

export interface Bare {
  /** In their order, as they are shown within {@link bareTokens}. */
  readonly blocks: readonly { readonly id: string; readonly text: string }[];
  /** What no block covers. */
  readonly said: readonly AgentMessage[];
  /** Tokens. */
  readonly window: number;
}

/** Tokens that a summary without a model may have. */
export function bareTokens(window: number): number {
  return bareShare * window;
}

/** What is said where no model can be asked: the blocks, which are summaries already, and the rest shortened. */
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
