import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Workbench } from "../optimisation/workbench.ts";
import type { BlockTree, Written } from "./bench.ts";
import { BLOCKS_MARK, type BlockOperation, type BlocksRecord } from "./record.ts";

type Data = BlockOperation | BlocksRecord;

interface Waiting {
  readonly sessionId: string;
  readonly data: Data;
}

/** Bounded so that nobody who asks in a long run fills the memory. */
const maxWaiting = 1_000;

/** Writes what the user does to blocks: at once where no run is on, else at its next boundary. */
export class BlockWriting {
  readonly #bench: Workbench;
  readonly #on: (ctx: ExtensionContext) => BlockTree;
  #waiting: Waiting[] = [];

  constructor(bench: Workbench, on: (ctx: ExtensionContext) => BlockTree) {
    this.#bench = bench;
    this.#on = on;
    bench.boundary.contribute("blocks", ({ ctx }) => {
      const drafts = this.#due(ctx).map(({ data }) => ({ type: "custom" as const, customType: BLOCKS_MARK, data }));
      return drafts.length === 0 ? undefined : { drafts };
    });
    // An aborted run may have had no boundary that was taken.
    bench.on("blocks", "agent_settled", (_event, ctx) => {
      for (const { data } of this.#due(ctx)) bench.pi.appendEntry(BLOCKS_MARK, data);
      this.#waiting = [];
    });
  }

  write(data: Data, ctx: ExtensionContext): Written {
    if (ctx.isIdle()) {
      this.#bench.pi.appendEntry(BLOCKS_MARK, data);
      return "now";
    }
    const sessionId = ctx.sessionManager.getSessionId();
    // Of what is done to a block while it waits the last holds.
    this.#waiting = this.#waiting.filter((other) => blockOf(other.data) !== blockOf(data)).slice(1 - maxWaiting);
    this.#waiting.push({ sessionId, data });
    return "soon";
  }

  /** The highest number that waits. */
  highest(): number {
    const ids = this.#waiting.flatMap(({ data }) => ("blocks" in data ? data.blocks.map(({ id }) => id) : []));
    return ids.reduce((highest, id) => Math.max(highest, Number(id.slice(1))), 0);
  }

  /** What does not stand on the branch yet, and fits it. */
  #due(ctx: ExtensionContext): readonly Waiting[] {
    if (this.#waiting.length === 0) return [];
    const sessionId = ctx.sessionManager.getSessionId();
    const tree = this.#on(ctx);
    this.#waiting = this.#waiting.filter((one) => {
      if (one.sessionId !== sessionId) return false;
      return "blocks" in one.data
        ? one.data.blocks.every(({ id }) => tree.find(id) === undefined)
        : tree.hinders(one.data.operation, one.data.block) === undefined;
    });
    return this.#waiting;
  }
}

function blockOf(data: Data): string {
  return "blocks" in data ? (data.blocks[0]?.id ?? "") : data.block;
}
