import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Workbench } from "../parts/optimisation/workbench.ts";
import type { Blocks, PruningBench } from "./bench.ts";
import { blockBudget } from "./block-budget.ts";
import { BlockFold } from "./block-fold.ts";
import { blockIdOf, blockNumberOf } from "./block-id.ts";
import { BlockNumbers } from "./block-numbers.ts";
import { wholeText } from "./block-text.ts";
import { BlockWriting } from "./block-writing.ts";
import { Rendering } from "./rendering.ts";

/** `off`: why blocks are not shown in this request. */
type Bench = Workbench & Pick<PruningBench, "pruning" | "off">;

/** Shows blocks in the place of what they cover, in each request. */
export function createBlocks(bench: Bench): Blocks {
  const { pruning, off } = bench;
  const fold = new BlockFold();
  const numbers = new BlockNumbers();
  const rendering = new Rendering(bench);
  const on: Blocks["on"] = ({ sessionManager }) => fold.on(sessionManager);
  const writing = new BlockWriting(bench, fold);

  const rendered: Blocks["rendered"] = (messages, ctx) => rendering.of(messages, on(ctx), blockBudget(bench, ctx));

  bench.entries.need((_messages, ctx) => off(ctx) === undefined && on(ctx).all.length > 0);
  bench.pipeline.use(
    "context_with_system",
    "blocks",
    (messages, ctx) => (off(ctx) === undefined ? rendered(messages, ctx) : undefined),
    "pruning",
  );
  // What a block stands for, and what one will stand for from this boundary on, stays as it was.
  const isCovered = (entryId: string, ctx: ExtensionContext): boolean =>
    on(ctx).over(entryId) !== undefined || writing.ahead(ctx).over(entryId) !== undefined;
  bench.boundary.protect((entryId, ctx) => off(ctx) === undefined && isCovered(entryId, ctx));
  bench.recall.need(() => pruning().enabled);
  bench.recall.addSource(async (id, ctx) => {
    const number = blockNumberOf(id);
    const tree = on(ctx);
    const block = number === undefined ? undefined : tree.find(blockIdOf(number));
    return block === undefined ? undefined : { text: wholeText(block, tree), images: [] };
  });

  return {
    on,
    ahead: (ctx) => writing.ahead(ctx),
    takes: (record, ctx) => writing.takes(record, ctx),
    rendered,
    nextId: ({ sessionManager }, ahead = 0) =>
      blockIdOf(Math.max(numbers.highest(sessionManager), writing.highest()) + 1 + ahead),
    blockIn: (message) => rendering.blockIn(message),
    textOf: wholeText,
    operate: (operation, block, ctx) => writing.write({ v: 1, operation, block }, ctx),
    store: (record, ctx) => writing.write(record, ctx),
  };
}
