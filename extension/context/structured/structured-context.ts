import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HelperContext } from "../../../protocol/context/built.ts";
import type { ContextReply } from "../../../protocol/link.ts";
import type { Memory } from "../../memory.ts";

/** Puts the conversation's past, as it was given to this process, into each request. */
export class StructuredContext {
  readonly #memory: Memory;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /** Takes what the daemon has sent. The same again changes nothing. */
  take(context: HelperContext, _ctx: ExtensionContext): ContextReply {
    const { hash, messages } = context;
    if (this.#memory.context?.hash !== hash) {
      this.#memory.context = { ...context, given: messages.length, compactionId: undefined };
    }
    return { hash, messages: messages.length };
  }
}
