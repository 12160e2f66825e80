import type { LogEntry } from "../../../provider/log.ts";
import { type AnswerReply, answer, call } from "../../../provider/reply.ts";
import { Random } from "../../../test/soak/random.ts";
import { prose } from "../traces/words.ts";
import { closedRange } from "./range.ts";
import { isBlock, visibleIn } from "./visible.ts";

/** When a scripted model compresses, and what. */
export interface CompressPolicy {
  /** Tokens that are closed and in no block, a quarter of the characters. */
  readonly everyTokens: number;
  /** Newest answers that stay as they are. */
  readonly spare: number;
  /** Characters of a block's summary. */
  readonly summaryLength: number;
  /** So many blocks are taken into the next one. */
  readonly blocks: number;
}

/** A model that makes blocks of what is closed. It knows of the conversation what its request says, and nothing else. */
export class Compressor {
  readonly #policy: CompressPolicy;
  #made = 0;
  #isAnswered = false;

  constructor(policy: CompressPolicy) {
    this.#policy = policy;
  }

  get made(): number {
    return this.#made;
  }

  /** Whether the last answer has changed what was earlier. */
  get hasJustCompressed(): boolean {
    return this.#isAnswered;
  }

  /** The call, if there is enough to make a block of; never twice in a row. */
  next(request: LogEntry): AnswerReply | undefined {
    const { everyTokens, spare, summaryLength, blocks } = this.#policy;
    const isFree = !this.#isAnswered && request.toolNames.includes("compress");
    this.#isAnswered = false;
    if (!isFree) return undefined;
    const visible = visibleIn(request);
    const raw = visible.filter((one) => !isBlock(one) && one.answersBehind > spare);
    if (raw.reduce((sum, { text }) => sum + text.length, 0) < 4 * everyTokens) return undefined;
    const summary = prose(new Random(this.#made + 1), summaryLength);
    const takesBlocks = visible.filter(isBlock).length >= blocks;
    const range = closedRange(visible, { takesBlocks, spare, summary });
    if (range === undefined) return undefined;
    this.#made += 1;
    this.#isAnswered = true;
    return answer(call("compress", { topic: `Closed work ${this.#made}`, ranges: [range] }));
  }
}
