import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import type { PruningExport, PruningInspection, PruningMode } from "../../../protocol/pruning/report.ts";
import type { WindowContent } from "../../parts/optimisation/window.ts";
import { blockBudget, shownWithin } from "../block-budget.ts";
import type { Candidate } from "../compress/candidates.ts";
import type { Block, BlockTree, PruningServices } from "../pruning-services.ts";

const maxMessages = 2_000;
const maxBlocks = 1_000;
const maxCandidates = 16;
const maxWhy = 1_024;

/** Names of kinds here by those of `optimisation/inspect`. */
const kinds: Readonly<Record<string, string>> = {
  system: "system",
  tools: "tools",
  user: "user",
  assistant: "assistant",
  toolResults: "results",
  blocks: "blocks",
};

type InspectionNeeds = Pick<PruningServices, "blocks" | "off" | "pruning" | "usage" | "estimator" | "ids" | "recall">;

export interface InspectionSources {
  readonly mode: PruningMode;
  readonly candidates: () => readonly Candidate[];
  readonly content: (ctx: ExtensionContext) => WindowContent;
}

/** The answer to `pruning/inspect`. */
export function inspectionOf(
  host: InspectionNeeds,
  { mode, candidates, content }: InspectionSources,
  ctx: ExtensionContext,
): PruningInspection {
  const tree = host.blocks.on(ctx);
  const off = host.off(ctx);
  const { used, byKind } = content(ctx);
  return {
    // The cast is safe: it is only serialized as JSON.
    configuration: host.pruning() as PruningInspection["configuration"],
    mode,
    ...(off === undefined ? {} : { off: off.slice(0, maxWhy) }),
    window: windowOf(host, used, ctx),
    byKind: byKind(({ of }) => kinds[of] ?? "other"),
    messages: messagesOf(host, tree, ctx),
    blocks: blocksOf(host, tree, ctx),
    candidates: off === undefined ? candidates().slice(0, maxCandidates).map(rounded) : [],
  };
}

/** The state of a block in the report. */
function stateOf({ state }: Block) {
  return {
    state: state.kind,
    ...(state.kind === "consumed" ? { parent: state.parent } : {}),
    ...(state.kind === "checkpointed" ? { compactionId: state.compactionId } : {}),
  };
}

/** The first and last id in the range of a block. */
export function bordersOf({ entryIds }: Block, host: Pick<PruningServices, "ids">, ctx: ExtensionContext) {
  const first = firstId(entryIds, host, ctx);
  const last = firstId(entryIds.toReversed(), host, ctx);
  return { ...(first === undefined ? {} : { startId: first }), ...(last === undefined ? {} : { endId: last }) };
}

function firstId(entryIds: readonly string[], { ids }: Pick<PruningServices, "ids">, ctx: ExtensionContext) {
  for (const entryId of entryIds) {
    const id = ids.idOf(entryId, ctx);
    if (id !== undefined) return id;
  }
  return undefined;
}

function windowOf(host: InspectionNeeds, used: number, ctx: ExtensionContext): PruningInspection["window"] {
  const usage = host.usage(ctx);
  if (usage === undefined) return null;
  const { window, max, min } = usage;
  return {
    tokens: Math.round(window),
    used,
    max: Math.round(max * window),
    min: Math.round(min * window),
  };
}

function messagesOf(host: InspectionNeeds, tree: BlockTree, ctx: ExtensionContext): PruningInspection["messages"] {
  const { ids, estimator } = host;
  const found: PruningInspection["messages"] = [];
  const shown = new Map(
    ctx.sessionManager.buildSessionProjection().entries.map(({ sourceEntry, messages }) => [sourceEntry.id, messages]),
  );
  for (const entry of ctx.sessionManager.getBranch().toReversed()) {
    if (found.length >= maxMessages) break;
    const id = ids.idOf(entry.id, ctx);
    if (id === undefined) continue;
    const messages = shown.get(entry.id) ?? [];
    const block = tree.over(entry.id)?.id;
    const tokens = messages.reduce((sum, message) => sum + estimator.message(message), 0);
    const known = { id, entryId: entry.id, role: roleOf(entry), tokens: Math.ceil(tokens) };
    found.push(block === undefined ? known : { ...known, block });
  }
  return found.reverse();
}

function roleOf(entry: SessionEntry): string {
  if (entry.type === "message") return String(entry.message.role).slice(0, 64);
  return entry.type === "custom_message" ? "custom" : entry.type;
}

function blocksOf(host: InspectionNeeds, tree: BlockTree, ctx: ExtensionContext): PruningInspection["blocks"] {
  const budget = blockBudget(host, ctx);
  const shown = shownWithin(tree, budget);
  return tree.all.slice(-maxBlocks).map((block) => ({
    id: block.id,
    topic: block.topic.slice(0, 80).toWellFormed(),
    ...stateOf(block),
    ...bordersOf(block, host, ctx),
    children: block.children.slice(0, maxBlocks),
    tokensBefore: Math.round(block.tokensBefore),
    tokensAfter: Math.round(block.tokensAfter),
    isShortened: shown.has(block.id),
  }));
}

function rounded<T extends { readonly tokens: number }>(one: T): T {
  return { ...one, tokens: Math.round(one.tokens) };
}

const maxExportedBlocks = 10_000;
const maxExportedChildren = 1_000;

/** The answer to `pruning/export`. */
export function exportOf(
  { blocks, ids }: Pick<PruningServices, "blocks" | "ids">,
  mode: PruningMode,
  ctx: ExtensionContext,
): PruningExport {
  const { sessionManager } = ctx;
  const tree = blocks.on(ctx);
  const named = sessionManager.getBranch().flatMap(({ id: entryId }) => {
    const id = ids.idOf(entryId, ctx);
    return id === undefined ? [] : [[id, entryId] as const];
  });
  return {
    v: 1,
    sessionId: sessionManager.getSessionId(),
    mode,
    blocks: tree.all.slice(-maxExportedBlocks).map((block) => ({
      id: block.id,
      topic: block.topic.slice(0, 80).toWellFormed(),
      ...stateOf(block),
      entryId: block.entryId,
      firstEntryId: block.firstEntryId,
      lastEntryId: block.lastEntryId,
      entryIds: [...block.entryIds],
      children: block.children.slice(0, maxExportedChildren),
      text: blocks.textOf(block, tree),
      tokensBefore: Math.round(block.tokensBefore),
      tokensAfter: Math.round(block.tokensAfter),
    })),
    ids: Object.fromEntries(named),
  };
}
