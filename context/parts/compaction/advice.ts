import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SeenEntry } from "./cut.ts";

/** Rendered sizes of a context whose messages are partly replaced by shorter ones. */
export interface CompactionAdvice {
  /** Tokens of the next request as it will be sent. `undefined`: as on the branch. */
  tokens(ctx: ExtensionContext): number | undefined;
  /** The entries of a context with their rendered messages, possibly none. */
  shown(context: readonly SeenEntry[], ctx: ExtensionContext): readonly SeenEntry[];
}

/** Holds the advice of the part that renders less. Without one, everything is rendered. */
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
