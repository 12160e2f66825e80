import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import type { AgentMessage } from "../../pi-types.ts";
import type { Workbench } from "../optimisation/workbench.ts";
import type { Blocks } from "./bench.ts";
import { blockBudget } from "./block-budget.ts";
import { BlockFold } from "./block-fold.ts";
import { blockIdOf, blockNumberOf } from "./block-id.ts";
import { BlockMessages } from "./block-messages.ts";
import { BlockNumbers } from "./block-numbers.ts";
import { wholeText } from "./block-text.ts";
import { BlockWriting } from "./block-writing.ts";
import { TrimmedCalls } from "./trimmed-calls.ts";

interface BlocksOptions {
  readonly pruning: () => PruningConfig;
  /** Why blocks are not shown in this request. */
  readonly off: (ctx: ExtensionContext) => string | undefined;
}

/** Shows blocks in the place of what they cover, in each request. */
export function createBlocks(bench: Workbench, { pruning, off }: BlocksOptions): Blocks {
  const fold = new BlockFold();
  const numbers = new BlockNumbers();
  const shown = new BlockMessages();
  const calls = new TrimmedCalls();
  const on: Blocks["on"] = ({ sessionManager }) => fold.on(sessionManager);
  const writing = new BlockWriting(bench, on);

  const rendered: Blocks["rendered"] = (messages, ctx) => {
    const tree = on(ctx);
    if (tree.all.length === 0) return messages;
    shown.begin(tree, blockBudget(pruning().blocks.maxTokens, ctx.model?.contextWindow));
    calls.begin(tree);
    const made: AgentMessage[] = [];
    const placed = new Set<string>();
    let isSame = true;
    for (const message of messages) {
      const entryId = message.role === "system" ? undefined : bench.entries.entryOf(message);
      const block = entryId === undefined ? undefined : tree.over(entryId);
      if (entryId === undefined || (block !== undefined && bench.isUnanswered(entryId))) {
        made.push(message);
        continue;
      }
      if (block === undefined) {
        const whole = calls.of(message, entryId);
        isSame &&= whole === message;
        made.push(whole);
        continue;
      }
      isSame = false;
      if (placed.has(block.id)) continue;
      placed.add(block.id);
      made.push(shown.of(block, message.timestamp));
    }
    return isSame ? messages : made;
  };

  bench.entries.need((_messages, ctx) => off(ctx) === undefined && on(ctx).all.length > 0);
  bench.pipeline.use(
    "context_with_system",
    "blocks",
    (messages, ctx) => (off(ctx) === undefined ? rendered(messages, ctx) : undefined),
    "pruning",
  );
  bench.boundary.protect((entryId, ctx) => off(ctx) === undefined && on(ctx).over(entryId) !== undefined);
  bench.recall.need(() => pruning().enabled);
  bench.recall.addSource(async (id, ctx) => {
    const number = blockNumberOf(id);
    const tree = on(ctx);
    const block = number === undefined ? undefined : tree.find(blockIdOf(number));
    return block === undefined ? undefined : { text: wholeText(block, tree), images: [] };
  });

  return {
    on,
    rendered,
    nextId: ({ sessionManager }, ahead = 0) =>
      blockIdOf(Math.max(numbers.highest(sessionManager), writing.highest()) + 1 + ahead),
    blockIn: (message) => shown.blockIn(message),
    textOf: wholeText,
    operate: (operation, block, ctx) => writing.write({ v: 1, operation, block }, ctx),
    store: (record, ctx) => writing.write(record, ctx),
  };
}
