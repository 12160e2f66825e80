import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { blocksLimit } from "../../protocol/pruning/limits.ts";
import { firstLines, type Shown, type ShownBlocks } from "./block-text.ts";
import type { Block, BlockTree, PruningContext } from "./pruning-context.ts";

/** What blocks take is counted by this, and by no estimate that is learnt: what is shown must not change by itself. */
const bytesPerToken = 3.3;
/** Bytes. */
const frame = 200;
const leastCut = 200;

/**
 * What is shown shorter so that all blocks together take at most `budget` tokens: the oldest by their first lines, and where
 * that is not enough by their topics. The newest loses its end at last. It goes by nothing but what the branch says.
 */
export function shownWithin(tree: BlockTree, budget: number | undefined): ShownBlocks {
  if (budget === undefined) return new Map();
  const sizes = new Sizes(tree);
  const most = Math.floor(budget * bytesPerToken);
  const newest = sizes.oldestFirst.at(-1);
  for (const how of ["lines", "topic"] as const) {
    for (const block of sizes.oldestFirst) {
      if (sizes.total <= most) return sizes.shown;
      if (block !== newest) sizes.shorten(block, how);
    }
  }
  if (newest !== undefined && sizes.total > most) sizes.cut(newest, most);
  return sizes.shown;
}

/** What each block takes in bytes, as it is shown. A block is older than those that hold it. */
class Sizes {
  readonly shown = new Map<string, Shown>();
  readonly oldestFirst: readonly Block[];
  total = 0;
  readonly #tree: BlockTree;
  /** Without those that it holds. 0: it is not shown any more. */
  readonly #own = new Map<string, number>();

  constructor(tree: BlockTree) {
    this.#tree = tree;
    const found = new Set<Block>();
    const pending = [...tree.active];
    for (let block = pending.pop(); block !== undefined; block = pending.pop()) {
      if (found.has(block)) continue;
      found.add(block);
      pending.push(...this.#held(block));
    }
    this.oldestFirst = [...found].toSorted((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)));
    for (const block of found) this.#take(block, bytesOf(block));
  }

  /** Does nothing where it would take no less. */
  shorten(block: Block, how: "lines" | "topic"): void {
    const own = this.#own.get(block.id) ?? 0;
    const held = this.#below(block);
    const heldBytes = held.reduce((sum, { id }) => sum + (this.#own.get(id) ?? 0), 0);
    const stub = frameBytes(block) + (how === "topic" ? 0 : lineBytes(block));
    if (own === 0 || stub >= own + heldBytes) return;
    this.shown.set(block.id, how);
    this.#take(block, stub);
    for (const one of held) this.#take(one, 0);
  }

  /** Shows so much of it that all take `most`. */
  cut(block: Block, most: number): void {
    const held = this.#below(block).reduce((sum, { id }) => sum + (this.#own.get(id) ?? 0), 0);
    const others = this.total - (this.#own.get(block.id) ?? 0) - held;
    const left = most - others - 2 * frameBytes(block);
    this.shown.set(block.id, left > leastCut ? left : "topic");
  }

  #take({ id }: Block, bytes: number): void {
    this.total += bytes - (this.#own.get(id) ?? 0);
    this.#own.set(id, bytes);
  }

  #held({ body }: Block): Block[] {
    return body.flatMap((segment) => ("block" in segment ? (this.#tree.find(segment.block) ?? []) : []));
  }

  /** Those that are shown in it. */
  #below(block: Block): Block[] {
    const found: Block[] = [];
    const pending = this.#held(block);
    for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
      if ((this.#own.get(one.id) ?? 0) === 0) continue;
      found.push(one);
      pending.push(...this.#held(one));
    }
    return found;
  }
}

function bytesOf(block: Block): number {
  const words = block.body.map((segment) => ("text" in segment ? Buffer.byteLength(segment.text) : 0));
  const kept = block.kept.map(({ title, text }) => Buffer.byteLength(title) + Buffer.byteLength(text) + 3);
  return [...words, ...kept].reduce((sum, bytes) => sum + bytes, frameBytes(block));
}

/** Of what stands around a text, at most. */
function frameBytes({ topic }: Block): number {
  return frame + Buffer.byteLength(topic);
}

function lineBytes(block: Block): number {
  return Buffer.byteLength(firstLines(block));
}

/**
 * What all blocks together may take, in tokens. Where the window is not known, or the tool recall could not give back what is
 * shortened, there is no bound.
 */
export function blockBudget(
  { pruning, recall }: Pick<PruningContext, "pruning" | "recall">,
  { model }: ExtensionContext,
): number | undefined {
  const window = model?.contextWindow;
  if (window === undefined || !Number.isSafeInteger(window) || window <= 0) return undefined;
  return recall.missing() === undefined ? blocksLimit(pruning(), window) : undefined;
}
