import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SeenEntry } from "./cut.ts";

/** What is known of a context beside what stands on the branch: parts of it may be shown as less than they are. */
export interface CompactionAdvice {
  /** Tokens of the next request as it will be sent. `undefined`: what stands on the branch says it. */
  tokens(ctx: ExtensionContext): number | undefined;
  /** The entries of a context with what is shown of each, which may be nothing. */
  shown(context: readonly SeenEntry[], ctx: ExtensionContext): readonly SeenEntry[];
}

/** Where the part that shows less than there is says so. Nobody: all is shown. */
export class CompactionAdviser implements CompactionAdvice {
  #advice: CompactionAdvice | undefined;

  take(advice: CompactionAdvice): void {
    this.#advice = advice;
  }

  tokens(ctx: ExtensionContext): number | undefined {
    return this.#advice?.tokens(ctx);
  }

  shown(context: readonly SeenEntry[], ctx: ExtensionContext): readonly SeenEntry[] {
    return this.#advice?.shown(context, ctx) ?? context;
  }
}
