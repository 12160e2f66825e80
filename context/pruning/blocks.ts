import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { EntryFold } from "../folds.ts";
import { blockBudget } from "./block-budget.ts";
import { blockNumbersIn } from "./block-entries.ts";
import type { BlockFold } from "./block-fold.ts";
import { blockIdOf, blockNumberOf } from "./block-id.ts";
import { wholeText } from "./block-text.ts";
import type { BlockWriting } from "./block-writing.ts";
import type { Blocks, PruningServices } from "./pruning-services.ts";
import type { Rendering } from "./rendering.ts";

type Host = Pick<PruningServices, "pruning" | "off" | "entries" | "pipeline" | "boundary" | "recall">;

/** A larger gap was not written by this extension; the number is ignored. */
const longestStep = 100_000;

interface BlockParts {
  readonly fold: BlockFold;
  readonly rendering: Rendering;
  readonly writing: BlockWriting;
}

/** Replaces covered ranges by their blocks in each request. */
export function createBlocks(host: Host, { fold, rendering, writing }: BlockParts): Blocks {
  const { pruning, off } = host;
  const numbers = new EntryFold(
    () => ({ highest: 0 }),
    (sum, entry) => {
      for (const number of blockNumbersIn(entry)) {
        if (number > sum.highest && number <= sum.highest + longestStep) sum.highest = number;
      }
    },
  );
  const on: Blocks["on"] = ({ sessionManager }) => fold.on(sessionManager);

  const rendered: Blocks["rendered"] = (messages, ctx) => rendering.of(messages, on(ctx), blockBudget(host, ctx));

  host.entries.need((_messages, ctx) => off(ctx) === undefined && on(ctx).all.length > 0);
  host.pipeline.use(
    "context_with_system",
    "blocks",
    (messages, ctx) => (off(ctx) === undefined ? rendered(messages, ctx) : undefined),
    "pruning",
  );
  // Entries covered by a block, now or after this boundary, must not be edited.
  const isCovered = (entryId: string, ctx: ExtensionContext): boolean =>
    on(ctx).over(entryId) !== undefined || writing.ahead(ctx).over(entryId) !== undefined;
  host.boundary.protect((entryId, ctx) => off(ctx) === undefined && isCovered(entryId, ctx));
  host.recall.need(() => pruning().enabled);
  host.recall.addSource(async (id, ctx) => {
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
      blockIdOf(Math.max(numbers.of(sessionManager).highest, writing.highest()) + 1 + ahead),
    blockIn: (message) => rendering.blockIn(message),
    textOf: wholeText,
    operate: (operation, block, ctx) => writing.write({ v: 1, operation, block }, ctx),
    store: (record, ctx) => writing.write(record, ctx),
  };
}
