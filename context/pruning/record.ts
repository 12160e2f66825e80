/** The first line of a block; the prompts quote it. */
export const BLOCK_HEADER = "[Compressed conversation section]";
/** A piece of a block's body: text, or a nested block. Text is never scanned for ids again. */
export type Segment = { readonly text: string } | { readonly block: string };

/** A stored summary of a range of the transcript, in the format of the compress result. */
export interface BlockRecord {
  /** `b1`: counted over the whole file, never reused. */
  readonly id: string;
  /** The range on the branch, borders included. */
  readonly firstEntryId: string;
  readonly lastEntryId: string;
  /** Every entry of the range that was in the context, including entries covered by nested blocks. */
  readonly entryIds: readonly string[];
  /** Ids of nested blocks. */
  readonly children: readonly string[];
  readonly body: readonly Segment[];
  /** Verbatim texts. */
  readonly kept: readonly { readonly title: string; readonly text: string }[];
  /** Estimates of the covered range at creation, and of the block's text. */
  readonly tokensBefore: number;
  readonly tokensAfter: number;
}

/** The `details` of a compress result, and the data of a custom entry for blocks made without the model. */
export interface BlocksRecord {
  readonly v: 1;
  readonly topic: string;
  readonly blocks: readonly BlockRecord[];
}

/** An operation of the user on a block: the data of a custom entry. */
export interface BlockOperation {
  readonly v: 1;
  /** `decompress` restores the covered range to the context; `recompress` restores the block. */
  readonly operation: "decompress" | "recompress";
  readonly block: string;
}

/** `customType` of block operations of the user, and of blocks made without the model. */
export const BLOCKS_MARK = "pi-rpcd.blocks";
/** `customType` of the entries that record message ids. */
export const IDS_MARK = "pi-rpcd.ids";
/** `customType` of the entries that record the mode. */
export const MODE_MARK = "pi-rpcd.pruning-mode";
