import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../extension/engine-port.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import type { OptimisationConfig } from "../../protocol/optimisation/config.ts";
import type { PruningConfig } from "../../protocol/pruning/config.ts";
import type { PruningMode } from "../../protocol/pruning/report.ts";
import type { CacheRule } from "../parts/cache/cache-rule.ts";
import type { CompactionAdviser } from "../parts/compaction/advice.ts";
import type { TokenEstimator } from "../parts/estimator/estimator.ts";
import type { RequestEntries } from "../parts/map/request-entries.ts";
import type { PendingEdits } from "../parts/recall/pending-edits.ts";
import type { Recall } from "../parts/recall/recall.ts";
import type { Prompts } from "./prompts/prompts.ts";
import type { BlockOperation, BlockRecord, BlocksRecord } from "./record.ts";

/** The ids by which the model names messages: `m001`. A message gets its id with its first request and keeps it. */
export interface MessageIds {
  /** The id of an entry. `undefined`: its message has no tag. */
  idOf(entryId: string, ctx: ExtensionContext): string | undefined;
  /** The entry of an id. `undefined`: the id was never assigned. */
  entryOf(id: string, ctx: ExtensionContext): string | undefined;
  /** The most recently assigned id. */
  newest(ctx: ExtensionContext): string | undefined;
  /** How often the model wrote ids itself: `removed` tags in this process, `bare` ids without a tag in the whole file. */
  echoes(ctx: ExtensionContext): { readonly removed: number; readonly bare: number };
}

export type BlockState =
  | { readonly kind: "active" }
  | { readonly kind: "consumed"; readonly parent: string }
  | { readonly kind: "inactive" }
  | { readonly kind: "checkpointed"; readonly compactionId: string };

export interface Block extends BlockRecord {
  readonly topic: string;
  readonly state: BlockState;
  /** The entry that stores the block: the result of the call, or a custom entry. */
  readonly entryId: string;
  /** The call whose result stores the block, and the entry of the answer with this call. */
  readonly callId?: string;
  readonly answerId?: string;
}

/** The blocks of the active branch: a fold over its entries, never maintained by events. */
export interface BlockTree {
  /** By number. */
  readonly all: readonly Block[];
  readonly active: readonly Block[];
  find(id: string): Block | undefined;
  /** The active block that covers an entry. */
  over(entryId: string): Block | undefined;
  /** The active block that contains a consumed block. */
  holder(id: string): Block | undefined;
  /** Why a block cannot be compressed or decompressed now, as a sentence. `undefined`: it can. */
  hinders(operation: BlockOperation["operation"], id: string): string | undefined;
}

/** `now`: written to the branch. `soon`: a run is active; written at its next boundary. */
export type Written = "now" | "soon";

export interface Blocks {
  on(ctx: ExtensionContext): BlockTree;
  /** The blocks after all pending operations of the user are written. */
  ahead(ctx: ExtensionContext): BlockTree;
  /** Whether blocks would be stored after all pending writes. */
  takes(record: BlocksRecord, ctx: ExtensionContext): boolean;
  /** The id of the next block, counted over all entries of the file. */
  nextId(ctx: ExtensionContext, ahead?: number): string;
  /**
   * A request's messages with each covered range replaced by its block: a pure function of branch, operations and
   * configuration.
   */
  rendered(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[];
  /** The block that a message of `rendered` represents; the message already has its tag. `undefined`: not a block. */
  blockIn(message: AgentMessage): string | undefined;
  /** The full text of a block with its nested blocks. */
  textOf(block: Block, tree: BlockTree): string;
  /** Applies an operation of the user. The caller checks {@link BlockTree.hinders} of `ahead` first. */
  operate(operation: BlockOperation["operation"], id: string, ctx: ExtensionContext): Written;
  /** Stores blocks made without the model. Blocks that no longer fit the branch are skipped and reported. */
  store(record: BlocksRecord, ctx: ExtensionContext): Written;
}

export interface Usage {
  /** Estimated tokens of the next request, as it is rendered. */
  readonly tokens: number;
  readonly window: number;
  /** `tokens` divided by `window`. */
  readonly share: number;
  /** The limits as shares of the window. */
  readonly max: number;
  readonly min: number;
}

/** Whether the model or the user decides when the context is compressed. */
export interface Mode {
  readonly of: (ctx: ExtensionContext) => PruningMode;
  /** Sets the mode of the session from its next request on, also after a resume. Returns whether it changed. */
  readonly set: (mode: PruningMode, ctx: ExtensionContext) => boolean;
  /** Allows one compress call in strict mode. Expires when the run settles. */
  readonly grant: () => void;
}

/** Services of the optimisation that pruning uses. */
export interface SharedServices {
  readonly estimator: TokenEstimator;
  readonly cacheRule: CacheRule;
  /** Access to content that was removed from the context. */
  readonly recall: Recall;
  /** Edits that pi does not have yet. */
  readonly pending: PendingEdits;
  /** Maps the messages of a request to entries. */
  readonly entries: RequestEntries;
  /** Takes the rendered sizes, for compactions. */
  readonly advice: CompactionAdviser;
  readonly compaction: () => OptimisationConfig["compaction"];
}

/** All services that exist for the parts of pruning. Each part takes only those that it picks. */
export interface PruningServices extends HostPort, SharedServices {
  /** The current configuration; it can change between two requests. */
  readonly pruning: () => PruningConfig;
  /** Why pruning is off for this request. `undefined`: it is on. */
  readonly off: (ctx: ExtensionContext) => string | undefined;
  /** Disables pruning because another extension owns the tool's name; `undefined` enables it again. */
  readonly conflict: (why: string | undefined) => void;
  /** Texts for the model: `prompts.text("compress")` is the tool's description. */
  readonly prompts: Prompts;
  readonly ids: MessageIds;
  readonly blocks: Blocks;
  /** Usage of the next request. `undefined`: unknown window, or no report since a compaction. */
  readonly usage: (ctx: ExtensionContext) => Usage | undefined;
  /** Whether the model or the user decides when to compress. */
  readonly mode: Mode;
  /** The number of consecutive failures while compression is paused. `undefined`: not paused. */
  readonly breaker: (ctx: ExtensionContext) => number | undefined;
}
