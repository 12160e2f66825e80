import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { BlockFold } from "./block-fold.ts";
import type { BlockTree, PruningServices, Written } from "./pruning-services.ts";
import { BLOCKS_MARK, type BlockOperation, type BlocksRecord } from "./record.ts";

type Data = BlockOperation | BlocksRecord;
type WritingNeeds = Pick<PruningServices, "pi" | "boundary" | "on" | "cacheRule" | "fault">;

interface Waiting {
  readonly sessionId: string;
  readonly data: Data;
}

/** Pending data and the resulting tree, cached for one leaf. */
interface Ahead extends ReturnType<BlockFold["with"]> {
  readonly leafId: string | undefined;
  readonly waiting: readonly Waiting[];
}

const part = "blocks";
/** The owner of blocks in the cache report. */
const owner = "pruning";
/** Bounds memory when many operations arrive during a long run. */
const maxWaiting = 1_000;

/** Writes the user's block operations: immediately between runs, else at the next boundary. */
export class BlockWriting {
  readonly #host: WritingNeeds;
  readonly #fold: BlockFold;
  #waiting: readonly Waiting[] = [];
  #ahead: Ahead | undefined;

  constructor(host: WritingNeeds, fold: BlockFold) {
    this.#host = host;
    this.#fold = fold;
    host.boundary.contribute(part, ({ ctx }) => {
      const due = this.#due(ctx);
      for (const { data } of due) this.#changes(data, ctx);
      const drafts = due.map(({ data }) => ({ type: "custom" as const, customType: BLOCKS_MARK, data }));
      return drafts.length === 0 ? undefined : { drafts };
    });
    // An aborted run may have had no accepted boundary.
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
    // Of several pending operations on a block, the last one wins.
    const others = this.#waiting.filter(
      (other) => !("block" in data && "block" in other.data) || other.data.block !== data.block,
    );
    this.#waiting = [...others.slice(1 - maxWaiting), { sessionId, data }];
    return "soon";
  }

  /** The highest pending block number. */
  highest(): number {
    const ids = this.#waiting.flatMap(({ data }) => ("blocks" in data ? data.blocks.map(({ id }) => id) : []));
    return ids.reduce((highest, id) => Math.max(highest, Number(id.slice(1))), 0);
  }

  /** The blocks after all pending writes. */
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

  /** The next request shows the change, so its cache loss is attributed to pruning. */
  #changes(data: Data, { sessionManager }: ExtensionContext): void {
    const { cacheRule } = this.#host;
    if (!("blocks" in data)) cacheRule.changed(owner, this.#fold.on(sessionManager).find(data.block)?.entryIds ?? []);
    else for (const { entryIds } of data.blocks) cacheRule.changed(owner, entryIds);
  }

  /** Pending data that is not yet on the branch and fits it. Data that no longer fits is reported once and dropped. */
  #due(ctx: ExtensionContext): readonly Waiting[] {
    if (this.#waiting.length === 0) return [];
    const { waiting, taken } = this.#withWaiting(ctx);
    const tree = this.#fold.on(ctx.sessionManager);
    for (const [at, { data }] of waiting.entries()) {
      if (taken[at] === true || isDone(data, tree)) continue;
      const error = new Error(`${namesOf(data)} does not fit the branch any more and was dropped.`);
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

/** Whether the branch already has this data. */
function isDone(data: Data, tree: BlockTree): boolean {
  if ("blocks" in data) return data.blocks.every(({ id }) => tree.find(id) !== undefined);
  return tree.find(data.block)?.state.kind === (data.operation === "decompress" ? "inactive" : "active");
}

function namesOf(data: Data): string {
  return "blocks" in data ? data.blocks.map(({ id }) => id).join(", ") : `${data.operation} ${data.block}`;
}
