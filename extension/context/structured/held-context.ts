import type { HelperContext } from "../../../protocol/context/built.ts";

/** A context that this process holds for its conversation. Part of the memory that outlives the modules. */
export interface HeldContext extends HelperContext {
  /** How many messages came with it: compactions may have left fewer. */
  readonly given: number;
  /** The newest compaction on the branch that the messages are fitted behind. */
  readonly compactionId: string | undefined;
}
