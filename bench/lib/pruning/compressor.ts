import type { LogEntry } from "../../../provider/log.ts";
import { type AnswerReply, answer, call } from "../../../provider/reply.ts";
import { Random } from "../../../test/soak/random.ts";
import { prose } from "../traces/words.ts";
import { closedRange } from "./range.ts";
import { isBlock, visibleIn } from "./visible.ts";

/** When and what a scripted model compresses. */
export interface CompressPolicy {
  /** Tokens of closed work outside blocks, estimated as a quarter of the characters. */
  readonly everyTokens: number;
  /** Number of newest answers that are not compressed. */
  readonly spare: number;
  /** Characters of a block's summary. */
  readonly summaryLength: number;
  /** This many blocks are merged into the next one. */
  readonly blocks: number;
}

/** A model that creates blocks of closed work. It knows the conversation only from its request. */
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

  /** Whether the last answer changed earlier context. */
  get hasJustCompressed(): boolean {
    return this.#isAnswered;
  }

  /** The call, if there is enough to compress; never twice in a row. */
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
