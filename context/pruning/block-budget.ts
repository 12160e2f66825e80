import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { blocksLimit } from "../../protocol/pruning/limits.ts";
import { firstLines, type Shown, type ShownBlocks } from "./block-text.ts";
import type { Block, BlockTree, PruningServices } from "./pruning-services.ts";

/** A constant instead of a learnt estimate, so that the rendered text never changes by itself. */
const bytesPerToken = 3.3;
/** Bytes. */
const frame = 200;
const leastCut = 200;

/**
 * Which blocks are shortened so that all blocks together take at most `budget` tokens: the oldest to their first lines,
 * then to their topics. The newest block is cut last. The result depends on the branch alone.
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

/** The bytes that each block takes as it is shown. A block is older than the blocks that contain it. */
class Sizes {
  readonly shown = new Map<string, Shown>();
  readonly oldestFirst: readonly Block[];
  total = 0;
  readonly #tree: BlockTree;
  /** Bytes without nested blocks. 0: no longer shown. */
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

  /** Does nothing if the result would not be smaller. */
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

  /** Cuts the block so that all blocks together take `most` bytes. */
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

  /** Nested blocks that are still shown. */
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

/** Upper bound of the text around a block's body. */
function frameBytes({ topic }: Block): number {
  return frame + Buffer.byteLength(topic);
}

function lineBytes(block: Block): number {
  return Buffer.byteLength(firstLines(block));
}

/**
 * The budget of all blocks together, in tokens. `undefined` (no bound) if the window is unknown, or if the tool recall is
 * missing and could not return shortened text.
 */
export function blockBudget(
  { pruning, recall }: Pick<PruningServices, "pruning" | "recall">,
  { model }: ExtensionContext,
): number | undefined {
  const window = model?.contextWindow;
  if (window === undefined || !Number.isSafeInteger(window) || window <= 0) return undefined;
  return recall.missing() === undefined ? blocksLimit(pruning(), window) : undefined;
}
