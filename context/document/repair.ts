import type { ContextLimits } from "../../protocol/context-limits.ts";
import type { ContextCall, ContextItem, ContextTarget, NoteRepair } from "./document.ts";
import { contextInvalid, contextTooLarge, quoted, repairNote, subject } from "./faults.ts";
import { CallIds, isModel } from "./ids.ts";
import { OwnItems } from "./own-message.ts";
import { type Arrival, Pairs, type Turn, type Use } from "./pairs.ts";
import { isTime, timeAfter } from "./read-entry.ts";
import { renamedBlocks, type SoundCall, soundAssistant, soundCopy } from "./repair-assistant.ts";
import { type ContentRules, soundParts } from "./repair-content.ts";

export interface RepairOptions {
  readonly target: ContextTarget;
  /** If false, the first required repair throws `context_invalid` with its code. */
  readonly repair: boolean;
  readonly note?: NoteRepair;
  /** `maxItems` limits the result. Default: unlimited. */
  readonly limits?: ContextLimits;
}

const noResult = "No result was recorded; the call was interrupted.";
const beginning = "(The conversation starts here.)";

/**
 * Repairs a conversation so that every service accepts it: each call has exactly one result directly after it, all
 * services accept the ids and names, nothing is empty, and the first message is not the assistant's. The target's own
 * messages keep their ids, names and blocks. Idempotent.
 *
 * Throws `context_invalid`: `nothing_selected` if nothing is left, and with `repair: false` the code of a rule;
 * `context_too_large` if there are too many items, including the added results.
 */
export function repairItems(items: readonly ContextItem[], options: RepairOptions): readonly ContextItem[] {
  const repairing = new Repairing(options);
  for (let index = 0; index < items.length; index += 1) repairing.add(items[index] as ContextItem, index);
  const repaired = repairing.finish();
  if (repaired.length === 0) throw contextInvalid("nothing_selected", "The context has no content left.");
  return repaired;
}

class Repairing {
  readonly #target: ContextTarget;
  readonly #note: NoteRepair;
  readonly #ids: CallIds;
  readonly #ownItems: OwnItems;
  readonly #pairs = new Pairs();
  readonly #turns: Turn[] = [];
  /** Last message other than system messages. */
  #tail: Turn | undefined;
  #time = 0;
  readonly #maxItems: number;
  /** Number of messages and calls; each call gets a result. */
  #count = 0;

  constructor({ target, repair, note, limits }: RepairOptions) {
    this.#maxItems = limits?.maxItems ?? Number.POSITIVE_INFINITY;
    this.#target = target;
    this.#note = repairNote(repair, note);
    this.#ids = new CallIds(target);
    this.#ownItems = new OwnItems(target);
  }

