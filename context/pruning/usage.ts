import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../extension/branch-view.ts";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { pruningLimits } from "../../protocol/pruning/limits.ts";
import { sessionThreshold } from "../parts/compaction/threshold.ts";
import { reportOf, type Tail, tailOf } from "../parts/estimator/branch.ts";
import type { Blocks, PruningServices, Usage } from "./pruning-services.ts";

/** A request's messages before and after the stage that renders blocks. */
interface Rendered {
  readonly whole: readonly AgentMessage[];
  readonly pruned: readonly AgentMessage[];
}

/** A request whose answer reported its tokens. */
type Reported = Rendered & { readonly answer: AgentMessage };

type Host = Pick<PruningServices, "pipeline" | "estimator" | "compaction" | "pruning" | "off"> & {
  readonly blocks: Pick<Blocks, "rendered">;
};

/**
 * The window usage of the next rendered request: the last report, plus later messages, plus the effect of block changes
 * since then.
 */
export class WindowUsage {
  readonly #host: Host;
  #whole: readonly AgentMessage[] | undefined;
  #sending: Rendered | undefined;
  #reported: Reported | undefined;

  /** Construct after the stage that renders blocks is registered. */
  constructor(host: Host) {
    this.#host = host;
    host.pipeline.use(
      "context_with_system",
      "carrier",
      (messages) => {
        this.#whole = host.pruning().enabled ? messages : undefined;
      },
      "usage",
    );
    host.pipeline.use(
      "context_with_system",
      "blocks",
      (messages) => {
        this.#sending = this.#whole === undefined ? undefined : { whole: this.#whole, pruned: messages };
        this.#whole = undefined;
      },
      "usage",
    );
    host.pipeline.use("message_end", "learn", (message) => this.#answered(message), "usage");
  }

  /** Usage of the next request. `undefined`: unknown window, or no report since a compaction. */
  next(ctx: ExtensionContext): Usage | undefined {
    const tail = tailOf(ctx.sessionManager);
    if (tail.reported === undefined && isCompacted(ctx)) return undefined;
    return this.#usage(Math.max(0, this.#host.estimator.context(ctx) + this.#prunedSince(tail, ctx)), ctx);
  }

  /** Usage of a request with these messages. */
  of(messages: readonly AgentMessage[], ctx: ExtensionContext): Usage | undefined {
    // The first request of a process has no predecessor, but the branch may contain the last report.
    if (this.#reported === undefined || tailOf(ctx.sessionManager).reported === undefined) return this.next(ctx);
    return this.#usage(this.#host.estimator.request(messages, ctx), ctx);
  }

  #usage(tokens: number, ctx: ExtensionContext): Usage | undefined {
    const { model } = ctx;
    if (model === undefined) return undefined;
    const compaction = this.#host.compaction();
    const threshold = compaction.enabled ? sessionThreshold(compaction, ctx)?.tokens : undefined;
    const limits = pruningLimits(this.#host.pruning(), compaction, model, threshold);
    if (limits === undefined) return undefined;
    const { window, max, min } = limits;
    return { tokens, window, share: tokens / window, max: max / window, min: min / window };
  }

  #answered(message: AgentMessage): void {
    if (message.role !== "assistant") return;
    const sending = this.#sending;
    this.#sending = undefined;
    if (sending !== undefined && reportOf(message) !== undefined) this.#reported = { ...sending, answer: message };
  }

  /** The token difference since the reported request; negative if less is sent now. */
  #prunedSince({ reported, added }: Tail, ctx: ExtensionContext): number {
    const known = this.#reported;
    if (reported === undefined || known === undefined || !isSame(known.answer, reported.message)) return 0;
    const since = [reported.message, ...added];
    const whole = [...known.whole, ...since];
    const now = this.#host.off(ctx) === undefined ? this.#host.blocks.rendered(whole, ctx) : whole;
    const before = new Set([...known.pruned, ...since]);
    const come = now.filter((message) => !before.delete(message));
    return this.#sum(come) - this.#sum([...before]);
  }

  #sum(messages: readonly AgentMessage[]): number {
    return messages
      .filter(({ role }) => role !== "system")
      .reduce((sum, message) => sum + this.#host.estimator.message(message), 0);
  }
}

/** pi stores a copy of the message that it shows. */
function isSame(a: AgentMessage, b: AgentMessage): boolean {
  return a === b || (a.role === b.role && a.timestamp === b.timestamp);
}

function isCompacted({ sessionManager }: ExtensionContext): boolean {
  for (const { type } of fromLeaf(sessionManager)) if (type === "compaction") return true;
  return false;
}
