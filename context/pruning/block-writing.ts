import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PartContext } from "../parts/optimisation/part-context.ts";
import type { BlockFold } from "./block-fold.ts";
import type { BlockTree, Written } from "./pruning-context.ts";
import { BLOCKS_MARK, type BlockOperation, type BlocksRecord } from "./record.ts";

type Data = BlockOperation | BlocksRecord;

interface Waiting {
  readonly sessionId: string;
  readonly data: Data;
}

/** What waits, and the branch with it: for this leaf. */
interface Ahead extends ReturnType<BlockFold["with"]> {
  readonly leafId: string | undefined;
  readonly waiting: readonly Waiting[];
}

const part = "blocks";
/** Whose blocks are, in the report of the cache. */
const owner = "pruning";
/** Bounded so that nobody who asks in a long run fills the memory. */
const maxWaiting = 1_000;

/** Writes what the user does to blocks: at once where no run is on, else at its next boundary. */
export class BlockWriting {
  readonly #host: PartContext;
  readonly #fold: BlockFold;
  #waiting: readonly Waiting[] = [];
  #ahead: Ahead | undefined;

  constructor(host: PartContext, fold: BlockFold) {
    this.#host = host;
    this.#fold = fold;
    host.boundary.contribute(part, ({ ctx }) => {
      const due = this.#due(ctx);
      for (const { data } of due) this.#changes(data, ctx);
      const drafts = due.map(({ data }) => ({ type: "custom" as const, customType: BLOCKS_MARK, data }));
      return drafts.length === 0 ? undefined : { drafts };
    });
    // An aborted run may have had no boundary that was taken.
    host.on(part, "agent_settled", (_event, ctx) => {
      for (const { data } of this.#due(ctx)) this.#append(data, ctx);
      this.#waiting = [];
    });
  }

  write(data: Data, ctx: ExtensionContext): Written {
    if (ctx.isIdle()) {
      this.#append(data, ctx);
      return "now";
    }
    const sessionId = ctx.sessionManager.getSessionId();
    // Of what is done to a block while it waits the last holds.
    const others = this.#waiting.filter(
      (other) => !("block" in data && "block" in other.data) || other.data.block !== data.block,
    );
    this.#waiting = [...others.slice(1 - maxWaiting), { sessionId, data }];
    return "soon";
  }

  /** The highest number that waits. */
  highest(): number {
    const ids = this.#waiting.flatMap(({ data }) => ("blocks" in data ? data.blocks.map(({ id }) => id) : []));
    return ids.reduce((highest, id) => Math.max(highest, Number(id.slice(1))), 0);
  }

  /** The blocks as they are once what waits is written. */
  ahead(ctx: ExtensionContext): BlockTree {
    return this.#waiting.length === 0 ? this.#fold.on(ctx.sessionManager) : this.#withWaiting(ctx).tree;
  }

  takes(record: BlocksRecord, ctx: ExtensionContext): boolean {
    const waiting = this.#waitingIn(ctx).map(({ data }) => data);
    return this.#fold.with(ctx.sessionManager, [...waiting, record]).taken.at(-1) === true;
  }

  #append(data: Data, ctx: ExtensionContext): void {
    this.#changes(data, ctx);
    this.#host.pi.appendEntry(BLOCKS_MARK, data);
  }

  /** The next request shows it: what that loses of the provider's cache is put down to pruning. */
  #changes(data: Data, { sessionManager }: ExtensionContext): void {
    const { cacheRule } = this.#host;
    if (!("blocks" in data)) cacheRule.changed(owner, this.#fold.on(sessionManager).find(data.block)?.entryIds ?? []);
    else for (const { entryIds } of data.blocks) cacheRule.changed(owner, entryIds);
  }

  /** What does not stand on the branch yet, and fits it. What never will is told once. */
  #due(ctx: ExtensionContext): readonly Waiting[] {
    if (this.#waiting.length === 0) return [];
    const { waiting, taken } = this.#withWaiting(ctx);
    const tree = this.#fold.on(ctx.sessionManager);
    for (const [at, { data }] of waiting.entries()) {
      if (taken[at] === true || isDone(data, tree)) continue;
      const error = new Error(`${namesOf(data)} does not fit the branch any more, and is left out.`);
      this.#host.fault(`blocks/${"blocks" in data ? "compress" : data.operation}`, error, part);
    }
    this.#waiting = waiting.filter((_one, at) => taken[at] === true);
    return this.#waiting;
  }

  #waitingIn({ sessionManager }: ExtensionContext): readonly Waiting[] {
    const now = sessionManager.getSessionId();
    return this.#waiting.filter(({ sessionId }) => sessionId === now);
  }

  #withWaiting(ctx: ExtensionContext): Ahead {
    const waiting = this.#waitingIn(ctx);
    const leafId = ctx.sessionManager.getLeafEntry()?.id;
    const known = this.#ahead;
    const isKnown = known?.leafId === leafId && known?.waiting.length === waiting.length;
    if (known !== undefined && isKnown && waiting.every((one, at) => one === known.waiting[at])) return known;
    const data = waiting.map((one) => one.data);
    this.#ahead = { ...this.#fold.with(ctx.sessionManager, data), leafId, waiting };
    return this.#ahead;
  }
}

/** It stands on the branch, or nothing is left to do. */
function isDone(data: Data, tree: BlockTree): boolean {
  if ("blocks" in data) return data.blocks.every(({ id }) => tree.find(id) !== undefined);
  return tree.find(data.block)?.state.kind === (data.operation === "decompress" ? "inactive" : "active");
}

function namesOf(data: Data): string {
  return "blocks" in data ? data.blocks.map(({ id }) => id).join(", ") : `${data.operation} ${data.block}`;
}