  add(given: ContextItem, index: number): void {
    const item = this.#timed(given, index);
    const { nodeId } = item;
    const rules: ContentRules = {
      isOwn: item.role === "assistant" && isModel(item.model, this.#target),
      target: this.#target,
      note: (code, detail) => this.#say(code, item, detail),
      get name() {
        return subject({ nodeId }, index);
      },
    };
    if (item.role === "assistant") this.#addAssistant(item, index, rules);
    else if (item.role === "toolResult") this.#addResult(withContent(item, rules), index, rules);
    else this.#addMessage(withContent(item, rules), index, rules);
  }

  finish(): readonly ContextItem[] {
    this.#settleEarly();
    const items: ContextItem[] = [];
    const first = this.#turns.find(({ item }) => item.role !== "system");
    for (const turn of this.#turns) {
      if (turn === first && turn.item.role === "assistant") items.push(this.#opening(turn));
      items.push(turn.item);
      for (const result of this.#resultsOf(turn)) items.push(result);
    }
    return items;
  }

  #timed(item: ContextItem, index: number): ContextItem {
    const isGood = isTime(item.timestamp);
    const timestamp = isGood ? item.timestamp : timeAfter(this.#time);
    this.#time = timestamp;
    if (isGood) return item;
    this.#say("bad_timestamp", item, `${subject({ nodeId: item.nodeId }, index)} has no valid time.`);
    return { ...item, timestamp };
  }

  #addMessage(item: ContextItem, index: number, rules: ContentRules): void {
    const isEmpty = item.content.length === 0;
    if (isEmpty && item.role === "system") return;
    if (isEmpty && item.role === "user") this.#say("empty_message", item, `${rules.name} has no content.`);
    else this.#push({ item, index, uses: [] });
  }

  #addAssistant(item: ContextItem, index: number, rules: ContentRules): void {
    const isCopy = rules.isOwn && !this.#ownItems.take(item);
    const { content, calls, blocks } = (isCopy ? soundCopy : soundAssistant)(item, rules);
    if (calls.length === 0 && !content.some(({ type }) => type === "text")) {
      this.#say("empty_message", item, `${rules.name} has neither content nor calls.`);
      return;
    }
    const toolCalls = calls.map((call): ContextCall => ({ ...bare(call), id: this.#freeId(call, item, rules) }));
    const { blocks: _, toolCalls: __, meta: ___, ...rest } = item;
    const meta = metaOfCalls(item, calls, toolCalls);
    const turn: Turn = {
      item: {
        ...rest,
        content,
        ...(toolCalls.length === 0 ? {} : { toolCalls }),
        ...(blocks === undefined ? {} : { blocks: renamedBlocks(blocks, toolCalls) }),
        ...(meta === undefined ? {} : { meta }),
        stopReason: toolCalls.length === 0 ? "stop" : "toolUse",
      },
      index,
      uses: [],
    };
    for (let place = 0; place < calls.length; place += 1) {
      const call = calls[place] as SoundCall;
      const use: Use = { turn, call, id: toolCalls[place]?.id ?? call.id, isEarly: false };
      turn.uses.push(use);
      this.#pairs.add(use);
    }
    this.#push(turn);
  }

  #freeId(call: SoundCall, item: ContextItem, rules: ContentRules): string {
    const id = this.#ids.take(call.id);
    if (id !== call.id) this.#say("duplicate_call_id", item, `${rules.name} has a call with the id of another.`);
    return id;
  }

  #addResult(item: ContextItem, index: number, rules: ContentRules): void {
    const id = item.toolCallId;
    if (id === undefined) {
      this.#noteOrphan(item, index);
      return;
    }
    const outcome = this.#pairs.answer(id, { item, index });
    if (outcome.kind === "waiting") return;
    const { use, replaced } = outcome;
    if (replaced !== undefined) this.#noteDuplicate(replaced);
    use.isEarly = false;
    if (this.#tail !== use.turn)
      this.#say("late_result", item, `${rules.name} is a result that is not directly after its call.`);
  }

  #resultsOf({ item, uses }: Turn): readonly ContextItem[] {
    const answered = uses.filter(({ result }) => result !== undefined);
    // Results keep their order.
    answered.sort((one, other) => (one.result?.index ?? 0) - (other.result?.index ?? 0));
    const results = answered.map((use) => this.#settled(use, use.result as Arrival));
    for (const use of uses) if (use.result === undefined) results.push(this.#missing(item, use));
    return results;
  }

  #settled({ call, id, isEarly }: Use, { item, index }: Arrival): ContextItem {
    if (isEarly) {
      const name = subject({ nodeId: item.nodeId }, index);
      this.#say("late_result", item, `${name} is a result that is not directly after its call.`);
    }
    const meta = id === item.toolCallId ? item.meta : { ...item.meta, originalCallId: item.toolCallId };
    return { ...item, toolCallId: id, toolName: call.name, ...(meta === undefined ? {} : { meta }) };
  }

  #missing(item: ContextItem, { call, id }: Use): ContextItem {
    this.#say("missing_result", item, `Call ${quoted(call.originalId)} has no result.`);
    return {
      role: "toolResult",
      toolCallId: id,
      toolName: call.name,
      content: [{ type: "text", text: noResult }],
      isError: true,
      timestamp: item.timestamp,
    };
  }

  #opening({ item, index }: Turn): ContextItem {
    this.#say("leading_assistant", item, `${subject({ nodeId: item.nodeId }, index)} begins the conversation.`);
    return { role: "user", content: [{ type: "text", text: beginning }], timestamp: item.timestamp };
  }

  /** Settles surplus results before their calls: the last one is kept. */
  #settleEarly(): void {
    for (const { arrival, use } of this.#pairs.left()) {
      if (use === undefined) this.#noteOrphan(arrival.item, arrival.index);
      else if (!use.isEarly || use.result === undefined) this.#noteDuplicate(arrival);
      else {
        this.#noteDuplicate(use.result);
        use.result = arrival;
      }
    }
  }

  #noteDuplicate({ item, index }: Arrival): void {
    const name = subject({ nodeId: item.nodeId }, index);
    this.#say("duplicate_result", item, `${name} is a result of a call that has a later one.`);
  }

  #noteOrphan(item: ContextItem, index: number): void {
    this.#say("orphan_result", item, `${subject({ nodeId: item.nodeId }, index)} is a result without a call.`);
  }

  #push(turn: Turn): void {
    this.#count += 1 + turn.uses.length;
    const limit = this.#maxItems;
    if (this.#count > limit) {
      const key = "context.maxItems";
      throw contextTooLarge({ what: "The context", unit: "items or more", count: this.#count, limit, key });
    }
    this.#turns.push(turn);
    if (turn.item.role !== "system") this.#tail = turn;
  }

  #say(code: Parameters<NoteRepair>[0]["code"], { nodeId }: ContextItem, detail: string): void {
    this.#note({ code, ...(nodeId === undefined ? {} : { nodeId }), detail });
  }
}

function withContent(item: ContextItem, rules: ContentRules): ContextItem {
  const content = soundParts(item, rules);
  return content === item.content ? item : { ...item, content };
}

function bare({ id, name, arguments: given }: SoundCall): ContextCall {
  return { id, name, arguments: given };
}

/** Keeps the original ids and names of calls in `meta`. */
function metaOfCalls(item: ContextItem, calls: readonly SoundCall[], now: readonly ContextCall[]): ContextItem["meta"] {
  const renamed = calls.flatMap(({ originalId, originalName }, place) => {
    const { id = originalId, name = originalName } = now[place] ?? {};
    const hasId = id !== originalId;
    const hasName = name !== originalName;
    if (!hasId && !hasName) return [];
    return [{ id, ...(hasId ? { originalId } : {}), ...(hasName ? { originalName } : {}) }];
  });
  return renamed.length === 0 ? item.meta : { ...item.meta, originalCalls: renamed };
}
