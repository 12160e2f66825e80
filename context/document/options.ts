/** How much of the results of tools is given. Bounds are UTF-16 units of the texts of one result; `null`: none. */
export interface ToolResultCaps {
  /** Default `null`. */
  readonly maxChars?: number | null;
  /** By the tool's name: goes before `maxChars`. */
  readonly perTool?: Readonly<Record<string, number | null>>;
}

/** The least that {@link ToolResultCaps} may say, and to which a result is cut where the budget asks for it. */
export const minResultChars = 200;

/** What a context is to be made of and how: the option `context`, without where the document comes from. */
export interface ContextOptions {
  /** The node up to which the conversation goes. Default: the document's `leafId`; all of a document of items. */
  readonly nodeId?: string;
  /** Whether that node itself belongs to it. Default: `before` for a user's node, else `through`. */
  readonly until?: "before" | "through";
  /** Default `auto`: as the session is. */
  readonly mode?: "auto" | "session" | "ephemeral";
  /** Default `auto`: 80 % of what the model and the settings leave. `null`: no budget. */
  readonly maxTokens?: number | "auto" | null;
  /** Default `trim`. */
  readonly onOverflow?: "trim" | "error" | "keep";
  /** Default true. */
  readonly repair?: boolean;
  /** Default `fail`. */
  readonly onError?: "fail" | "warn";
  /** Default `section`. */
  readonly systemNodes?: "section" | "drop";
  /** Default `include`. With `drop`, summaries of pi's own compactions and branches stay: they are the conversation. */
  readonly events?: "include" | "drop";
  readonly toolResults?: ToolResultCaps;
  /** Default `trim`. */
  readonly ephemeralAfterCompaction?: "trim" | "keep" | "drop";
}

/** What `prepareContext` needs to know besides the options that a client gives. */
export interface PrepareOptions extends ContextOptions {
  /** The budget in tokens that `maxTokens` has come to; `null`: none. Default: {@link contextBudget} of what is known. */
  readonly budget?: number | null;
}

/** What a budget of `auto` follows from; all in tokens. What is absent is not on, or not known. */
export interface BudgetFacts {
  readonly contextWindow?: number;
  /** What pi keeps free of the window. */
  readonly reserveTokens?: number;
  /** Where a compaction of our own begins. */
  readonly threshold?: number;
  /** What pruning allows. */
  readonly maxContext?: number;
}

/** What pi keeps free of a model's window unless its settings say otherwise. */
export const defaultReserveTokens = 16_384;

const autoPercent = 80;

/** The budget of a context in tokens; `null`: there is none. `auto` has none where pi knows no window. */
export function contextBudget(maxTokens: ContextOptions["maxTokens"], facts: BudgetFacts): number | null {
  if (maxTokens === null) return null;
  if (maxTokens !== undefined && maxTokens !== "auto") return maxTokens;
  const { contextWindow, reserveTokens = defaultReserveTokens, threshold, maxContext } = facts;
  if (contextWindow === undefined || contextWindow <= 0) return null;
  const least = Math.min(
    Math.max(contextWindow - reserveTokens, 0),
    threshold ?? Number.POSITIVE_INFINITY,
    maxContext ?? Number.POSITIVE_INFINITY,
  );
  return Math.floor((least * autoPercent) / 100);
}
