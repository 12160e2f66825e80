import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import type { Block, BlockTree, Usage } from "../pruning-services.ts";
import type { WrittenId } from "./written-id.ts";

/** An entry's messages in the context, after edits. */
export interface ViewEntry {
  readonly sourceEntry: Pick<SessionEntry, "id">;
  readonly messages: readonly AgentMessage[];
}

/** One place of the context: an entry's messages, or a block. */
export interface Place {
  readonly entryIds: readonly string[];
  /** The tag that the model sees. */
  readonly id: string | undefined;
  readonly block: Block | undefined;
  readonly messages: readonly AgentMessage[];
  readonly role: AgentMessage["role"] | "block";
  readonly tokens: number;
  /** The first and the last place of its group: an answer and all results of its calls. */
  readonly from: number;
  readonly to: number;
  /** Whether it carries a push that is still being delivered. */
  readonly isPending: boolean;
}

/** Places of a view, borders included. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The location of an id. */
export type Located =
  | { readonly kind: "at"; readonly place: number }
  | { readonly kind: "hidden"; readonly block: string }
  | { readonly kind: "consumed"; readonly parent: string }
  | { readonly kind: "inactive" }
  | { readonly kind: "gone" }
  | { readonly kind: "unknown"; readonly newest: string | undefined };

/** The context as the model sees it, with the locations of its ids. */
export interface View {
  readonly places: readonly Place[];
  /** The place of the current compress call. */
  readonly own: number | undefined;
  readonly usage: Usage | undefined;
  locate(id: WrittenId): Located;
}

export interface ViewSources {
  /** The session's projection. */
  readonly entries: readonly ViewEntry[];
  readonly idOf: (entryId: string) => string | undefined;
  readonly entryOf: (id: string) => string | undefined;
  readonly newestId: string | undefined;
  readonly tree: BlockTree;
  readonly tokensOf: (message: AgentMessage) => number;
  readonly isPending: (entryId: string) => boolean;
  readonly usage: Usage | undefined;
  /** The current compress call. Absent: a request of the user. */
  readonly callId?: string;
}

type Draft = Omit<Place, "from" | "to"> & { from: number; to: number };

export function viewOf(sources: ViewSources): View {
  const { tree, callId, usage } = sources;
  const places = placesOf(sources);
  const byEntry = new Map<string, number>();
  const byBlock = new Map<string, number>();
  for (const [at, { block, entryIds }] of places.entries()) {
    if (block === undefined) for (const id of entryIds) byEntry.set(id, at);
    else byBlock.set(block.id, at);
  }
  const found = (place: number | undefined): Located =>
    place === undefined ? { kind: "gone" } : { kind: "at", place };
  const message = (id: string): Located => {
    const entryId = sources.entryOf(id);
    if (entryId === undefined) return { kind: "unknown", newest: sources.newestId };
    const block = tree.over(entryId);
    return block === undefined ? found(byEntry.get(entryId)) : { kind: "hidden", block: block.id };
  };
  const block = (id: string): Located => {
    const named = tree.find(id);
    if (named === undefined) return { kind: "unknown", newest: tree.all.at(-1)?.id };
    if (named.state.kind === "active") return found(byBlock.get(id));
    const parent = named.state.kind === "consumed" ? tree.holder(id) : undefined;
    return parent === undefined ? { kind: "inactive" } : { kind: "consumed", parent: parent.id };
  };
  const own = callId === undefined ? -1 : places.findLastIndex(({ messages }) => messages.some(makes(callId)));
  return {
    places,
    own: own === -1 ? undefined : own,
    usage,
    locate: ({ kind, id }) => (kind === "message" ? message(id) : block(id)),
  };
}

function placesOf({ entries, idOf, tree, tokensOf, isPending }: ViewSources): readonly Place[] {
  const places: Draft[] = [];
  const shown = new Set<string>();
  /** The place of the newest answer with each call. */
  const callers = new Map<string, number>();
  const groups: Span[] = [];
  for (const { sourceEntry, messages: all } of entries) {
    const messages = all.filter(({ role }) => role !== "system");
    const [first] = messages;
    if (first === undefined) continue;
    const at = places.length;
    const block = tree.over(sourceEntry.id);
    if (block !== undefined) {
      if (shown.has(block.id)) continue;
      shown.add(block.id);
      const { id, entryIds, tokensAfter: tokens } = block;
      places.push({ entryIds, id, block, messages: [], role: "block", tokens, from: at, to: at, isPending: false });
      continue;
    }
    places.push({
      entryIds: [sourceEntry.id],
      id: idOf(sourceEntry.id),
      block,
      messages,
      role: first.role,
      tokens: messages.reduce((sum, message) => sum + tokensOf(message), 0),
      from: at,
      to: at,
      isPending: isPending(sourceEntry.id),
    });
    for (const message of messages) {
      if (message.role === "assistant") for (const id of callsOf(message)) callers.set(id, at);
      else if (message.role === "toolResult") grow(groups, callers.get(message.toolCallId) ?? at, at);
    }
  }
  for (const group of groups)
    for (let at = group.from; at <= group.to; at += 1) Object.assign(places[at] as Draft, group);
  return places;
}

/**
 * Groups an answer with its results and everything between them, and merges overlapping groups at the end of the list.
 */
function grow(groups: Span[], caller: number, result: number): void {
  let from = caller;
  for (let last = groups.at(-1); last !== undefined && last.to >= from; last = groups.at(-1)) {
    from = Math.min(from, last.from);
    groups.pop();
  }
  groups.push({ from, to: result });
}

function callsOf({ content }: Extract<AgentMessage, { role: "assistant" }>): string[] {
  return content.flatMap((part) => (part.type === "toolCall" ? [part.id] : []));
}

function makes(callId: string): (message: AgentMessage) => boolean {
  return (message) => message.role === "assistant" && callsOf(message).includes(callId);
}
