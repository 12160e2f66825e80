import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../extension/pi-types.ts";
import { pruningLimits } from "../../protocol/pruning/limits.ts";
import { reportOf, type Tail, tailOf } from "../parts/estimator/branch.ts";
import type { Blocks, PruningContext, Usage } from "./pruning-context.ts";

/** A request's messages in front of the stage that renders blocks, and behind it. */
interface Rendered {
  readonly whole: readonly AgentMessage[];
  readonly pruned: readonly AgentMessage[];
}

/** A request that was answered with a report of its tokens. */
type Reported = Rendered & { readonly answer: AgentMessage };

type Host = Pick<PruningContext, "pipeline" | "estimator" | "config" | "pruning" | "off"> & {
  readonly blocks: Pick<Blocks, "rendered">;
};

/**
 * How full the window is with the next request as it is rendered: what was reported last, what came since, and what blocks
 * have taken away or given back since.
 */
export class WindowUsage {
  readonly #host: Host;
  #whole: readonly AgentMessage[] | undefined;
  #sending: Rendered | undefined;
  #reported: Reported | undefined;

  /** Add it behind the stage that renders blocks. */
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

  /** Of the next request. `undefined`: the window is not known, or nothing was reported since a compaction. */
  next(ctx: ExtensionContext): Usage | undefined {
    const tail = tailOf(ctx.sessionManager);
    if (tail.reported === undefined && isCompacted(ctx)) return undefined;
    return this.#usage(Math.max(0, this.#host.estimator.context(ctx) + this.#prunedSince(tail, ctx)), ctx);
  }

  /** Of the request that is made of these messages. */
  of(messages: readonly AgentMessage[], ctx: ExtensionContext): Usage | undefined {
    // The first request of a process has no other to be compared with, but its session may say what the last had.
    if (this.#reported === undefined || tailOf(ctx.sessionManager).reported === undefined) return this.next(ctx);
    return this.#usage(this.#host.estimator.request(messages, ctx), ctx);
  }

  #usage(tokens: number, { model }: ExtensionContext): Usage | undefined {
    if (model === undefined) return undefined;
    const limits = pruningLimits(this.#host.pruning(), this.#host.config().compaction, model);
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

  /** What the report does not have yet: below 0 where less is sent than in its request. */
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

/** pi writes another object than it shows. */
function isSame(a: AgentMessage, b: AgentMessage): boolean {
  return a === b || (a.role === b.role && a.timestamp === b.timestamp);
}

function isCompacted({ sessionManager }: ExtensionContext): boolean {
  let entry = sessionManager.getLeafEntry();
  while (entry !== undefined && entry.type !== "compaction") {
    entry = entry.parentId === null ? undefined : sessionManager.getEntry(entry.parentId);
  }
  return entry !== undefined;
}
