/** Limits of tool results, in UTF-16 units of the texts of one result; `null`: none. */
export interface ToolResultCaps {
  /** Default `null`. */
  readonly maxChars?: number | null;
  /** By tool name; overrides `maxChars`. */
  readonly perTool?: Readonly<Record<string, number | null>>;
}

/** Minimum of {@link ToolResultCaps}, and the length to which the budget can shorten a result. */
export const minResultChars = 200;

/** Options of a context: the option `context` without the source of the document. */
export interface ContextOptions {
  /** Last node of the conversation. Default: the document's `leafId`; the whole document if it has items. */
  readonly nodeId?: string;
  /** Whether that node is included. Default: `before` for a user's node, otherwise `through`. */
  readonly until?: "before" | "through";
  /** Default `auto`: the same as the session. */
  readonly mode?: "auto" | "session" | "ephemeral";
  /** Default `auto`: 80 % of the tokens that the model and the settings allow. `null`: no budget. */
  readonly maxTokens?: number | "auto" | null;
  /** Default `trim`. */
  readonly onOverflow?: "trim" | "error" | "keep";
  /** Default true. */
  readonly repair?: boolean;
  /** Default `fail`. */
  readonly onError?: "fail" | "warn";
  /** Default `section`. */
  readonly systemNodes?: "section" | "drop";
  /**
   * Default `include`. With `drop`, summaries of pi's compactions and branches stay, because they are part of the
   * conversation.
   */
  readonly events?: "include" | "drop";
  readonly toolResults?: ToolResultCaps;
  /** Default `trim`. */
  readonly ephemeralAfterCompaction?: "trim" | "keep" | "drop";
}

/** Input of `prepareContext` in addition to the client's options. */
export interface PrepareOptions extends ContextOptions {
  /** Resolved budget in tokens; `null`: none. Default: {@link contextBudget} of the known facts. */
  readonly budget?: number | null;
}

/** Inputs of the budget `auto`, in tokens. Absent: inactive or unknown. */
export interface BudgetFacts {
  readonly contextWindow?: number;
  /** Tokens of the window that pi reserves. */
  readonly reserveTokens?: number;
  /** Threshold of our own compaction. */
  readonly threshold?: number;
  /** Limit of pruning. */
  readonly maxContext?: number;
}

/** pi's default reserve of a model's window. */
export const defaultReserveTokens = 16_384;

const autoPercent = 80;

/** Returns the budget of a context in tokens; `null`: none. `auto` gives none if pi does not know the window. */
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
