/** Limits of a document. */
export interface ContextLimits {
  readonly maxDocumentBytes: number;
  readonly maxNodes: number;
  /** Items after selection. */
  readonly maxItems: number;
  /** UTF-8 bytes of one text, and decoded bytes of one image. */
  readonly maxBlockBytes: number;
  readonly maxImageBytes: number;
  /** Calls in one assistant item. */
  readonly maxToolCalls: number;
  /** Levels of objects and arrays in the arguments of one call. */
  readonly maxArgumentDepth: number;
}

const mebibyte = 1024 * 1024;

export const defaultContextLimits: ContextLimits = {
  maxDocumentBytes: 32 * mebibyte,
  maxNodes: 50_000,
  maxItems: 10_000,
  maxBlockBytes: 8 * mebibyte,
  maxImageBytes: 8 * mebibyte,
  maxToolCalls: 128,
  maxArgumentDepth: 64,
};

/** The maximum that a configuration can set. */
export const hardContextLimits: ContextLimits = {
  maxDocumentBytes: 256 * mebibyte,
  maxNodes: 500_000,
  maxItems: 100_000,
  maxBlockBytes: 64 * mebibyte,
  maxImageBytes: 32 * mebibyte,
  maxToolCalls: 512,
  maxArgumentDepth: 64,
};
