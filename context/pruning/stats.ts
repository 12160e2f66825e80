import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import type { PruningStats } from "../../protocol/pruning/report.ts";
import { EntryFold } from "../folds.ts";
import { editPrices } from "../parts/cache/edit-history.ts";
import { cachePrices } from "../parts/cache/prices.ts";
import { blockNewsIn } from "./block-entries.ts";
import type { CacheLosses } from "./cache-losses.ts";
import type { Block, BlockTree, PruningServices } from "./pruning-services.ts";
import type { BlockRecord } from "./record.ts";
import { strategyNames } from "./strategies/removal.ts";

type Host = Pick<PruningServices, "recall" | "blocks" | "estimator" | "pi">;

export interface StatsSources {
  /** The pruning section of the system prompt. */
  readonly section: (ctx: ExtensionContext) => string | undefined;
  /** The number of ids in the model's own texts. */
  readonly echoes: (ctx: ExtensionContext) => number;
  readonly losses: (ctx: ExtensionContext) => CacheLosses | undefined;
}

const ours: ReadonlySet<string> = new Set(strategyNames);
const perMillion = 1_000_000;
const maxBlocks = 1_000;

/** The compressions of a session's file over all branches. */
interface Compressions {
  readonly blocks: Map<string, BlockRecord & { readonly topic: string }>;
  succeeded: number;
  failed: number;
}

/**
 * What pruning has done to a session: a sum over its file, so that the number of requests does not change it and nothing
 * is counted twice. A block counts the range as it was when the block was made, without earlier pruning.
 */
export function createStats(host: Host, sources: StatsSources): (ctx: ExtensionContext) => PruningStats {
  const compressions = new EntryFold<Compressions>(
    () => ({ blocks: new Map(), succeeded: 0, failed: 0 }),
    (sum, entry) => {
      const news = blockNewsIn(entry);
      if (news?.kind === "blocks") {
        for (const block of news.record.blocks) {
          if (!sum.blocks.has(block.id)) sum.blocks.set(block.id, { ...block, topic: news.record.topic });
        }
      }
      if (entry.type !== "message" || entry.message.role !== "toolResult") return;
      if (entry.message.toolName !== COMPRESS_TOOL) return;
      if (news?.kind === "blocks") sum.succeeded += 1;
      else if (entry.message.isError) sum.failed += 1;
    },
  );
  return (ctx) => {
    const { sessionManager, model } = ctx;
    const { registry } = host.recall;
    const { blocks, succeeded, failed } = compressions.of(sessionManager);
    const strategies: Record<string, { count: number; tokens: number }> = {};
    for (const { part, tokens } of uniqueRecords(registry.all(sessionManager))) {
      const sum = strategies[part] ?? { count: 0, tokens: 0 };
      strategies[part] = { count: sum.count + 1, tokens: sum.tokens + tokens };
    }
    for (const sum of Object.values(strategies)) sum.tokens = Math.round(sum.tokens);
    const perBlock = [...blocks.values()].map((block) => ({
      id: block.id,
      topic: block.topic.slice(0, 80),
      tokens: Math.round(savedBy(block)),
    }));
    const all = [...Object.values(strategies), ...perBlock.map(({ tokens }) => ({ count: 1, tokens }))];
    const removed = {
      count: all.reduce((sum, { count }) => sum + count, 0),
      tokens: all.reduce((sum, { tokens }) => sum + tokens, 0),
    };
    const masked = host.recall.masked(ctx).filter(({ part }) => ours.has(part));
    const tree = host.blocks.on(ctx);
    const now =
      masked.reduce((sum, { tokens }) => sum + tokens, 0) +
      tree.active.reduce((sum, block) => sum + savedNow(block, tree), 0);
    const read = cachePrices(model?.cost, 0)?.read ?? model?.cost.input ?? 0;
    const lost = sources.losses(ctx) ?? estimated(host, ctx);
    const hasPrice = read > 0;
    return {
      now: Math.round(now),
      removed,
      blocks: perBlock.slice(-maxBlocks),
      strategies,
      cache: { misses: lost.misses, tokens: Math.round(lost.tokens), usd: hasPrice ? lost.usd : null },
      net: {
        tokens: removed.tokens - Math.round(lost.tokens),
        usd: hasPrice ? (removed.tokens * read) / perMillion - lost.usd : null,
      },
      edits: editPrices(ctx, (part) => ours.has(part)),
      standing: {
        system: host.estimator.text(sources.section(ctx) ?? ""),
        tool: host.estimator.text(toolText(host)),
      },
      calls: { succeeded, failed },
      echoes: sources.echoes(ctx),
    };
  };
}

/** A number belongs to one entry; further records with the same number are hand-written and ignored. */
function uniqueRecords<R extends { readonly part: string; readonly number: number }>(records: readonly R[]): R[] {
  const seen = new Set<number>();
  return records.filter(({ part, number }) => {
    if (!ours.has(part) || seen.has(number)) return false;
    seen.add(number);
    return true;
  });
}

function savedBy({ tokensBefore, tokensAfter }: Pick<BlockRecord, "tokensBefore" | "tokensAfter">): number {
  return Math.max(0, tokensBefore - tokensAfter);
}

/** The savings of a block and its nested blocks. */
function savedNow(block: Block, tree: BlockTree): number {
  let sum = 0;
  const open = [block];
  const seen = new Set<string>();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next.id)) continue;
    seen.add(next.id);
    sum += savedBy(next);
    for (const id of next.children) {
      const child = tree.find(id);
      if (child !== undefined) open.push(child);
    }
  }
  return sum;
}

/** The expected cost of the batches, for sessions without measurements. */
function estimated({ recall }: Host, { sessionManager }: ExtensionContext): CacheLosses {
  const batches = recall.registry.batches(sessionManager).filter(({ part, cost }) => ours.has(part) && cost.tokens > 0);
  return {
    misses: batches.length,
    tokens: batches.reduce((sum, { cost }) => sum + cost.tokens, 0),
    usd: batches.reduce((sum, { cost }) => sum + cost.usd, 0),
  };
}

/** The tool definition in the form that services receive. */
function toolText({ pi }: Host): string {
  const tool = pi.getAllTools().find(({ name }) => name === COMPRESS_TOOL);
  if (tool === undefined) return "";
  const { name, description, parameters } = tool;
  return JSON.stringify({ name, description, parameters });
}
