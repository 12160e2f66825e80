import {
  CONTEXT_FORMAT,
  CONTEXT_VERSION,
  type ContextDocument,
  type ContextItem,
  type ContextTarget,
  type Meta,
} from "./document.ts";
import { type ContextLimits, hardContextLimits } from "./limits.ts";
import { projectItems } from "./projection.ts";
import { asRead } from "./read-document.ts";
import { repairItems } from "./repair.ts";
import { contextForStructured, type SelectOptions } from "./select.ts";

export interface NormaliseOptions {
  /** Default: the document's `leafId`. */
  readonly nodeId?: string;
  readonly until?: SelectOptions["until"];
  /** Default false, as in an export. */
  readonly includeSystem?: boolean;
  /** Default false, as in an export. */
  readonly includeReasoning?: boolean;
  /** Default: what no configuration may exceed. */
  readonly limits?: ContextLimits;
}

/**
 * The form in which a document comes back from a session that was made of it: items instead of nodes, those of one
 * path alone, mended for the model.
 *
 * Throws what reading, selecting and repairing throw.
 */
export function normalise(value: unknown, target: ContextTarget, options: NormaliseOptions = {}): ContextDocument {
  const { nodeId, until, includeSystem = false, includeReasoning = false, limits = hardContextLimits } = options;
  const document = asRead(value, limits);
  const selected = projectItems(contextForStructured(document, nodeId, { until, limits }));
  const { source } = document;
  const items: ContextItem[] = [];
  for (const item of repairItems(selected, { target, repair: true, limits })) {
    if (item.role === "system" && !includeSystem) continue;
    items.push(plain(includeReasoning ? item : withoutReasoning(item)));
  }
  return { format: CONTEXT_FORMAT, version: CONTEXT_VERSION, ...(source === undefined ? {} : { source }), items };
}

function withoutReasoning(item: ContextItem): ContextItem {
  const content = item.content.filter(({ type }) => type !== "reasoning");
  const blocks = item.blocks?.filter(({ type }) => type !== "thinking");
  return { ...item, content, ...(blocks === undefined ? {} : { blocks }) };
}

/** Without blocks that say no more than `content` and `toolCalls`: texts first, then calls, and nothing of a provider's. */
function plain(item: ContextItem): ContextItem {
  const { blocks, ...rest } = item;
  if (blocks === undefined) return item;
  let hasCalls = false;
  for (const block of blocks) {
    if (!isBare(block) || (hasCalls && block["type"] !== "toolCall")) return item;
    hasCalls ||= block["type"] === "toolCall";
  }
  return rest;
}

function isBare(block: Meta): boolean {
  const fields = Object.keys(block).length;
  return block["type"] === "toolCall" ? fields === 4 : block["type"] === "text" && fields === 2;
}
