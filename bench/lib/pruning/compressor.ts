import type { LogEntry } from "../../../provider/log.ts";
import { type AnswerReply, answer, call } from "../../../provider/reply.ts";
import { Random } from "../../../test/soak/random.ts";
import { prose } from "../traces/words.ts";

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

/** A message with an id, as the model sees it in a request. */
export interface Visible {
  /** `m012`, or `b3`. */
  readonly id: string;
  /** The text before the tag. */
  readonly text: string;
  /** Number of the model's later answers in the request. */
  readonly answersBehind: number;
}

const tag = /<dcp-message-id>([mb]\d{1,9})<\/dcp-message-id>/g;

/** The messages with an id, in order, read only from the request, like a model. */
export function visibleIn({ messages }: Pick<LogEntry, "messages">): readonly Visible[] {
  const seen: (Omit<Visible, "answersBehind"> & { readonly answers: number })[] = [];
  let answers = 0;
  for (const message of messages) {
    if (message.role === "assistant") answers += 1;
    if (message.role === "system" || message.role === "assistant") continue;
    const text = [...message.toolResults.map((result) => result.text), ...message.texts].join("\n");
    let from = 0;
    for (const match of text.matchAll(tag)) {
      seen.push({ id: match[1] ?? "", text: text.slice(from, match.index), answers });
      from = match.index + match[0].length;
    }
  }
  return seen.map(({ answers: before, ...visible }) => ({ ...visible, answersBehind: answers - before }));
}

function isBlock({ id }: Visible): boolean {
  return id.startsWith("b");
}

/** The text without its tags. */
export function untagged(text: string): string {
  return text.replaceAll(/\n?<dcp-message-id>[mb]\d{1,9}<\/dcp-message-id>/g, "");
}
