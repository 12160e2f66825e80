/** A piece of a block's body: words, or another block in its place. Words are never searched for ids again. */
export type Segment = { readonly text: string } | { readonly block: string };

/** A stored summary that stands for a range of the transcript, as the result of its compress call has it. */
export interface BlockRecord {
  /** `b1`: counted over the whole file, never used again. */
  readonly id: string;
  /** The range on the branch, borders included. */
  readonly firstEntryId: string;
  readonly lastEntryId: string;
  /** Every entry of the range that was in the context, also those under blocks that it has taken in. */
  readonly entryIds: readonly string[];
  /** The blocks that it has taken in. */
  readonly children: readonly string[];
  readonly body: readonly Segment[];
  /** Texts that are kept word for word. */
  readonly kept: readonly { readonly title: string; readonly text: string }[];
  /** Estimates of what it has covered when it was made, and of its text. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** The `details` of a result of compress, and the data of the custom entry of a block that was made without the model. */
export interface BlocksRecord {
  readonly v: 1;
  readonly topic: string;
  readonly blocks: readonly BlockRecord[];
}

/** What the user does to a block, as the data of a custom entry says it. */
export interface BlockOperation {
  readonly v: 1;
  /** `decompress`: what it covers is in the context again. `recompress`: the block is. */
  readonly operation: "decompress" | "recompress";
  readonly block: string;
}

/** `customType` of the entries that say what the user has done to blocks, and of blocks made without the model. */
export const BLOCKS_MARK = "pi-rpcd.blocks";
/** `customType` of the entries that say which ids messages have. */
export const IDS_MARK = "pi-rpcd.ids";
/** `customType` of the entries that say in which mode pruning is. */
export const MODE_MARK = "pi-rpcd.pruning-mode";
