import type { ContextLimits } from "../../protocol/context-limits.ts";
import type { Meta } from "../../protocol/link-context.ts";
import { defined } from "../../protocol/objects.ts";
import type { ContextCall, ContextItem, ContextNode, ModelName, NoteRepair } from "./document.ts";
import { contextTooLarge, subject } from "./faults.ts";
import { setField } from "./measure.ts";
import type { EntryFlaws } from "./read-entry.ts";

/** Reports the faults found when an entry was read. */
export function noteFlaws(
  flaws: EntryFlaws | undefined,
  index: number,
  nodeId: string | undefined,
  note: NoteRepair,
): void {
  if (flaws === undefined) return;
  const where = nodeId === undefined ? {} : { nodeId };
  const name = subject({ nodeId }, index);
  if (flaws.wrongContent)
    note({ code: "wrong_content", ...where, detail: `${name} has content that is not in blocks.` });
  if (flaws.badTimestamp) note({ code: "bad_timestamp", ...where, detail: `${name} has no valid time.` });
}

interface OpenCall {
  readonly id: string;
  isAnswered: boolean;
}

/** Finds the call of a result without a call id: the nearest earlier open call of its tool. */
export class OpenCalls {
  readonly #byId = new Map<string, OpenCall[]>();
  readonly #byName = new Map<string, OpenCall[]>();

  add({ id, name }: ContextCall): void {
    const call: OpenCall = { id, isAnswered: false };
    push(this.#byId, id, call);
    push(this.#byName, name, call);
  }

  /** Whether the call with the id has no result yet. */
  has(id: string): boolean {
    return latest(this.#byId.get(id)) !== undefined;
  }

  /** Returns the id of the call that a result answers, and marks it answered; empty if there is none. */
  answer(id: string | undefined, toolName: string | undefined): string | undefined {
    const isNamed = id !== undefined && id !== "";
    const call = latest(isNamed ? this.#byId.get(id) : this.#byName.get(toolName ?? ""));
    if (call !== undefined) call.isAnswered = true;
    return isNamed ? id : (call?.id ?? id);
  }
}

function push(lists: Map<string, OpenCall[]>, key: string, call: OpenCall): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [call]);
  else list.push(call);
}

function latest(calls: OpenCall[] | undefined): OpenCall | undefined {
  while (calls?.at(-1)?.isAnswered) calls.pop();
  return calls?.at(-1);
}

interface Group {
  readonly node: ContextNode;
  readonly calls: ContextCall[];
  readonly others: Meta[];
}

/** Converts nodes to items in order. Consecutive calls without a result between them become one assistant item. */
export class ItemList {
  readonly #items: ContextItem[] = [];
  readonly #limits: ContextLimits;
  readonly #parentOf: (node: ContextNode) => ContextNode | undefined;
  readonly #open = new OpenCalls();
  /** Names of the calls in the last message, by id. */
  readonly #inMessage = new Map<string, string>();
  #group: Group | undefined;

  constructor(limits: ContextLimits, parentOf: (node: ContextNode) => ContextNode | undefined) {
    this.#limits = limits;
    this.#parentOf = parentOf;
  }

  add(node: ContextNode): void {
    if (node.role === "toolCall") this.#addCall(node);
    else {
      this.#closeGroup();
      this.#items.push(node.role === "toolResult" ? this.#resultOf(node) : itemOf(node));
      if (node.role === "user" || node.role === "assistant") this.#inMessage.clear();
      for (const call of callsOf(node)) {
        this.#open.add(call);
        this.#inMessage.set(call.id, call.name);
      }
    }
  }

  finish(): readonly ContextItem[] {
    this.#closeGroup();
    return this.#items;
  }

  #addCall(node: ContextNode): void {
    const call = { id: callId(node), name: node.toolName ?? "", arguments: node.arguments ?? {} };
    // A tree can have a call both in the message and as a node.
    if (this.#inMessage.get(call.id) === call.name && this.#open.has(call.id)) return;
    if (this.#group !== undefined && isOneMessage(this.#group.node.model, node.model)) {
      this.#group.calls.push(call);
      const { usage, details, stopReason } = node;
      const more = { ...callMeta(node), ...defined({ usage, details, stopReason }) };
      if (Object.keys(more).length > 0) this.#group.others.push({ id: call.id, ...more });
    } else {
      this.#closeGroup();
      this.#group = { node, calls: [call], others: [] };
    }
    this.#checkCount(this.#group);
    this.#open.add(call);
  }

  #checkCount({ node: { id: nodeId }, calls: { length: count } }: Group): void {
    const limit = this.#limits.maxToolCalls;
    if (count > limit)
      throw contextTooLarge({ what: subject({ nodeId }, 0), unit: "tool calls", count, limit, nodeId });
  }

  #closeGroup(): void {
    if (this.#group === undefined) return;
    const { node, calls, others } = this.#group;
    const meta = { ...callMeta(node), ...(others.length > 0 ? { calls: others } : {}) };
    const { id: nodeId, parentId: _, arguments: __, toolCallId: ___, toolName: ____, meta: _____, ...rest } = node;
    const hasMeta = Object.keys(meta).length > 0;
    this.#items.push({
      ...rest,
      role: "assistant",
      content: [],
      toolCalls: calls,
      nodeId,
      ...(hasMeta ? { meta } : {}),
    });
    this.#group = undefined;
  }

  #resultOf(node: ContextNode): ContextItem {
    const toolCallId = this.#open.answer(node.toolCallId || this.#parentCall(node), node.toolName);
    if (toolCallId === undefined) return itemOf(node);
    return { ...itemOf(node), toolCallId };
  }

  #parentCall(node: ContextNode): string | undefined {
    const parent = this.#parentOf(node);
    if (parent?.role === "toolCall") return callId(parent);
    const calls = parent === undefined ? [] : callsOf(parent);
    return calls.length === 1 ? calls[0]?.id : undefined;
  }
}

function callId({ toolCallId, id }: ContextNode): string {
  return toolCallId === undefined || toolCallId === "" ? id : toolCallId;
}

/** Calls inside a node. */
function callsOf({ role, toolCalls = [] }: ContextNode): readonly ContextCall[] {
  return role === "assistant" ? toolCalls : [];
}

/** `meta` of a call's node. Its content is a rendering of the call that no model wrote. */
function callMeta({ meta, content }: ContextNode): Meta {
  const all: Record<string, unknown> = {};
  if (content.length > 0) all["content"] = content;
  for (const key of Object.keys(meta ?? {})) setField(all, key, meta?.[key]);
  return all;
}

function itemOf(node: ContextNode): ContextItem {
  const { id: nodeId, parentId: _, arguments: __, role, ...fields } = node;
  if (role === "toolCall") throw new TypeError("a call is not an item of its own");
  return { role, nodeId, ...fields };
}

function isOneMessage(one: ModelName | undefined, other: ModelName | undefined): boolean {
  return one?.api === other?.api && one?.provider === other?.provider && one?.id === other?.id;
}
