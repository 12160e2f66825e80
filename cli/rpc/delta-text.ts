import { isRecord } from "../../protocol/objects.ts";

type PiEvent = Readonly<Record<string, unknown>>;

type Kind = "text" | "thinking";

/** A block of the message that is being streamed. */
interface Block {
  readonly kind: Kind;
  /** UTF-16 units of its text that were written. */
  length: number;
  /** Deltas are missing: the rest is written at its end. */
  isBroken: boolean;
  isOver: boolean;
}

/**
 * Keeps the deltas of each text block equal to its final text, also where the daemon left some out for a slow reader: front
 * ends append deltas and never look at the final text. After a gap, the rest of a block is written as one delta before its
 * end.
 */
export class DeltaText {
  readonly #blocks = new Map<number, Block>();
  /** Events are missing since the message's start: blocks may have begun and ended unseen. */
  #isLost = false;

  /** Some events are missing here. */
  lose(): void {
    this.#isLost = true;
    for (const block of this.#blocks.values()) if (!block.isOver) block.isBroken = true;
  }

  /** The events that are missing before this one. */
  before(event: PiEvent): readonly PiEvent[] {
    const part = partOf(event);
    if (part !== undefined) {
      if (part.step === "start" || !this.#isLost) return [];
      const unseen = this.#blocks.has(part.index) ? [] : [this.#begin(part.index, part.kind)];
      return part.step === "end" ? [...unseen, ...this.#rest(part.index, part.content)] : unseen;
    }
    if (event["type"] !== "message_end" || !this.#isLost) return [];
    const { message } = event;
    const content = isRecord(message) && Array.isArray(message["content"]) ? (message["content"] as unknown[]) : [];
    return content.flatMap((block, index) => this.#complete(index, block));
  }

  /** Whether an event is written as it is. To be called after {@link before}. */
  passes(event: PiEvent): boolean {
    if (event["type"] === "message_start" || event["type"] === "message_end") this.#reset();
    const part = partOf(event);
    if (part === undefined) return true;
    const { index, kind, step, delta } = part;
    if (step === "start" || !this.#blocks.has(index)) this.#add(index, kind);
    const block = this.#blocks.get(index) as Block;
    if (step === "end") block.isOver = true;
    if (step !== "delta") return true;
    block.length += block.isBroken ? 0 : delta.length;
    return !block.isBroken;
  }

  /** A block of the finished message: what was not written of it. */
  #complete(index: number, block: unknown): readonly PiEvent[] {
    const known = this.#blocks.get(index);
    const kind = known?.kind ?? kindOf(block);
    if (kind === undefined || known?.isOver === true || !isRecord(block)) return [];
    const content = String(block[kind]);
    const begin = known === undefined ? [this.#begin(index, kind)] : [];
    return [...begin, ...this.#rest(index, content), update(`${kind}_end`, index, { content })];
  }

  /** The start of a block that began unseen. */
  #begin(index: number, kind: Kind): PiEvent {
    this.#add(index, kind).isBroken = true;
    return update(`${kind}_start`, index, {});
  }

  #rest(index: number, text: string): readonly PiEvent[] {
    const { kind, length, isBroken } = this.#blocks.get(index) as Block;
    if (!isBroken || text.length <= length) return [];
    return [update(`${kind}_delta`, index, { delta: text.slice(length) })];
  }

  #add(index: number, kind: Kind): Block {
    const block = { kind, length: 0, isBroken: false, isOver: false };
    this.#blocks.set(index, block);
    return block;
  }

  #reset(): void {
    this.#blocks.clear();
    this.#isLost = false;
  }
}

interface Part {
  readonly kind: Kind;
  readonly step: "start" | "delta" | "end";
  readonly index: number;
  readonly delta: string;
  readonly content: string;
}

/** What a `message_update` says about a block of text. */
function partOf({ type, assistantMessageEvent: step }: PiEvent): Part | undefined {
  if (type !== "message_update" || !isRecord(step)) return undefined;
  const found = /^(text|thinking)_(start|delta|end)$/.exec(String(step["type"]));
  if (found === null) return undefined;
  return {
    kind: found[1] as Part["kind"],
    step: found[2] as Part["step"],
    index: Number(step["contentIndex"]),
    delta: typeof step["delta"] === "string" ? step["delta"] : "",
    content: typeof step["content"] === "string" ? step["content"] : "",
  };
}

function kindOf(block: unknown): Kind | undefined {
  if (!isRecord(block)) return undefined;
  return block["type"] === "text" || block["type"] === "thinking" ? block["type"] : undefined;
}

function update(type: string, contentIndex: number, fields: PiEvent): PiEvent {
  return { type: "message_update", assistantMessageEvent: { type, contentIndex, ...fields } };
}
