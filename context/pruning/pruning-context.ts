import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../extension/pi-types.ts";
import type { PruningConfig } from "../../protocol/pruning/config.ts";
import type { PartContext } from "../parts/optimisation/part-context.ts";
import type { Mode } from "./mode.ts";
import type { Prompts } from "./prompts/prompts.ts";
import type { BlockOperation, BlockRecord, BlocksRecord } from "./record.ts";

/** The ids by which the model names messages: `m001`. One is given when the message is first in a request, for good. */
export interface MessageIds {
  /** Of an entry whose message has a tag. `undefined`: it has none. */
  idOf(entryId: string, ctx: ExtensionContext): string | undefined;
  /** By an id in its written form. `undefined`: it was never given. */
  entryOf(id: string, ctx: ExtensionContext): string | undefined;
  /** The newest id that was given. */
  newest(ctx: ExtensionContext): string | undefined;
  /** How often the model has written ids itself: tags that were removed since the session began here, and ids without a tag. */
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
  /** The entry that has it: the result of the call, or the custom entry. */
  readonly entryId: string;
  /** The call whose result has it, and the entry of the answer with this call. */
  readonly callId?: string;
  readonly answerId?: string;
}

/** The blocks as the active branch has them: a fold over its entries, never kept by events. */
export interface BlockTree {
  /** By number. */
  readonly all: readonly Block[];
  readonly active: readonly Block[];
  find(id: string): Block | undefined;
  /** The active block that covers an entry. */
  over(entryId: string): Block | undefined;
  /** The active block that a consumed one is shown in. */
  holder(id: string): Block | undefined;
  /** Why a block cannot be put away or back now, as a sentence. `undefined`: it can. */
  hinders(operation: BlockOperation["operation"], id: string): string | undefined;
}

/** `now`: it stands on the branch. `soon`: the run is on, and it is written at its next boundary. */
export type Written = "now" | "soon";

export interface Blocks {
  on(ctx: ExtensionContext): BlockTree;
  /** As they will be once what the user has done in this run is written. */
  ahead(ctx: ExtensionContext): BlockTree;
  /** Whether blocks would be stored, behind what waits to be written. */
  takes(record: BlocksRecord, ctx: ExtensionContext): boolean;
  /** The id of the next block: counted over all entries of the file. */
  nextId(ctx: ExtensionContext, ahead?: number): string;
  /** A request's messages with blocks in the place of what they cover: a pure function of branch, operations and configuration. */
  rendered(messages: readonly AgentMessage[], ctx: ExtensionContext): readonly AgentMessage[];
  /** The block that a message of `rendered` stands for. It has its tag already. `undefined`: it is another message. */
  blockIn(message: AgentMessage): string | undefined;
  /** The body of a block with those that it holds, as the model sees it when it is whole. */
  textOf(block: Block, tree: BlockTree): string;
  /** What the user does to a block, once {@link BlockTree.hinders} of `ahead` has nothing against it. */
  operate(operation: BlockOperation["operation"], id: string, ctx: ExtensionContext): Written;
  /** A block that is made without the model. One that does not fit the branch any more is passed over, which is told. */
  store(record: BlocksRecord, ctx: ExtensionContext): Written;
}

export interface Usage {
  /** Estimated tokens of the next request, as it is rendered. */
  readonly tokens: number;
  readonly window: number;
  /** Their share. */
  readonly share: number;
  /** The limits as shares of the window. */
  readonly max: number;
  readonly min: number;
}

/** What the parts of pruning share. */
export interface PruningContext extends PartContext {
  /** As it is now: it may change between two requests. */
  readonly pruning: () => PruningConfig;
  /** Whether anything is done in this request, and why not. */
  readonly off: (ctx: ExtensionContext) => string | undefined;
  /** Another extension has the tool's name: there is no pruning until this is called with `undefined`. */
  readonly conflict: (why: string | undefined) => void;
  /** What the model is told: `prompts.text("compress")` is the tool's description. */
  readonly prompts: Prompts;
  readonly ids: MessageIds;
  readonly blocks: Blocks;
  /** Of the next request. `undefined`: the model's window is not known, or nothing was reported since a compaction. */
  readonly usage: (ctx: ExtensionContext) => Usage | undefined;
  /** Who decides, the model or the user. */
  readonly mode: Mode;
  /** How many compressions in a row have failed, while there are to be no more. `undefined`: there may be. */
  readonly breaker: (ctx: ExtensionContext) => number | undefined;
}
